// Several calibration tables as one: merge, and the tables a scenario names.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "sim/calibration_keys.hpp"
#include "sim/calibration_table.hpp"
#include "sim/gpu_names.hpp"
#include "sim/installation.hpp"

namespace stepcast::sim {
namespace {

/// Sizes of one collective over one group on one kind of wire, as far as measured.
struct Curve {
  const CollectiveRow* first;
  std::set<std::int64_t> sizes;

  bool holds(const CollectiveRow& row) const {
    return row.bytes.value > 0 && row.algorithm == first->algorithm &&
           row.protocol == first->protocol && row.collective == first->collective &&
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
  std::set<decltype(key_of(std::declval<const Row&>()))> known;
  for (const Row& row : later) known.insert(key_of(row));
  std::erase_if(earlier, [&](const Row& row) { return known.contains(key_of(row)); });
  earlier.insert(earlier.end(), later.begin(), later.end());
}

template <class Row>
bool covers_rows(const std::vector<Row>& table, const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [&](const Row& wanted) {
    return std::any_of(table.begin(), table.end(),
                       [&](const Row& row) { return key_of(row) == key_of(wanted); });
  });
}

/// "published" is shipped; "host" is what was measured on this machine's cores.
std::string file_of(const std::string& table) {
  if (table == "published") return published_calibration();
  if (table != "host") return table;
  std::string file = beside_program("host.h5");
  std::error_code failed;
  if (!std::filesystem::exists(file, failed))
    throw InputError(
        "calibration table 'host'", "this machine is not measured: no " + file,
        "stepcast-calibrate run --device host --for SCENARIO.toml --quick --out " + file);
  return file;
}

}  // namespace

CalibrationTable update(CalibrationTable earlier, const CalibrationTable& later) {
  merge_rows(earlier.gemm, later.gemm);
  merge_rows(earlier.attention, later.attention);
  merge_rows(earlier.elementwise, later.elementwise);
  merge_rows(earlier.collectives, later.collectives);
  merge_rows(earlier.copies, later.copies);
  merge_rows(earlier.nccl_tuning, later.nccl_tuning);
  merge_rows(earlier.nccl_choices, later.nccl_choices);
  merge_rows(earlier.launches, later.launches);
  merge_rows(earlier.overlaps, later.overlaps);
  merge_rows(earlier.powers, later.powers);
  if (earlier.title.empty()) earlier.title = later.title;
  earlier.created = std::max(earlier.created, later.created);
  return earlier;
}

CalibrationTable merge(CalibrationTable earlier, const CalibrationTable& later) {
  drop_replaced(earlier.collectives, later.collectives);
  const std::string title = earlier.title.empty() || later.title.empty()
                                ? earlier.title + later.title
                                : earlier.title + " + " + later.title;
  earlier = update(std::move(earlier), later);
  earlier.title = title;
  return earlier;
}

bool covers(const CalibrationTable& table, const CalibrationTable& rows) {
  return covers_rows(table.gemm, rows.gemm) && covers_rows(table.attention, rows.attention) &&
         covers_rows(table.elementwise, rows.elementwise) &&
         covers_rows(table.collectives, rows.collectives) &&
         covers_rows(table.copies, rows.copies) && covers_rows(table.launches, rows.launches) &&
         covers_rows(table.overlaps, rows.overlaps) && covers_rows(table.powers, rows.powers) &&
         covers_rows(table.nccl_tuning, rows.nccl_tuning) &&
         covers_rows(table.nccl_choices, rows.nccl_choices);
}

CalibrationTable read_calibrations(std::span<const std::string> tables) {
  CalibrationTable all;
  for (const std::string& table : tables)
    all = merge(std::move(all), read_calibration(file_of(table)));
  return all;
}

std::string published_calibration() { return shipped_file("published.h5"); }

}  // namespace stepcast::sim
