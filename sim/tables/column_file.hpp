// Files of named columns: groups with one 1-D dataset per column, a `unit` attribute on each, and
// text or integer attributes. HDF5, or our own flat form, which is read without HDF5's twenty
// libraries. Knows no table of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::sim {

class WholeFile;

/// Writes a file that appears whole with finish(). Throws OutputError when it cannot be written.
/// Parents ("/", "/gemm") must exist.
class ColumnWriter {
 public:
  virtual ~ColumnWriter() = default;

  virtual void group(const std::string& name) = 0;
  virtual void attribute(const std::string& object, const std::string& name,
                         const std::string& value) = 0;
  virtual void attribute(const std::string& object, const std::string& name,
                         std::int64_t value) = 0;
  /// `dataset` is a path: "/gemm/rate".
  virtual void column(const std::string& dataset, std::span<const double> values,
                      const std::string& unit) = 0;
  virtual void column(const std::string& dataset, std::span<const std::int64_t> values,
                      const std::string& unit) = 0;
  virtual void column(const std::string& dataset, std::span<const std::string> values,
                      const std::string& unit = "text") = 0;
  virtual void finish() = 0;
  /// finish() in two steps, for several files of which all must be there: seal(), then keep the
  /// file().
  virtual void seal() = 0;
  virtual WholeFile& file() = 0;
};

/// The same text in rows that follow one another, up to `end`.
struct TextRun {
  std::string text;
  std::size_t end;
};

/// Reads such a file. Every failure is an InputError that names the file, and the dataset if there
/// is one.
class ColumnReader {
 public:
  virtual ~ColumnReader() = default;

  virtual const std::string& path() const = 0;
  virtual bool has(const std::string& object) const = 0;
  virtual bool has_attribute(const std::string& object, const std::string& name) const = 0;
  virtual std::string text_attribute(const std::string& object, const std::string& name) const = 0;
  virtual std::int64_t integer_attribute(const std::string& object,
                                         const std::string& name) const = 0;
  virtual std::vector<double> doubles(const std::string& dataset) const = 0;
  virtual std::vector<std::int64_t> integers(const std::string& dataset) const = 0;
  virtual std::vector<std::string> texts(const std::string& dataset) const = 0;
  /// The same as runs, which of a sorted column are few. Inline: the HDF5 module has readers too,
  /// and finds no function of a program that is linked statically.
  virtual std::vector<TextRun> text_runs(const std::string& dataset) const {
    std::vector<TextRun> runs;
    for (std::string& text : texts(dataset)) {
      const std::size_t end = runs.empty() ? 1 : runs.back().end + 1;
      if (!runs.empty() && runs.back().text == text)
        runs.back().end = end;
      else
        runs.push_back({std::move(text), end});
    }
    return runs;
  }
};

/// The ending of the flat form.
inline constexpr const char* flat_ending = ".columns";

/// Flat where `path` ends so, else HDF5. Throws InputError when HDF5 is wanted and cannot be
/// loaded.
std::unique_ptr<ColumnWriter> write_columns(const std::string& path);

/// The same, by what the file begins with.
std::unique_ptr<ColumnReader> read_columns(const std::string& path);

}  // namespace stepcast::sim
