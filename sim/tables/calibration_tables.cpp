// Several calibration tables as one: merge, and the tables a scenario names.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/program/installation.hpp"
#include "sim/tables/calibration_columns.hpp"
#include "sim/tables/calibration_file.hpp"
#include "sim/tables/column_file.hpp"
#include "sim/tables/gpu_names.hpp"

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

using Keys = std::set<std::vector<Cell>>;

Keys keys_of(const Family& family, const CalibrationTable& table) {
  Keys keys;
  for (std::size_t row = 0; row < family.size(table); ++row)
    keys.insert(key_of(family, table, row));
  return keys;
}

/// Drops the earlier rows that `later` measures again. Equal keys within one table stay: they are
/// repeated measurements.
void drop_measured_again(const Family& family, CalibrationTable& earlier,
                         const CalibrationTable& later) {
  if (family.size(earlier) == 0 || family.size(later) == 0) return;
  const Keys known = keys_of(family, later);
  std::vector<bool> gone(family.size(earlier));
  for (std::size_t row = 0; row < gone.size(); ++row)
    gone[row] = known.contains(key_of(family, earlier, row));
  family.erase(earlier, gone);
}

}  // namespace

// "published" is shipped; "host" is what was measured on this machine's cores.
std::string calibration_file(const std::string& table) {
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

void append(CalibrationTable& to, const CalibrationTable& from) {
  for (const Family& family : families()) family.append(to, from);
}

std::size_t num_rows(const CalibrationTable& table) {
  std::size_t rows = 0;
  for (const Family& family : families()) rows += family.size(table);
  return rows;
}

CalibrationTable update(CalibrationTable earlier, const CalibrationTable& later) {
  for (const Family& family : families()) drop_measured_again(family, earlier, later);
  append(earlier, later);
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
  for (const Family& family : families()) {
    const Keys known = keys_of(family, table), wanted = keys_of(family, rows);
    if (!std::includes(known.begin(), known.end(), wanted.begin(), wanted.end())) return false;
  }
  return true;
}

CalibrationTable read_calibrations(std::span<const std::string> tables) {
  std::optional<CalibrationTable> all;
  for (const std::string& table : tables) {
    CalibrationTable next = read_calibration(calibration_file(table));
    all = all ? merge(*std::move(all), next) : std::move(next);
  }
  return all ? *std::move(all) : CalibrationTable{};
}

/// The table itself where it was made anew since.
std::string published_calibration() {
  const std::string table = shipped_file("published.h5");
  const std::string flat = shipped_file(std::string("published") + flat_ending);
  std::error_code no_table, no_flat;
  const auto made = std::filesystem::last_write_time(table, no_table);
  const bool newer = std::filesystem::last_write_time(flat, no_flat) >= made;
  return !no_flat && (no_table || newer) ? flat : table;
}

}  // namespace stepcast::sim
