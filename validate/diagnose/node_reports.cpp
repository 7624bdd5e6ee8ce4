#include "validate/diagnose/node_reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "calibrate/import/node_topology.hpp"
#include "calibrate/import/topology_matrix.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/scripts/text_pieces.hpp"
#include "validate/trace/records/numbers.hpp"

namespace stepcast::validate {
namespace {

constexpr double at_work = 50;       // % of SMs: the GPU is at work
constexpr double slow_clock = 0.95;  // of the median GPU's
constexpr double held_back = 5;      // % of the time, by power
constexpr double mostly_idle = 70;   // % of SMs, on average
constexpr std::size_t fewest_rows = 3, fewest_gpus = 3;

double mean(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

}  // namespace

bool DmonReader::line(std::string_view text) {
  std::vector<std::string_view> words = sim::words_of_text(text);
  if (words.empty()) return false;
  if (words[0].starts_with("#")) {
    if (words[0] == "#")
      words.erase(words.begin());
    else
      words[0].remove_prefix(1);
    if (std::ranges::find(words, "gpu") == words.end()) return !names_.empty();  // its units
    if (std::ranges::find(words, "sm") == words.end() &&
        std::ranges::find(words, "pwr") == words.end() &&
        std::ranges::find(words, "pclk") == words.end())
      return false;
    names_.assign(words.begin(), words.end());
    return true;
  }
  if (names_.empty() || words.size() != names_.size()) return false;
  std::map<std::string, double> row;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (const auto value = leading_number(words[i])) row[names_[i]] = *value;
  const auto gpu = row.find("gpu");
  if (gpu == row.end() || gpu->second < 0 || gpu->second > 1024) return false;
  const auto sm = row.find("sm");
  const bool loaded = sm == row.end() || sm->second >= at_work;
  for (const auto& [name, value] : row) {
    Column& column = gpus_[static_cast<std::int64_t>(gpu->second)][name];
    column.values.push_back(value);
    if (loaded) column.loaded.push_back(value);
  }
  return true;
}

std::vector<Sign> DmonReader::signs(const std::string& path) const {
  std::vector<Sign> out;
  const auto add = [&](CauseKind kind, std::string evidence) {
    out.push_back({kind, std::move(evidence) + " (nvidia-smi dmon)", path});
  };
  std::map<std::int64_t, double> clocks;
  std::vector<double> all_clocks, all_sm;
  for (const auto& [gpu, columns] : gpus_) {
    const auto of = [&, &all = columns](const char* name) {
      const auto at = all.find(name);
      return at == all.end() ? nullptr : &at->second;
    };
    if (const Column* clock = of("pclk"); clock != nullptr && clock->loaded.size() >= fewest_rows) {
      clocks[gpu] = median(clock->loaded);
      all_clocks.push_back(clocks[gpu]);
    }
    if (const Column* sm = of("sm"))
      all_sm.insert(all_sm.end(), sm->values.begin(), sm->values.end());
    if (const Column* power = of("pviol"); power != nullptr && mean(power->values) > held_back)
      add(CauseKind::clocks,
          fmt::format("power holds GPU {} back {:.0f} % of the time", gpu, mean(power->values)));
    if (const Column* heat = of("tviol"); heat != nullptr && mean(heat->values) > 0.05)
      add(CauseKind::clocks, fmt::format("heat holds GPU {} back {:.0f} % of the time", gpu,
                                         100 * mean(heat->values)));
    if (const Column* errors = of("dbecc"); errors != nullptr && mean(errors->values) > 0)
      add(CauseKind::slow_rank, fmt::format("double-bit errors in the memory of GPU {}", gpu));
    if (const Column* replays = of("pci"); replays != nullptr && mean(replays->values) > 0)
      add(CauseKind::slow_link, fmt::format("PCIe of GPU {} repeats packets", gpu));
  }
  if (clocks.size() >= fewest_gpus) {
    const double usual = median(all_clocks);
    for (const auto& [gpu, clock] : clocks)
      if (clock < slow_clock * usual)
        add(CauseKind::slow_rank,
            fmt::format("GPU {} runs at {:.0f} MHz under load, the median one "
                        "at {:.0f}",
                        gpu, clock, usual));
  }
  if (all_sm.size() >= fewest_rows && mean(all_sm) < mostly_idle)
    add(CauseKind::host_bound, fmt::format("some kernel runs {:.0f} % of the time", mean(all_sm)));
  return out;
}

bool is_topology(const std::string& path) {
  try {
    return calibrate::is_topology_matrix(calibrate::parse_text(path, calibrate::read_bytes(path)));
  } catch (const InputError&) {
    return false;
  }
}

void add_topology(const std::string& path, const sim::Scenario& s, Surroundings& around,
                  std::vector<std::string>& notes) {
  calibrate::Ignored ignored;
  const calibrate::NodeTopology seen = calibrate::read_topology(path, ignored);
  const auto sign = [&](std::string evidence) {
    around.signs.push_back({CauseKind::slow_link, std::move(evidence), path});
  };
  if (seen.gpus != s.node.gpus)
    notes.push_back(fmt::format("Warning: {} shows {} GPUs, a node of the scenario has {}.", path,
                                seen.gpus, s.node.gpus));
  std::int64_t fewest = 0;
  if (!seen.nvlinks.empty()) {
    fewest = 1 << 10;
    for (std::size_t i = 0; i < seen.nvlinks.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) fewest = std::min(fewest, seen.nvlinks[i][j]);
  }
  const bool switched = s.node.nvswitches > 0;
  if (switched && fewest == 0)
    sign(fmt::format("some GPUs are not joined by NVLink, those of {} are", s.node.name));
  else if (switched && fewest < s.node.gpu.nvlink_links)
    sign(fmt::format("two GPUs share {} NVLinks, those of {} have {}", fewest, s.node.name,
                     s.node.gpu.nvlink_links));
  else
    notes.push_back(fmt::format("{}: NVLinks as those of {}.", path, s.node.name));
  const bool near = std::ranges::any_of(
      seen.nics, [](const calibrate::ImportedNic& nic) { return nic.near_gpu; });
  if (!seen.nics.empty() && !near && s.node.gpu_direct)
    sign("no NIC shares a PCIe switch with a GPU: GPUDirect goes through the processor");
}

}  // namespace stepcast::validate
