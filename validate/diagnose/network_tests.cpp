#include "validate/diagnose/network_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "calibrate/import/import_files.hpp"
#include "calibrate/import/nccl_tests_csv.hpp"
#include "calibrate/import/nccl_tests_log.hpp"
#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/files/csv.hpp"
#include "validate/trace/records/file.hpp"
#include "validate/trace/records/nsight.hpp"

namespace stepcast::validate {
namespace {

constexpr double slow_test = 1.25;  // times the forecast

/// What the machine of the scenario is, for a log that does not say.
calibrate::ClusterFacts facts_of(const sim::Scenario& s, const sim::Catalogue& catalogue) {
  calibrate::ClusterFacts out;
  out.gpu = s.node.gpu.name;
  out.fabric = "infiniband";  // names the row alone
  out.node_bandwidth = BytesPerSecond(s.node.nic.value * static_cast<double>(s.node.nics));
  out.gpus = catalogue.gpus();
  return out;
}

Duration expected_time(const sim::CollectiveRow& row, sim::Scenario s, sim::Session& session) {
  const auto kind = sim::collective_named(row.collective);
  expects(kind.has_value(), "a collective of the table");
  s.collective = sim::CollectiveQuery{*kind, row.bytes};
  s.nodes = std::max<std::int64_t>(1, row.nodes);
  s.gpus = row.ranks;
  return session.collective(s).time.duration;
}

}  // namespace

bool is_network_test(const std::string& path) {
  try {
    if (path.ends_with(".csv")) return calibrate::is_nccl_tests_csv(sim::read_csv(path));
    TraceFile file(path);
    const std::string_view head = file.ahead();
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && (head[first] == '{' || head[first] == '['))
      return head.find("\"nccl_version\"") != std::string_view::npos ||
             head.find("\"busbw\"") != std::string_view::npos;
    if (is_sqlite(file)) return false;
    return calibrate::is_nccl_tests_log(calibrate::parse_text(path, calibrate::read_bytes(path)));
  } catch (const InputError&) {
    return false;
  }
}

void add_network_test(const std::string& path, const sim::Scenario& s, sim::Session& session,
                      Surroundings& around, std::vector<std::string>& notes) {
  try {
    const std::vector<std::string> paths{path};
    const sim::CalibrationTable table =
        calibrate::import_files(paths, facts_of(s, session.catalogue())).table;
    std::map<std::string, const sim::CollectiveRow*> largest;
    for (const sim::CollectiveRow& row : table.collectives) {
      const sim::CollectiveRow*& one = largest[row.collective];
      if (row.duration > Duration{} && (one == nullptr || row.bytes > one->bytes)) one = &row;
    }
    for (const auto& [collective, row] : largest) {
      if (row == nullptr) continue;
      const double ratio = seconds(row->duration) / seconds(expected_time(*row, s, session));
      const std::string told =
          fmt::format("{} of {} on {} ranks takes {:.2f} times as long as expected", collective,
                      stepcast::to_text(row->bytes), row->ranks, ratio);
      if (ratio > slow_test)
        around.signs.push_back({CauseKind::slow_link, told, path});
      else
        notes.push_back(fmt::format("{}: {}.", path, told));
    }
  } catch (const InputError& error) {
    notes.push_back(fmt::format("The network test is not compared: {}.", error.what()));
  }
}

}  // namespace stepcast::validate
