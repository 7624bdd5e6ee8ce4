#include "sim/files/input_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
  std::size_t size = 0;  // what is read of it
  const auto too_large = [&] { throw InputError(path, "larger than " + size_text(most), hint); };
  if (fstat(file.number, &status) == 0) {
    if (status.st_size > most) too_large();
    text.resize(static_cast<std::size_t>(status.st_size) + 1);  // the last finds the end
  }
  while (true) {
    constexpr std::size_t block = 1 << 16;  // more of what grew, or lies in /proc
    if (size == text.size()) text.resize(2 * size + block);
    const ssize_t got = read(file.number, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(path, std::string("cannot be read: ") + std::strerror(errno));
    size += static_cast<std::size_t>(got);
    if (static_cast<std::int64_t>(size) > most) too_large();
    if (got == 0) break;
  }
  text.resize(size);
  return text;
}

MappedInput::MappedInput(const std::string& path) {
  const InputDescriptor file(open_input(path));
  struct stat status {};
  const bool known = fstat(file.number, &status) == 0;
  if (known && status.st_size == 0) return;  // which no system maps
  int flags = MAP_PRIVATE;
#ifdef MAP_POPULATE
  flags |= MAP_POPULATE;
#endif
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const begin = known ? mmap(nullptr, size, PROT_READ, flags, file.number, 0) : MAP_FAILED;
  if (begin == MAP_FAILED)
    throw InputError(path, std::string("cannot be read: ") + std::strerror(errno));
  bytes_ = {static_cast<const char*>(begin), size};
}

MappedInput::~MappedInput() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace stepcast::sim
