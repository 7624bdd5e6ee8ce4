#include "calibrate/export.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <vector>

#include "calibrate/csv.hpp"

namespace stepcast::calibrate {
namespace {

const std::vector<std::string> header = {"gpu",
                                         "kind",
                                         "shape_or_bytes",
                                         "ranks",
                                         "nodes",
                                         "gpus_per_node",
                                         "dtype",
                                         "value",
                                         "unit",
                                         "source",
                                         "url_or_repo_path",
                                         "confidence",
                                         "fabric",
                                         "inter_node_gbps_per_node",
                                         "nccl",
                                         "processes",
                                         "timing",
                                         "implementation",
                                         "data",
                                         "min_bytes_moved"};

using Cells = std::map<std::string_view, std::string>;

void append(std::string& text, const Cells& cells, const sim::RowSource& source) {
  Cells all = cells;
  all["source"] = source.source;
  all["url_or_repo_path"] = source.reference;
  all["confidence"] = source.confidence;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (i > 0) text += ',';
    const auto cell = all.find(header[i]);
    if (cell != all.end()) text += csv_cell(cell->second);
  }
  text += '\n';
}

std::string number(double value) { return fmt::format("{}", value); }
std::string stated(std::int64_t count) { return count == 0 ? "multi" : fmt::format("{}", count); }
std::string microseconds(Duration d) { return number(static_cast<double>(d.count()) / 1e6); }

Cells cells_of(const sim::GemmRow& row) {
  const std::string layout =
      row.layout.empty() ? "" : fmt::format(";opA={};opB={}", row.layout[0], row.layout.substr(1));
  return {{"gpu", row.gpu},
          {"kind", "gemm"},
          {"shape_or_bytes", fmt::format("m={};n={};k={}", row.m, row.n, row.k) + layout},
          {"dtype", row.dtype},
          {"value", number(row.rate.value / 1e12)},
          {"unit", "TFLOP/s"},
          {"data", row.data}};
}

Cells cells_of(const sim::AttentionRow& row) {
  static const std::map<std::string, std::string> kinds = {
      {"forward", "attention_fwd"},
      {"backward", "attention_bwd"},
      {"forward_backward", "attention_fwd_bwd"}};
  static const std::map<std::string, std::string> masks = {
      {"causal", "1"}, {"full", "0"}, {"not_stated", "unknown"}};
  std::string shape = row.batch > 0 ? fmt::format("b={};", row.batch) : "";
  if (row.heads > 0)
    shape += row.heads == row.kv_heads ? fmt::format("h={};", row.heads)
                                       : fmt::format("hq={};hkv={};", row.heads, row.kv_heads);
  shape += fmt::format("s={};d={};causal={}", row.sequence, row.head_dim, masks.at(row.mask));
  return {{"gpu", row.gpu},
          {"kind", kinds.at(row.pass)},
          {"shape_or_bytes", shape},
          {"dtype", row.dtype},
          {"value", number(row.rate.value / 1e12)},
          {"unit", "TFLOP/s"},
          {"implementation", row.implementation}};
}

Cells cells_of(const sim::ElementwiseRow& row) {
  return {{"gpu", row.gpu},
          {"kind", row.kind},
          {"shape_or_bytes", fmt::format("tokens={};{}", row.tokens, row.shape)},
          {"dtype", row.dtype},
          {"value", microseconds(row.duration)},
          {"unit", "us"},
          {"implementation", row.implementation},
          {"min_bytes_moved", fmt::format("{}", row.bytes.value)}};
}

Cells cells_of(const sim::CollectiveRow& row) {
  const bool peak = row.bytes.value == 0;
  Cells cells = {{"gpu", row.gpu},
                 {"kind", row.collective},
                 {"shape_or_bytes", peak ? "max" : fmt::format("{}", row.bytes.value)},
                 {"ranks", stated(row.ranks)},
                 {"nodes", stated(row.nodes)},
                 {"gpus_per_node", stated(row.gpus_per_node)},
                 {"dtype", row.dtype},
                 {"value", peak ? number(row.busbw.value / 1e9) : microseconds(row.duration)},
                 {"unit", peak ? "GB/s busbw" : "us"},
                 {"fabric", row.fabric},
                 {"nccl", row.nccl},
                 {"processes", row.processes},
                 {"timing", row.timing}};
  if (row.node_bandwidth.value > 0)
    cells["inter_node_gbps_per_node"] = number(row.node_bandwidth.value * 8 / 1e9);
  return cells;
}

Cells cells_of(const sim::CopyRow& row) {
  return {{"gpu", row.gpu},
          {"kind", "copy"},
          {"shape_or_bytes", row.what},
          {"ranks", fmt::format("{}", row.gpus)},
          {"dtype", "n/a"},
          {"value", number(row.rate.value / 1e9)},
          {"unit", "GB/s"}};
}

}  // namespace

std::string export_csv(const sim::CalibrationTable& table) {
  std::string text = fmt::format("{}\n", fmt::join(header, ","));
  for (const auto& row : table.gemm) append(text, cells_of(row), row.source);
  for (const auto& row : table.attention) append(text, cells_of(row), row.source);
  for (const auto& row : table.elementwise) append(text, cells_of(row), row.source);
  for (const auto& row : table.collectives) append(text, cells_of(row), row.source);
  for (const auto& row : table.copies) append(text, cells_of(row), row.source);
  return text;
}

}  // namespace stepcast::calibrate
