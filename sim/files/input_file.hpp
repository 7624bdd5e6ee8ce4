// Files that are read: regular ones alone. A pipe without a writer would wait for ever, a device
// never ends, and an error while reading is no end of file. Knows no format.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// A descriptor to close. Throws InputError on what cannot be opened or is no regular file.
int open_input(const std::string& path);

/// All of it. Throws InputError also on more than `most` bytes, with `hint`.
std::string read_input(const std::string& path,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                       const std::string& hint = {});

/// The bytes of a file where the system holds them, without a copy: for files that are renamed into
/// place and never cut short. Errors as of open_input().
class MappedInput {
 public:
  explicit MappedInput(const std::string& path);
  ~MappedInput();
  MappedInput(const MappedInput&) = delete;
  MappedInput& operator=(const MappedInput&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace stepcast::sim
