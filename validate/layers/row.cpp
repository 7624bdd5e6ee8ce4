#include "validate/layers/row.hpp"

#include <cmath>

#include "sim/files/numbers.hpp"

namespace stepcast::validate {
namespace {

constexpr std::pair<const char*, std::string LayerRow::*> layer_texts[] = {
    {"id", &LayerRow::id},
    {"gpu", &LayerRow::gpu},
    {"precision", &LayerRow::precision},
    {"fp8_recipe", &LayerRow::recipe},
    {"dispatcher", &LayerRow::dispatcher},
    {"routing", &LayerRow::routing},
    {"source", &LayerRow::source},
    {"notes", &LayerRow::notes}};
constexpr std::pair<const char*, std::int64_t LayerRow::*> layer_counts[] = {
    {"gpus", &LayerRow::gpus},        {"hidden", &LayerRow::hidden},
    {"moe_ffn", &LayerRow::ffn},      {"experts", &LayerRow::experts},
    {"topk", &LayerRow::per_token},   {"shared_ffn", &LayerRow::shared_ffn},
    {"ep", &LayerRow::expert},        {"tp", &LayerRow::tensor},
    {"seq_len", &LayerRow::sequence}, {"micro_batch", &LayerRow::micro_batch}};
constexpr std::pair<const char*, std::int64_t LayerRow::*> group_counts[] = {
    {"router_groups", &LayerRow::groups}, {"router_group_limit", &LayerRow::group_limit}};
constexpr const char* of_times[] = {"forward_ms", "backward_ms", "fwd_bwd_ms", "peak_bytes"};

std::vector<std::string> layer_columns() {
  std::vector<std::string> out(std::begin(of_times), std::end(of_times));
  for (const auto& [name, member] : layer_texts) out.emplace_back(name);
  for (const auto& [name, member] : layer_counts) out.emplace_back(name);
  for (const auto& [name, member] : group_counts) out.emplace_back(name);
  return out;
}

std::int64_t whole_cell(const sim::CsvLine& line, const char* column) {
  const auto value = sim::number_in<std::int64_t>(line.stated(column));
  if (!value || *value < 0 || *value > 1'000'000'000)
    line.fail("'" + line.text(column) + "' in column " + column + " is unreadable",
              "a whole number");
  return *value;
}

double milliseconds(const sim::CsvLine& line, const char* column) {
  const auto value = sim::number_in<double>(line.stated(column));
  if (!value || !(*value > 0))
    line.fail("'" + line.text(column) + "' in column " + column + " is unreadable",
              "milliseconds, more than 0");
  return *value * 1e-3;
}

}  // namespace

std::vector<LayerRow> layer_rows(const sim::CsvFile& file) {
  const sim::CsvColumns columns = sim::columns_of(file, layer_columns());
  std::vector<LayerRow> out;
  for (const sim::CsvRow& cells : file.rows) {
    const sim::CsvLine line(file, columns, cells);
    LayerRow row;
    row.file = file.path;
    row.line = cells.line;
    for (const auto& [name, member] : layer_texts) row.*member = line.text(name);
    for (const auto& [name, member] : layer_counts) row.*member = whole_cell(line, name);
    for (const auto& [name, member] : group_counts)
      if (!line.text(name).empty()) row.*member = whole_cell(line, name);
    if (row.id.empty()) line.fail("a row without an id");
    row.forward_s = milliseconds(line, "forward_ms");
    row.backward_s = milliseconds(line, "backward_ms");
    constexpr double digits = 1e-6;  // of a table that has four of a millisecond
    if (!line.text("fwd_bwd_ms").empty() &&
        std::abs(milliseconds(line, "fwd_bwd_ms") - row.both_s()) > digits)
      line.fail("fwd_bwd_ms is not the sum of forward_ms and backward_ms");
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace stepcast::validate
