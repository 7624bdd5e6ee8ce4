// The columns of a calibration file, listed once: writing and reading walk the same list. The unit
// of a column follows from the member's type. Only calibration_table.cpp needs it.
#pragma once

#include <string>
#include <string_view>

#include "sim/calibration_table.hpp"

namespace stepcast::sim::detail {

inline constexpr const char* format_name = "stepcast calibration";
inline constexpr std::int64_t schema_version = 1;

inline const char* unit_of(const std::string&) { return "text"; }
inline const char* unit_of(std::int64_t) { return "1"; }
inline const char* unit_of(Bytes) { return "B"; }
inline const char* unit_of(Duration) { return "ps"; }
inline const char* unit_of(FlopsPerSecond) { return "FLOP/s"; }
inline const char* unit_of(BytesPerSecond) { return "B/s"; }

/// `column(name, member)` is called for each; `member` is a pointer to a member or a function of
/// the row, for std::invoke.
template <class Row, class Column>
void source_columns(Column& column) {
  column(
      "source", [](auto& row) -> auto& { return row.source.source; });
  column(
      "reference", [](auto& row) -> auto& { return row.source.reference; });
  column(
      "confidence", [](auto& row) -> auto& { return row.source.confidence; });
}

template <class Column>
void list_columns(Column& column, const GemmRow*) {
  using Row = GemmRow;
  column("gpu", &Row::gpu);
  column("dtype", &Row::dtype);
  column("m", &Row::m);
  column("n", &Row::n);
  column("k", &Row::k);
  column("layout", &Row::layout);
  column("data", &Row::data);
  column("rate", &Row::rate);
  source_columns<Row>(column);
}

template <class Column>
void list_columns(Column& column, const AttentionRow*) {
  using Row = AttentionRow;
  column("gpu", &Row::gpu);
  column("dtype", &Row::dtype);
  column("pass", &Row::pass);
  column("implementation", &Row::implementation);
  column("batch", &Row::batch);
  column("heads", &Row::heads);
  column("kv_heads", &Row::kv_heads);
  column("sequence", &Row::sequence);
  column("head_dim", &Row::head_dim);
  column("mask", &Row::mask);
  column("rate", &Row::rate);
  source_columns<Row>(column);
}

template <class Column>
void list_columns(Column& column, const ElementwiseRow*) {
  using Row = ElementwiseRow;
  column("gpu", &Row::gpu);
  column("dtype", &Row::dtype);
  column("kind", &Row::kind);
  column("implementation", &Row::implementation);
  column("tokens", &Row::tokens);
  column("shape", &Row::shape);
  column("bytes", &Row::bytes);
  column("duration", &Row::duration);
  source_columns<Row>(column);
}

template <class Column>
void list_columns(Column& column, const CollectiveRow*) {
  using Row = CollectiveRow;
  column("gpu", &Row::gpu);
  column("dtype", &Row::dtype);
  column("collective", &Row::collective);
  column("ranks", &Row::ranks);
  column("nodes", &Row::nodes);
  column("gpus_per_node", &Row::gpus_per_node);
  column("bytes", &Row::bytes);
  column("duration", &Row::duration);
  column("fabric", &Row::fabric);
  column("nccl", &Row::nccl);
  column("timing", &Row::timing);
  column("processes", &Row::processes);
  column("node_bandwidth", &Row::node_bandwidth);
  column("busbw", &Row::busbw);
  source_columns<Row>(column);
}

template <class Column>
void list_columns(Column& column, const CopyRow*) {
  using Row = CopyRow;
  column("gpu", &Row::gpu);
  column("kind", &Row::kind);
  column("what", &Row::what);
  column("gpus", &Row::gpus);
  column("rate", &Row::rate);
  source_columns<Row>(column);
}

template <class Column>
void list_columns(Column& column, const NcclTuningRow*) {
  using Row = NcclTuningRow;
  column("gpu", &Row::gpu);
  column("nccl", &Row::nccl);
  column("collective", &Row::collective);
  column("algorithm", &Row::algorithm);
  column("protocol", &Row::protocol);
  column("ranks", &Row::ranks);
  column("nodes", &Row::nodes);
  column("latency", &Row::latency);
  column("bandwidth", &Row::bandwidth);
  source_columns<Row>(column);
}

template <class Column>
void list_columns(Column& column, const NcclChoiceRow*) {
  using Row = NcclChoiceRow;
  column("gpu", &Row::gpu);
  column("nccl", &Row::nccl);
  column("collective", &Row::collective);
  column("ranks", &Row::ranks);
  column("nodes", &Row::nodes);
  column("bytes", &Row::bytes);
  column("algorithm", &Row::algorithm);
  column("protocol", &Row::protocol);
  column("channels", &Row::channels);
  column("estimate", &Row::estimate);
  source_columns<Row>(column);
}

/// Families that came after the first files of this version: a file without the group has no rows.
inline bool may_lack(std::string_view group) {
  return group == "/nccl_tuning" || group == "/nccl_choices";
}

/// `family(group, rows)` is called for each of the table's vectors.
template <class Table, class Family>
void list_families(Table& table, Family&& family) {
  family("/gemm", table.gemm);
  family("/attention", table.attention);
  family("/elementwise", table.elementwise);
  family("/collectives", table.collectives);
  family("/copies", table.copies);
  family("/nccl_tuning", table.nccl_tuning);
  family("/nccl_choices", table.nccl_choices);
}

}  // namespace stepcast::sim::detail
