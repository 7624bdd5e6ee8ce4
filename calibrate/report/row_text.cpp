#include "calibrate/report/row_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <variant>

namespace stepcast::calibrate {
namespace {

/// The cell that is the figure; null: none says something.
const sim::Column* figure_of(const sim::Family& family, const sim::CalibrationTable& table,
                             std::size_t row) {
  for (const sim::Column& column : family.columns)
    if (column.role == sim::Role::figure && sim::says_something(column.get(table, row)))
      return &column;
  return nullptr;
}

}  // namespace

double row_time(const sim::Family& family, const sim::CalibrationTable& table, std::size_t row) {
  const sim::Column* column = figure_of(family, table, row);
  if (column == nullptr) return 0.0;
  const sim::Cell cell = column->get(table, row);
  if (const auto* duration = std::get_if<std::int64_t>(&cell))
    return 1e-12 * static_cast<double>(*duration);
  return 1.0 / std::get<double>(cell);
}

std::string row_name(const sim::Family& family, const sim::CalibrationTable& table,
                     std::size_t row) {
  std::string name;
  for (const sim::Column& column : family.columns) {
    const sim::Cell cell = column.get(table, row);
    const bool is_gpu = &column == family.columns.data();
    if (is_gpu || column.role != sim::Role::key || !sim::says_something(cell)) continue;
    if (!name.empty()) name += ' ';
    if (column.stored != sim::Stored::text) name += fmt::format("{}=", column.name);
    name += sim::readable_text(column, cell);
  }
  return name;
}

std::string row_figure(const sim::Family& family, const sim::CalibrationTable& table,
                       std::size_t row, double times) {
  const sim::Column* column = figure_of(family, table, row);
  if (column == nullptr) return "-";
  sim::Cell cell = column->get(table, row);
  if (auto* duration = std::get_if<std::int64_t>(&cell))
    *duration = std::llround(times * static_cast<double>(*duration));
  else
    cell = std::get<double>(cell) / times;
  return sim::readable_text(*column, cell);
}

}  // namespace stepcast::calibrate
