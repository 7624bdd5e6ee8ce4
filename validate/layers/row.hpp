// A measured layer of experts as its table states it: one row of moe_layers.csv. Interprets
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/csv.hpp"

namespace stepcast::validate {

struct LayerRow {
  std::string file;
  std::int64_t line = 0;
  std::string id, gpu, precision, recipe, dispatcher, routing, source, notes;
  std::int64_t gpus = 1, hidden = 0, ffn = 0, experts = 0, per_token = 0, shared_ffn = 0;
  std::int64_t expert = 1, tensor = 1, sequence = 0, micro_batch = 1;
  // Of routers that choose among groups; the table may leave these columns out.
  std::int64_t groups = 1, group_limit = 1;
  double forward_s = 0, backward_s = 0;  // measured

  double both_s() const { return forward_s + backward_s; }
};

/// Reads rows of these columns, in any order; times are in milliseconds. Throws InputError with
/// file:line: an unknown column, a cell that is no such number, a sum that is not that of its
/// parts.
std::vector<LayerRow> layer_rows(const sim::CsvFile& file);

}  // namespace stepcast::validate
