#include "validate/compare/measurements.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/import/calibration_csv.hpp"

namespace stepcast::validate {
namespace {

template <class Row>
void add_missing(std::vector<Row>& to, const std::vector<Row>& from) {
  for (const Row& row : from)
    if (std::find(to.begin(), to.end(), row) == to.end()) to.push_back(row);
}

}  // namespace

std::vector<MeasuredRow> measured_rows(const sim::CsvFile& file) {
  std::vector<MeasuredRow> out;
  // Tables exported as CSV name the family of a row, publications its kind.
  auto kind = std::find(file.header.begin(), file.header.end(), "family");
  if (kind == file.header.end()) kind = std::find(file.header.begin(), file.header.end(), "kind");
  for (const sim::CsvRow& row : file.rows) {
    MeasuredRow measured{.line = row.line, .kind = {}, .table = {}};
    measured.table = sim::import_csv({file.path, file.header, {row}});
    measured.kind = row.cells[static_cast<std::size_t>(kind - file.header.begin())];
    out.push_back(std::move(measured));
  }
  if (out.empty()) throw InputError(file.path + ":1", "holds no row");
  return out;
}

sim::CalibrationTable pool_of(sim::CalibrationTable known, const std::vector<MeasuredRow>& rows) {
  for (const MeasuredRow& row : rows) {
    add_missing(known.gemm, row.table.gemm);
    add_missing(known.attention, row.table.attention);
    add_missing(known.elementwise, row.table.elementwise);
    add_missing(known.collectives, row.table.collectives);
  }
  return known;
}

}  // namespace stepcast::validate
