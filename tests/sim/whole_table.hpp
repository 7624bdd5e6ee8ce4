// A table that has a value in every column of every family, made from the lists themselves, so that
// a new column is tested at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/tables/calibration_columns.hpp"

namespace stepcast::sim {

/// What a machine may do in the column's unit: rates are of millions a second.
inline double plausible(const Column& column, std::int64_t number) {
  const double value = static_cast<double>(number) / 7.0;
  return std::string_view(column.unit).ends_with("/s") ? 1e6 * value : value;
}

/// As CSV has to quote it, where the column takes any text.
inline std::string text_of(const Column& column, std::size_t row) {
  if (!column.words.empty()) return std::string(column.words.back());
  if (column.name == std::string_view("dtype")) return "bf16";
  if (column.name == std::string_view("processes")) return "8 per node";
  return std::string("a \"") + column.name + "\", " + std::to_string(row);
}

/// Numbers that no two columns share.
inline void fill(CalibrationTable& table, const Family& family, std::size_t row) {
  std::int64_t number = 1000 * static_cast<std::int64_t>(row + 1);
  for (const Column& column : family.columns) {
    ++number;
    if (column.stored == Stored::text)
      column.set(table, row, std::string_view(text_of(column, row)));
    else if (column.stored == Stored::flag)
      column.set(table, row, std::int64_t{1});
    else if (column.stored == Stored::whole)
      column.set(table, row, number);
    else
      column.set(table, row, plausible(column, number));
  }
  RowSource source;
  for (const SourceColumn& column : source_columns)
    column.in(source) = std::string(column.name) + " " + std::to_string(row);
  source.confidence = "medium";
  family.set_source(table, row, source);
}

inline CalibrationTable whole_table() {
  CalibrationTable table;
  table.title = "whole";
  table.created = "2026-11-22";
  for (const Family& family : families()) {
    family.resize(table, 2);
    for (std::size_t row = 0; row < 2; ++row) fill(table, family, row);
  }
  return table;
}

}  // namespace stepcast::sim
