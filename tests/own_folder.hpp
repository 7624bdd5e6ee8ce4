// Where tests put their files: no two processes share a name, whoever else runs on this machine.
#pragma once

#include <cerrno>
#include <cstdlib>

#include <filesystem>
#include <string>
#include <system_error>

namespace tests {

/// A folder of this process, gone at its end.
inline const std::filesystem::path& own_folder() {
  static const struct Folder {
    Folder() {
      std::string name = (std::filesystem::temp_directory_path() / "stepcast-test-XXXXXX").string();
      if (mkdtemp(name.data()) == nullptr)
        throw std::system_error(errno, std::generic_category(), name);
      path = name;
    }
    ~Folder() {
      std::error_code left;  // nobody to tell
      std::filesystem::remove_all(path, left);
    }
    std::filesystem::path path;
  } folder;
  return folder.path;
}

}  // namespace tests
