#include "calibrate/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/csv.hpp"
#include "calibrate/measurement.hpp"

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

class Lines {
 public:
  explicit Lines(bool measured) : columns_(header) {
    if (measured) columns_.insert(columns_.end(), columns_of_run().begin(), columns_of_run().end());
    text_ = fmt::format("{}\n", fmt::join(columns_, ","));
  }

  void append(Cells all, const sim::RowSource& source);
  void append(Cells all, const sim::RowSource& source, const sim::Quality& quality) {
    if (quality.samples > 0) {
      all["spread"] = fmt::format("{}", quality.spread);
      all["samples"] = fmt::format("{}", quality.samples);
      all["throttled"] = fmt::format("{}", quality.throttled);
      all["error"] = fmt::format("{}", quality.error);
    }
    append(std::move(all), source);
  }
  std::string take() { return std::move(text_); }

 private:
  std::vector<std::string> columns_;
  std::string text_;
};

void Lines::append(Cells all, const sim::RowSource& source) {
  all["source"] = source.source;
  all["url_or_repo_path"] = source.reference;
  all["confidence"] = source.confidence;
  all["device"] = source.on.device;
  all["driver"] = source.on.driver;
  all["runtime"] = source.on.runtime;
  all["gemm_library"] = source.on.gemm_library;
  all["collective_library"] = source.on.collective_library;
  all["clocks"] = source.on.clocks;
  all["date"] = source.on.date;
  all["command"] = source.on.command;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) text_ += ',';
    const auto cell = all.find(columns_[i]);
    if (cell != all.end()) text_ += csv_cell(cell->second);
  }
  text_ += '\n';
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
          {"data", row.data},
          {"cache", row.cache},
          {"choice", row.choice},
          {"accumulate", row.accumulate ? "1" : "0"}};
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
          {"implementation", row.implementation},
          {"cache", row.cache}};
}

Cells cells_of(const sim::ElementwiseRow& row) {
  return {{"gpu", row.gpu},
          {"kind", row.kind},
          {"shape_or_bytes",
           fmt::format("tokens={}{}{}", row.tokens, row.shape.empty() ? "" : ";", row.shape)},
          {"dtype", row.dtype},
          {"value", microseconds(row.duration)},
          {"unit", "us"},
          {"implementation", row.implementation},
          {"min_bytes_moved", fmt::format("{}", row.bytes.value)},
          {"pass", row.pass},
          {"width", fmt::format("{}", row.width)},
          {"cache", row.cache}};
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
                 {"timing", row.timing},
                 {"algorithm", row.algorithm},
                 {"protocol", row.protocol}};
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
          {"unit", "GB/s"},
          {"min_bytes_moved", row.bytes.value > 0 ? fmt::format("{}", row.bytes.value) : ""},
          {"cache", row.cache}};
}

Cells cells_of(const sim::LaunchRow& row) {
  return {{"gpu", row.gpu},
          {"kind", "launch"},
          {"shape_or_bytes", row.what},
          {"dtype", "n/a"},
          {"value", microseconds(row.duration)},
          {"unit", "us"}};
}

Cells cells_of(const sim::PowerRow& row) {
  return {{"gpu", row.gpu},
          {"kind", "power"},
          {"shape_or_bytes", row.load},
          {"dtype", "n/a"},
          {"value", number(row.power.value)},
          {"unit", "W"}};
}

Cells cells_of(const sim::OverlapRow& row) {
  return {{"gpu", row.gpu},
          {"kind", "overlap"},
          {"shape_or_bytes", fmt::format("{}", row.bytes.value)},
          {"ranks", fmt::format("{}", row.ranks)},
          {"nodes", fmt::format("{}", row.nodes)},
          {"dtype", "n/a"},
          {"value", microseconds(row.kernel_beside)},
          {"unit", "us"},
          {"kernel", row.kernel},
          {"collective", row.collective},
          {"kernel_alone", microseconds(row.kernel_alone)},
          {"kernel_beside", microseconds(row.kernel_beside)},
          {"collective_alone", microseconds(row.collective_alone)},
          {"collective_beside", microseconds(row.collective_beside)}};
}

template <class Row>
bool any_measured(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const Row& row) { return row.quality.samples > 0; });
}

}  // namespace

std::string export_csv(const sim::CalibrationTable& table) {
  Lines lines(any_measured(table.gemm) || any_measured(table.attention) ||
              any_measured(table.elementwise) || any_measured(table.collectives) ||
              any_measured(table.copies) || any_measured(table.launches) ||
              !table.overlaps.empty() || !table.powers.empty());
  const auto append = [&](const auto& rows) {
    for (const auto& row : rows) lines.append(cells_of(row), row.source, row.quality);
  };
  append(table.gemm);
  append(table.attention);
  append(table.elementwise);
  append(table.collectives);
  append(table.copies);
  append(table.launches);
  append(table.overlaps);
  for (const auto& row : table.powers) lines.append(cells_of(row), row.source);
  return lines.take();
}

}  // namespace stepcast::calibrate
