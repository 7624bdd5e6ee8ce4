// The row families of a calibration table and their columns, each said once: the HDF5 file, CSV,
// merging, checks, diff and show walk these lists. A new column is one entry in the .cpp, a new
// family one function there. Knows no file.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/tables/calibration_table.hpp"

namespace stepcast::sim {

/// A cell as files hold it: text, a whole number (count, bytes, picoseconds, flag) or a real one.
using Cell = std::variant<std::string_view, std::int64_t, double>;

enum class Stored : std::uint8_t { text, flag, whole, real };

/// Rows that agree in every key are the same measurement, and the figure is what was measured.
enum class Role : std::uint8_t { key, figure, note };

struct Column {
  const char* name;
  const char* unit;  // text, 1 (counts, flags, shares), ps, B, B/s, FLOP/s, W
  Stored stored;
  Role role;
  Cell (*get)(const CalibrationTable&, std::size_t row);  // text is a view into the table
  void (*set)(CalibrationTable&, std::size_t row, const Cell&);
  bool positive = false;                      // other numbers may be zero, none is negative
  std::span<const std::string_view> words{};  // what a text may be; none: any
  std::int64_t since = 1;                     // version of the file that brought it
  const char* (*text_fault)(std::string_view) = nullptr;  // "" for a text that it may hold
};

struct Family {
  const char* name;             // its group in the file: "gemm"
  std::vector<Column> columns;  // all but those of its source; the first is "gpu"
  std::size_t (*size)(const CalibrationTable&);
  void (*resize)(CalibrationTable&, std::size_t rows);
  void (*append)(CalibrationTable& to, const CalibrationTable& from);
  void (*erase)(CalibrationTable&, const std::vector<bool>& rows);
  const SharedSource& (*source)(const CalibrationTable&, std::size_t row);
  void (*set_source)(CalibrationTable&, std::size_t row, const SharedSource&);
  Quality (*quality)(const CalibrationTable&, std::size_t row);  // nothing where it has none
  std::int64_t since = 1;  // files of an older version may lack it
  bool few = false;        // rows that a reader sees one by one
  bool of_all = false;     // what is told of one GPU is taken from the rows of others as well
};

/// All families, in the order of the file.
const std::vector<Family>& families();

/// Adds all rows of `from`, also repeated ones.
void append(CalibrationTable& to, const CalibrationTable& from);

/// A column of where rows are from, all text.
struct SourceColumn {
  const char* name;
  std::string& (*in)(RowSource&);
};
extern const std::array<SourceColumn, 11> source_columns;

/// The cells that say what was measured; their text is a view into the table.
std::vector<Cell> key_of(const Family&, const CalibrationTable&, std::size_t row);

/// What no measurement can hold, as "rate \"0\" is not a positive number"; "" for a good row.
std::string fault_of(const Family&, const CalibrationTable&, std::size_t row);
/// Whether no row has one; sooner than asking each.
bool is_sound(const Family&, const CalibrationTable&);

/// A cell for files: text as it is, the shortest number that reads back as the same.
std::string exact_text(const Cell&);

/// Whether a cell is neither an empty text nor zero: those are what a source does not say.
bool says_something(const Cell&);

/// A cell for readers, three digits of what is no count, and a unit that fits: "48.1 us", "4096".
std::string readable_text(const Column&, const Cell&);

}  // namespace stepcast::sim
