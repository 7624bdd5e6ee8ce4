#include "sim/files/whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

/// Where a link leads: renaming would replace the link itself.
std::string target_of(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::is_symlink(path, error) ? fs::canonical(path, error) : fs::path();
  return error || target.empty() ? path : target.string();
}

bool is_device(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_regular_file(path, error) &&
         !fs::is_directory(path, error);
}

/// File systems that cannot sync (a pipe, some network mounts) say so; the bytes are theirs.
bool synced(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = fsync(file) == 0 || errno == EINVAL || errno == EROFS;
  close(file);
  return done;
}

}  // namespace

WholeFile::WholeFile(const std::string& path) : path_(target_of(path)) {
  partial_ = is_device(path_) ? path_ : path_ + ".partial";
}

WholeFile::~WholeFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!kept_ && partial_ != path_) std::remove(partial_.c_str());
}

void WholeFile::fail() const {
  throw OutputError(path_, "cannot be written",
                    "does its folder exist, may you write there, is the disk full?");
}

void WholeFile::write(std::string_view text) {
  if (file_ == nullptr && !failed_) file_ = std::fopen(partial_.c_str(), "wbe");
  if (file_ == nullptr || std::fwrite(text.data(), 1, text.size(), file_) != text.size())
    failed_ = true;
}

void WholeFile::seal() {
  if (file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) != 0) failed_ = true;
  if (failed_ || (partial_ != path_ && !synced(partial_))) fail();
}

void WholeFile::keep() {
  kept_ = partial_ == path_ || std::rename(partial_.c_str(), path_.c_str()) == 0;
  if (!kept_) fail();
  synced(fs::path(path_).has_parent_path() ? fs::path(path_).parent_path().string() : ".");
}

void write_whole(const std::string& path, std::string_view text) {
  WholeFile file(path);
  file.write(text);
  file.seal();
  file.keep();
}

void write_new_files(const std::string& folder,
                     const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [name, content] : files)
    if (fs::exists(fs::path(folder) / name))
      throw InputError("--out", "'" + (fs::path(folder) / name).string() + "' is there already",
                       "name another folder");
  std::error_code error;
  fs::create_directories(folder, error);  // what fails, write_whole says
  for (const auto& [name, content] : files)
    write_whole((fs::path(folder) / name).string(), content);
}

}  // namespace stepcast::sim
