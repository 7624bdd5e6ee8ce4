#include "sim/files/whole_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

bool is_device(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_regular_file(path, error) &&
         !fs::is_directory(path, error);
}

void refuse_link(const std::string& path) {
  std::error_code error;
  if (fs::is_symlink(path, error))
    throw OutputError(path, "is a link, which is not followed", "name the file itself");
}

constexpr std::size_t longest_stem = 200;  // of the 255 bytes that a name may have
constexpr std::string_view mark_of_partial = ".partial";

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// What names of files being written begin with on this host: "results.json.1a2b3c4d-".
std::string beginning_of(const fs::path& path) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : std::string_view(host.data()))
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return fmt::format("{}.{:08x}-", path.filename().string().substr(0, longest_stem), hash);
}

/// The process that writes "results.json.1a2b3c4d-4711-0.partial".
std::optional<pid_t> writer_of(std::string_view name, std::string_view beginning) {
  if (!name.starts_with(beginning) || !name.ends_with(mark_of_partial)) return std::nullopt;
  name.remove_prefix(beginning.size());
  name.remove_suffix(mark_of_partial.size());
  const auto digits = name.substr(0, name.find('-'));
  if (digits.empty() || digits.size() > 9 || digits.size() == name.size() ||
      name.find_first_not_of("0123456789-") != std::string_view::npos)
    return std::nullopt;
  return std::stoi(std::string(digits));
}

/// On this host; one that its parent has not waited for yet writes no more.
bool is_alive(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(')');  // "123 (its name) Z 1 ..."
  return name_end == std::string::npos || text.substr(name_end, 3) != ") Z";
}

/// What writers of this file have left behind on this host that were killed.
void forget_dead_writers(const fs::path& path) {
  const std::string beginning = beginning_of(path);
  std::error_code error;  // what cannot be removed stays
  for (fs::directory_iterator entry(folder_of(path), error), end; !error && entry != end;
       entry.increment(error)) {
    const auto writer = writer_of(entry->path().filename().native(), beginning);
    if (writer && !is_alive(*writer)) fs::remove(entry->path(), error);
  }
}

/// File systems that cannot sync (a pipe, some network mounts) say so; the bytes are theirs. What
/// cannot be read cannot be synced: a folder into which its user may write and no more.
bool synced(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == EACCES;
  const bool done = fsync(file) == 0 || errno == EINVAL || errno == EROFS;
  close(file);
  return done;
}

/// Each gets the other's name. False with errno 0 where that cannot be: nothing has that name, or
/// the file system does not know how.
bool swapped_names(const std::string& one, const std::string& other) {
  std::error_code error;
  const bool there = fs::is_regular_file(fs::symlink_status(other, error));
  errno = 0;
  if (!there) return false;
  if (renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return true;
  for (const int none_here : {EINVAL, ENOSYS, ENOTSUP, ENOENT})
    if (errno == none_here) errno = 0;
  return false;
}

}  // namespace

WholeFile::WholeFile(const std::string& path) : path_(path), partial_(path_) {
  if (is_device(path_)) return;
  refuse_link(path_);
  forget_dead_writers(path_);
  const auto beginning = folder_of(path_) / beginning_of(path_);
  int file = -1;
  for (int i = 0; file < 0 && !failed_; ++i) {
    partial_ = fmt::format("{}{}-{}{}", beginning.string(), getpid(), i, mark_of_partial);
    file = open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    failed_ = file < 0 && errno != EEXIST;
  }
  if (!failed_) file_ = fdopen(file, "wb");
}

WholeFile::~WholeFile() {
  if (file_ != nullptr) std::fclose(file_);
  // What it has taken the place of, or what nobody has kept.
  if ((swapped_ || !kept_) && partial_ != path_) std::remove(partial_.c_str());
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

void WholeFile::rename_to_path() {
  // So that what was there is still at hand; where nothing was, or the file system cannot swap, as
  // always.
  swapped_ = partial_ != path_ && swapped_names(partial_, path_);
  kept_ = swapped_ || partial_ == path_ ||
          (errno == 0 && std::rename(partial_.c_str(), path_.c_str()) == 0);
  if (!kept_) fail();
}

void WholeFile::take_back() {
  if (partial_ == path_ || !std::exchange(kept_, false)) return;
  if (std::exchange(swapped_, false))
    swapped_names(partial_, path_);
  else
    std::remove(path_.c_str());
}

void WholeFile::sync_folder() const {
  if (partial_ != path_ && !synced(folder_of(path_).string())) fail();
}

void WholeFile::keep() {
  kept_ = partial_ == path_ || std::rename(partial_.c_str(), path_.c_str()) == 0;
  if (!kept_) fail();
  sync_folder();
}

void keep_together(const std::vector<WholeFile*>& files) {
  try {
    for (WholeFile* file : files) file->rename_to_path();
  } catch (const OutputError&) {
    for (WholeFile* file : files) file->take_back();
    throw;
  }
  std::set<fs::path> folders;
  for (const WholeFile* file : files)
    if (folders.insert(folder_of(file->path_)).second) file->sync_folder();
}

void keep_together(std::list<WholeFile>& files) {
  std::vector<WholeFile*> each;
  for (WholeFile& file : files) each.push_back(&file);
  keep_together(each);
}

void write_whole(const std::string& path, std::string_view text) {
  WholeFile file(path);
  file.write(text);
  file.seal();
  file.keep();
}

void write_together(const std::string& folder, const NamedTexts& files) {
  std::error_code error;
  fs::create_directories(folder, error);  // what fails, the files say
  std::list<WholeFile> written;
  for (const auto& [name, content] : files) {
    WholeFile& file = written.emplace_back((fs::path(folder) / name).string());
    file.write(content);
    file.seal();
  }
  keep_together(written);
}

void write_new_files(const std::string& folder, const NamedTexts& files) {
  for (const auto& [name, content] : files)
    if (fs::exists(fs::path(folder) / name))
      throw InputError("--out", "'" + (fs::path(folder) / name).string() + "' is there already",
                       "name another folder");
  write_together(folder, files);
}

}  // namespace stepcast::sim
