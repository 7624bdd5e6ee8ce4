// A log as numbered lines, without what terminals and launchers put around them, and the list of
// what an importer left aside. Knows no format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::calibrate {

struct TextLine {
  std::int64_t number = 0;  // in the file, counted from 1
  std::string text;
};

struct TextFile {
  std::string path;
  std::vector<TextLine> lines;

  /// The last component of the path: what a table names as its source.
  std::string name() const;
  [[noreturn]] void fail(std::int64_t line, const std::string& what,
                         const std::string& hint = {}) const;
};

/// Colours, carriage returns, timestamps and the rank prefixes of Open MPI ("[1,0]<stdout>:") and
/// srun ("0: ") are taken off. Throws InputError on a byte that is no text.
TextFile parse_text(std::string path, std::string_view text);

/// The bytes of a file of at most 64 MiB; InputError when it cannot be read.
std::string read_bytes(const std::string& path);
/// InputError when it cannot be written.
void write_bytes(const std::string& path, const std::string& bytes);

/// Words between blanks.
std::vector<std::string> words_of(std::string_view text);

/// What was read over, by reason, with the first line of each; and what the user should know.
class Ignored {
 public:
  void add(const std::string& what, std::int64_t line);
  /// A whole sentence, printed as it is.
  void note(const std::string& sentence, std::int64_t line);
  /// Another reader has read them after all.
  void forget(const std::string& what) { reasons_.erase(what); }
  /// One sentence for each reason: "log.txt:3: ignored 12 x a line of NCCL's own log".
  std::string text(const std::string& path) const;
  bool empty() const { return reasons_.empty(); }

 private:
  struct Reason {
    std::int64_t first_line = 0, count = 0;
    bool note = false;
  };
  std::map<std::string, Reason> reasons_;
};

}  // namespace stepcast::calibrate
