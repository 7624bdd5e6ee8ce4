// What many points of a sweep say alike, once with a count: refusals and warnings.
#pragma once

#include <string>

#include "sim/program/table_view.hpp"
#include "sim/study/results.hpp"

namespace stepcast::sim {

/// "540 of 864 points refused: 530 out of memory (nearest 1.20 GiB over), ...". Empty where none
/// is, or where the table shows them.
std::string refused_line(const Results& results, const TableView& view);

/// Warnings of one answer a line each; of a sweep those that differ in their numbers alone once.
std::string warnings_text(const Results& results);

}  // namespace stepcast::sim
