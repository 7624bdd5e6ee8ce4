// Several calibration tables as one: merge, and the tables a scenario names.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/calibration_table.hpp"
#include "sim/gpu_names.hpp"

namespace stepcast::sim {
namespace {

// What makes two rows the same measurement: what was measured, on what.
auto key(const GemmRow& r) { return std::tie(r.gpu, r.dtype, r.m, r.n, r.k, r.layout, r.data); }
auto key(const AttentionRow& r) {
  return std::tie(r.gpu, r.dtype, r.pass, r.implementation, r.batch, r.heads, r.kv_heads,
                  r.sequence, r.head_dim, r.mask);
}
auto key(const ElementwiseRow& r) {
  return std::tie(r.gpu, r.dtype, r.kind, r.implementation, r.tokens, r.shape);
}
auto key(const CollectiveRow& r) {
  return std::tie(r.gpu, r.dtype, r.collective, r.ranks, r.nodes, r.gpus_per_node, r.bytes.value,
                  r.fabric, r.nccl, r.timing, r.processes, r.node_bandwidth.value);
}
auto key(const CopyRow& r) { return std::tie(r.gpu, r.kind, r.what, r.gpus); }
auto key(const NcclTuningRow& r) {
  return std::tie(r.gpu, r.nccl, r.collective, r.algorithm, r.protocol, r.ranks, r.nodes);
}
auto key(const NcclChoiceRow& r) {
  return std::tie(r.gpu, r.nccl, r.collective, r.ranks, r.nodes, r.bytes.value);
}

/// Sizes of one collective over one group on one kind of wire, as far as measured.
struct Curve {
  const CollectiveRow* first;
  std::set<std::int64_t> sizes;

  bool holds(const CollectiveRow& row) const {
    return row.bytes.value > 0 && row.collective == first->collective &&
           row.ranks == first->ranks && row.nodes == first->nodes && row.fabric == first->fabric &&
           std::abs(row.node_bandwidth.value - first->node_bandwidth.value) <=
               0.1 * first->node_bandwidth.value &&
           kinship(row.gpu, first->gpu) == Kinship::same;
  }
};

std::vector<Curve> curves_of(const std::vector<CollectiveRow>& rows) {
  std::vector<Curve> curves;
  for (const CollectiveRow& row : rows) {
    if (row.bytes.value == 0) continue;
    auto same = std::find_if(curves.begin(), curves.end(),
                             [&](const Curve& curve) { return curve.holds(row); });
    if (same == curves.end()) same = curves.insert(same, {&row, {}});
    same->sizes.insert(row.bytes.value);
  }
  std::erase_if(curves, [](const Curve& curve) { return curve.sizes.size() < 3; });
  return curves;
}

void drop_replaced(std::vector<CollectiveRow>& earlier, const std::vector<CollectiveRow>& later) {
  if (earlier.empty()) return;
  const std::vector<Curve> curves = curves_of(later);
  std::erase_if(earlier, [&](const CollectiveRow& row) {
    return std::any_of(curves.begin(), curves.end(),
                       [&](const Curve& curve) { return curve.holds(row); });
  });
}

/// Drops the earlier rows that `later` measures again, then appends `later`. Equal keys within one
/// table stay: they are repeated measurements.
template <class Row>
void merge_rows(std::vector<Row>& earlier, const std::vector<Row>& later) {
  std::set<decltype(key(std::declval<const Row&>()))> known;
  for (const Row& row : later) known.insert(key(row));
  std::erase_if(earlier, [&](const Row& row) { return known.contains(key(row)); });
  earlier.insert(earlier.end(), later.begin(), later.end());
}

}  // namespace

CalibrationTable merge(CalibrationTable earlier, const CalibrationTable& later) {
  merge_rows(earlier.gemm, later.gemm);
  merge_rows(earlier.attention, later.attention);
  merge_rows(earlier.elementwise, later.elementwise);
  drop_replaced(earlier.collectives, later.collectives);
  merge_rows(earlier.collectives, later.collectives);
  merge_rows(earlier.copies, later.copies);
  merge_rows(earlier.nccl_tuning, later.nccl_tuning);
  merge_rows(earlier.nccl_choices, later.nccl_choices);
  if (earlier.title.empty())
    earlier.title = later.title;
  else if (!later.title.empty())
    earlier.title += " + " + later.title;
  earlier.created = std::max(earlier.created, later.created);
  return earlier;
}

CalibrationTable read_calibrations(std::span<const std::string> tables) {
  CalibrationTable all;
  for (const std::string& table : tables)
    all = merge(std::move(all),
                read_calibration(table == "published" ? published_calibration() : table));
  return all;
}

std::string published_calibration() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return "published.h5";
  return (program.parent_path() / "published.h5").string();
}

}  // namespace stepcast::sim
