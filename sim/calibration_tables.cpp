// Several calibration tables as one: merge, and the tables a scenario names.
#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include "sim/calibration_table.hpp"

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
  merge_rows(earlier.collectives, later.collectives);
  merge_rows(earlier.copies, later.copies);
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
