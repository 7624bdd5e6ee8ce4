// Files that appear whole or not at all: written under a name beside their own that no other writer
// has, synced, renamed. What was there before stays until then. Knows no content.
#pragma once

#include <cstdio>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/check.hpp"

namespace stepcast::sim {

/// Output that could not be written, a disk full or closed: exit code 7.
class OutputError : public InputError {
 public:
  using InputError::InputError;
};

/// Call seal(), then keep(); without keep() nothing is left of it. What is no file of its own (a
/// pipe, a device) is written as it is. A link to a file or to nothing is refused: who else may
/// write in the folder could aim it at any file of the user's. Of several writers at once the last
/// one's file stays, whole. What a killed one has left goes with the next.
class WholeFile {
 public:
  explicit WholeFile(const std::string& path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  /// Where to write what another library writes.
  const std::string& partial() const { return partial_; }
  /// Appends. A failure is remembered for seal().
  void write(std::string_view text);
  /// All of it is on the disk, not yet under its name. Throws OutputError.
  void seal();
  /// Under its name. Throws OutputError.
  void keep();

 private:
  friend void keep_together(const std::vector<WholeFile*>& files);
  [[noreturn]] void fail() const;
  void rename_to_path();
  void take_back();
  void sync_folder() const;

  std::string path_, partial_;
  std::FILE* file_ = nullptr;
  bool failed_ = false;
  bool kept_ = false, swapped_ = false;  // swapped: what was there before has the other name
};

/// Sealed files, all under their names, or after an OutputError none: what was there before is
/// there again (but on file systems that cannot swap two names).
void keep_together(const std::vector<WholeFile*>& files);
void keep_together(std::list<WholeFile>& files);

/// A small file in one go. Throws OutputError.
void write_whole(const std::string& path, std::string_view text);

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// Name and content each, into a folder that is made where it is not there: all, or after an
/// OutputError none, so that no file of an earlier answer stands beside those of this one.
void write_together(const std::string& folder, const NamedTexts& files);

/// The same, over no file that is there. Throws OutputError, InputError.
void write_new_files(const std::string& folder, const NamedTexts& files);

}  // namespace stepcast::sim
