// A folder for what a program needs while it runs: it goes with all that is in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "engine/check.hpp"

namespace stepcast::sim {

class ScratchFolder {
 public:
  /// Below the system's folder for such; `name` is part of its own. Throws InputError.
  explicit ScratchFolder(const std::string& name) {
    const auto folder = std::filesystem::temp_directory_path();
    std::string pattern =
        (folder / ("stepcast-" + name + "-XXXXXX")).string();  // as mkdtemp() asks
    if (mkdtemp(pattern.data()) == nullptr) throw InputError(pattern, "cannot be made");
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stepcast::sim
