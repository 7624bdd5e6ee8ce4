#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/processes/meeting.hpp"

namespace stepcast::sim {
namespace {

constexpr std::size_t longest_words = 1024;  // an address and a token

[[noreturn]] void refuse(const std::string& file, const std::string& what,
                         const std::string& hint = "") {
  throw InputError("--rendezvous " + file, what, hint);
}

bool locked(const Descriptor& descriptor) {
  return flock(descriptor.number(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/// Whether `file` is still the one that was opened: another run may have replaced it meanwhile.
bool is_at(const Descriptor& descriptor, const std::string& file) {
  struct stat opened {
  }, named{};
  return fstat(descriptor.number(), &opened) == 0 && stat(file.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

Descriptor opened(const std::string& file) {
  Descriptor made(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (made.number() < 0) refuse(file, std::string("cannot be written: ") + std::strerror(errno));
  return made;
}

bool is_empty(const std::string& file) {
  struct stat named {};
  return stat(file.c_str(), &named) == 0 && named.st_size == 0;
}

}  // namespace

std::string make_token() {
  constexpr char digits[] = "0123456789abcdef";
  std::random_device device;
  std::string token;
  for (int i = 0; i < 16; ++i) token += digits[device() % 16];
  return token;
}

std::optional<RendezvousFile::Words> words_in(const std::string& file, Greeting greeting) {
  std::ifstream in(file);
  std::array<char, longest_words> line{};  // whatever the file is
  if (!in.getline(line.data(), line.size())) return std::nullopt;
  std::istringstream text(line.data());
  std::string program, version, end;
  RendezvousFile::Words words;
  if (!(text >> program >> version >> words.address >> words.token >> words.ranks >> end))
    return std::nullopt;
  if (program != greeting.program || version != greeting.version || end != "end")
    return std::nullopt;
  return words;
}

RendezvousFile::RendezvousFile(std::string file, Greeting greeting, const Words& words)
    : file_(std::move(file)) {
  for (;;) {
    const Descriptor before = opened(file_);
    if (!locked(before))
      refuse(file_, "is of a run that is still alive", "take another file, or end that run");
    if (!is_at(before, file_)) continue;
    if (!is_empty(file_) && !words_in(file_, greeting))
      refuse(file_, "is something else than a rendezvous", "take a file that does not exist");
    // Written beside and renamed, so that nobody reads half of it; both are locked meanwhile.
    WholeFile whole(file_);
    std::error_code error;  // the token is for this user alone: before it is in
    std::filesystem::permissions(
        whole.partial(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
        error);
    whole.write(std::string(greeting.program) + " " + std::string(greeting.version) + " " +
                words.address + " " + words.token + " " + std::to_string(words.ranks) + " end\n");
    whole.seal();
    Descriptor after = opened(whole.partial());
    locked(after);
    whole.keep();
    locked_ = std::move(after);
    return;
  }
}

RendezvousFile::~RendezvousFile() {
  if (is_at(locked_, file_)) unlink(file_.c_str());
}

}  // namespace stepcast::sim
