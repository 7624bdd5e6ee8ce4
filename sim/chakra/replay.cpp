#include "sim/chakra/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "engine/check.hpp"
#include "engine/fold.hpp"
#include "engine/run.hpp"
#include "engine/units_text.hpp"
#include "sim/chakra/replay_system.hpp"

namespace stepcast::sim {
namespace {

void check_size(const EtTrace& trace, const Scenario& scenario) {
  if (trace.num_ranks() > scenario.gpus)
    throw InputError(trace.folder, fmt::format("has {} ranks", trace.num_ranks()),
                     fmt::format("the cluster has {} GPUs: --nodes", scenario.gpus));
}

Duration recorded_step(const EtTrace& trace) {
  const auto& facts = trace.files.front().facts;
  const auto step = facts.find(std::string(fact_step));
  if (step == facts.end()) return {};
  try {
    return Duration(std::stoll(step->second));
  } catch (const std::exception&) {
    throw InputError(trace.files.front().path, "has no number for its step",
                     std::string(fact_step) + " of GlobalMetadata");
  }
}

/// Whether a rank that stands for many would meet itself: neighbours in a ring that do the same.
bool meets_itself(const engine::System& system) {
  for (std::uint32_t rank = 0; rank < system.num_ranks(); ++rank) {
    std::set<std::uint32_t> met;
    for (const auto& slot : system.communicator_of)
      if (slot[rank] != engine::no_communicator && !met.insert(slot[rank]).second) return true;
  }
  return false;
}

/// Of ranks that are alike one, where that can be.
engine::Fold folded_where_possible(const engine::System& system) {
  engine::Fold fold = engine::fold(system);
  if (!meets_itself(fold.system)) return fold;
  fold.system = system;
  fold.representative.resize(system.num_ranks());
  std::iota(fold.representative.begin(), fold.representative.end(), 0U);
  fold.multiplicity.assign(system.num_ranks(), 1);
  return fold;
}

void fill(Replay& out, const engine::RunResult& result, const engine::Fold& fold) {
  out.step = result.step;
  out.simulated_ranks = fold.system.num_ranks();
  engine::RankAccount sum;
  const std::vector<std::uint32_t> first = fold.first();
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const engine::RankAccount& account = result.ranks[r];
    for (std::int64_t n = 0; n < fold.multiplicity[r]; ++n) sum += account;
    if (account.compute <= out.slowest) continue;
    out.slowest = account.compute;
    out.slowest_rank = first[r];
  }
  out.mean = sum.divided_by(out.ranks);
  Duration& host_work = out.mean.exposed[static_cast<std::size_t>(engine::Traffic::offload)];
  out.mean.host += std::exchange(host_work, Duration{});
  // What nothing explains is the host's, so that the means add up.
  out.mean.host += out.step - out.mean.total();
}

void fill_network(Replay& out, const std::vector<double>& network_seconds) {
  double total = 0.0;
  for (const double s : network_seconds) total += s;
  for (std::size_t p = 0; p < out.network.size(); ++p)
    out.network[p] = total > 0.0 ? network_seconds[p] / total : 0.0;
}

}  // namespace

Replay replay(const EtTrace& trace, const Scenario& scenario, Session& session, bool once) {
  check_size(trace, scenario);
  Replay out;
  out.ranks = trace.num_ranks();
  out.files = trace.files.size();
  out.groups = trace.groups.size();
  out.recorded = recorded_step(trace);
  std::vector<RankLanes> lanes;
  std::int64_t rooflined = 0;
  for (std::size_t file = 0; file < trace.files.size(); ++file) {
    const auto rank = std::ranges::find(trace.file_of_rank, file) - trace.file_of_rank.begin();
    out.nodes += trace.files[file].nodes.size();
    lanes.push_back(lanes_of(trace.files[file], rank, scenario.node.gpu, once));
    rooflined += lanes.back().rooflined;
  }
  if (rooflined > 0)
    out.warnings.push_back(fmt::format(
        "{} nodes have no duration: timed by the roofline of {}, which no kernel reaches",
        rooflined, scenario.node.gpu.name));
  const auto network = session.network(scenario);
  out.warnings.insert(out.warnings.end(), network->warnings.begin(), network->warnings.end());
  const ReplaySystem whole = replay_system(trace, lanes, *network);
  const engine::Fold fold = folded_where_possible(whole.system);
  try {
    const engine::RunResult result = engine::run(fold.system, {.cold = once});
    if (!result.steady)
      out.warnings.push_back(fmt::format(
          "the step does not repeat within {} steps: the last one is shown", result.steps));
    fill(out, result, fold);
  } catch (const engine::Stalled& stalled) {
    throw InputError(trace.folder, "its ranks wait for each other for ever", stalled.what());
  }
  fill_network(out, whole.network_seconds);
  return out;
}

}  // namespace stepcast::sim
