// The columns of a calibration file, listed once: writing and reading walk the same list. The unit
// of a column follows from the member's type. Only calibration_table.cpp needs it.
#pragma once

#include <string>
#include <string_view>

#include "sim/calibration_table.hpp"

namespace stepcast::sim::detail {

inline constexpr const char* format_name = "stepcast calibration";
inline constexpr std::int64_t schema_version = 2;
inline constexpr std::int64_t oldest_version = 1;

inline const char* unit_of(const std::string&) { return "text"; }
inline const char* unit_of(std::int64_t) { return "1"; }
inline const char* unit_of(bool) { return "1"; }
inline const char* unit_of(double) { return "1"; }
inline const char* unit_of(Watts) { return "W"; }
inline const char* unit_of(Bytes) { return "B"; }
inline const char* unit_of(Duration) { return "ps"; }
inline const char* unit_of(FlopsPerSecond) { return "FLOP/s"; }
inline const char* unit_of(BytesPerSecond) { return "B/s"; }

/// A row of the group /sources.
template <class Column>
void list_columns(Column& column, const RowSource*) {
  using Row = RowSource;
  const auto on = [](auto member) {
    return [member](auto& row) -> auto& { return row.on.*member; };
  };
  column("source", &Row::source);
  column("reference", &Row::reference);
  column("confidence", &Row::confidence);
  column("device", on(&MeasuredOn::device));
  column("driver", on(&MeasuredOn::driver));
  column("runtime", on(&MeasuredOn::runtime));
  column("gemm_library", on(&MeasuredOn::gemm_library));
  column("collective_library", on(&MeasuredOn::collective_library));
  column("clocks", on(&MeasuredOn::clocks));
  column("date", on(&MeasuredOn::date));
  column("command", on(&MeasuredOn::command));
}

template <class Column>
void quality_columns(Column& column) {
  const auto quality = [](auto member) {
    return [member](auto& row) -> auto& { return row.quality.*member; };
  };
  column("spread", quality(&Quality::spread), 2);
  column("samples", quality(&Quality::samples), 2);
  column("throttled", quality(&Quality::throttled), 2);
  column("error", quality(&Quality::error), 2);
}

/// `column(name, member, since)` is called for each column of a family but its source: `member` is
/// a pointer to a member or a function of the row, for std::invoke; `since` is the version of the
/// schema that brought the column, 1 if left out.
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
  column("accumulate", &Row::accumulate, 2);
  column("choice", &Row::choice, 2);
  column("cache", &Row::cache, 2);
  quality_columns(column);
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
  column("cache", &Row::cache, 2);
  quality_columns(column);
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
  column("width", &Row::width, 2);
  column("pass", &Row::pass, 2);
  column("cache", &Row::cache, 2);
  quality_columns(column);
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
  column("algorithm", &Row::algorithm, 2);
  column("protocol", &Row::protocol, 2);
  quality_columns(column);
}

template <class Column>
void list_columns(Column& column, const CopyRow*) {
  using Row = CopyRow;
  column("gpu", &Row::gpu);
  column("kind", &Row::kind);
  column("what", &Row::what);
  column("gpus", &Row::gpus);
  column("rate", &Row::rate);
  column("bytes", &Row::bytes, 2);
  column("cache", &Row::cache, 2);
  quality_columns(column);
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
}

template <class Column>
void list_columns(Column& column, const LaunchRow*) {
  using Row = LaunchRow;
  column("gpu", &Row::gpu);
  column("what", &Row::what);
  column("duration", &Row::duration);
  quality_columns(column);
}

template <class Column>
void list_columns(Column& column, const OverlapRow*) {
  using Row = OverlapRow;
  column("gpu", &Row::gpu);
  column("kernel", &Row::kernel);
  column("collective", &Row::collective);
  column("ranks", &Row::ranks);
  column("nodes", &Row::nodes);
  column("bytes", &Row::bytes);
  column("kernel_alone", &Row::kernel_alone);
  column("kernel_beside", &Row::kernel_beside);
  column("collective_alone", &Row::collective_alone);
  column("collective_beside", &Row::collective_beside);
  quality_columns(column);
}

template <class Column>
void list_columns(Column& column, const PowerRow*) {
  using Row = PowerRow;
  column("gpu", &Row::gpu);
  column("load", &Row::load);
  column("power", &Row::power);
}

/// Families that came after the first files: a file without the group has no rows.
inline bool may_lack(std::string_view group, std::int64_t version) {
  const bool nccl = group == "/nccl_tuning" || group == "/nccl_choices";
  const bool second = group == "/launches" || group == "/overlaps" || group == "/powers";
  return version == 1 && (nccl || second);
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
  family("/launches", table.launches);
  family("/overlaps", table.overlaps);
  family("/powers", table.powers);
}

}  // namespace stepcast::sim::detail
