#include "sim/files/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

/// Closed when it goes.
struct InputDescriptor {
  int number;
  explicit InputDescriptor(int opened) : number(opened) {}
  ~InputDescriptor() { close(number); }
  InputDescriptor(const InputDescriptor&) = delete;
  InputDescriptor& operator=(const InputDescriptor&) = delete;
};

std::string size_text(std::int64_t bytes) {
  return bytes % (1 << 20) == 0 ? std::to_string(bytes >> 20) + " MiB"
                                : std::to_string(bytes) + " bytes";
}

}  // namespace

int open_input(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw InputError(path, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status {};
  const bool known = fstat(file, &status) == 0;
  if (known && S_ISREG(status.st_mode)) return file;
  close(file);
  if (known && S_ISDIR(status.st_mode)) throw InputError(path, "is a folder, not a file");
  throw InputError(path, "is no regular file", "pipes and devices are not read: write a file");
}

std::string read_input(const std::string& path, std::int64_t most, const std::string& hint) {
  const InputDescriptor file(open_input(path));
  struct stat status {};
  std::string text;
  const auto too_large = [&] { throw InputError(path, "larger than " + size_text(most), hint); };
  if (fstat(file.number, &status) == 0) {
    if (status.st_size > most) too_large();
    text.reserve(static_cast<std::size_t>(status.st_size));
  }
  std::array<char, 1 << 16> block;
  while (true) {
    const ssize_t got = read(file.number, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(path, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(text.size()) > most) too_large();  // it grew, or lies in /proc
  }
}

}  // namespace stepcast::sim
