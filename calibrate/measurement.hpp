// One CSV line with its cells by column name and checked conversions: what the importers of each
// kind share. Every complaint names file and line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/csv.hpp"
#include "sim/calibration_table.hpp"

namespace stepcast::calibrate {

/// The columns that only rows of stepcast-calibrate run fill, in the order of an export.
const std::vector<std::string>& columns_of_run();

/// Where each known column stands in a file's header.
class Columns {
 public:
  /// Throws InputError on a column that is unknown (with a suggestion), named twice, or missing.
  explicit Columns(const CsvFile& file);

  bool has(std::string_view column) const { return index_.contains(std::string(column)); }
  std::size_t at(std::string_view column) const { return index_.at(std::string(column)); }

 private:
  std::map<std::string, std::size_t> index_;
};

class Measurement {
 public:
  Measurement(const CsvFile& file, const Columns& columns, const CsvRow& row)
      : file_(file), columns_(columns), row_(row) {}

  /// The cell under `column`; "" where the file has no such column.
  const std::string& text(std::string_view column) const;
  /// Likewise, but an empty cell is an error.
  const std::string& stated(std::string_view column) const;
  double positive(std::string_view column) const;
  std::int64_t count(std::string_view column) const;
  /// A count, or 0 where the cell is empty or says "multi".
  std::int64_t count_if_stated(std::string_view column) const;
  /// A whole number from 0 on; 0 where the cell is empty.
  std::int64_t count_or_zero(std::string_view column) const;
  /// A number from 0 on; 0 where the cell is empty.
  double not_negative(std::string_view column) const;
  /// How well the row is known, and nothing where it does not say.
  sim::Quality quality() const;
  /// "m=4096;n=512" as a map; keys must be exactly among `keys`, in any order.
  std::map<std::string, std::string> shape(const std::vector<std::string>& keys) const;
  std::int64_t count_in(std::string_view name, std::string_view text) const;
  const std::string& shape_text() const;
  sim::RowSource source() const;
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;

 private:
  const CsvFile& file_;
  const Columns& columns_;
  const CsvRow& row_;
};

}  // namespace stepcast::calibrate
