#include "validate/cluster/fabric.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/check.hpp"
#include "sim/files/numbers.hpp"
#include "sim/program/command_line.hpp"

namespace stepcast::validate {
namespace {

// A cable or NIC that came up with half its lanes.
constexpr double half_speed = 2.0;

BoxFabric fabric_of(const std::string& word) {
  if (word == "own") return {word};
  if (word == "nonblocking") return {.word = word, .one_switch = true};
  if (word == "slow-nic") return {.word = word, .one_switch = true, .slow_nic = half_speed};
  const auto colon = word.find(':');
  const auto ratio = sim::number_in<std::int64_t>(word.substr(0, colon));
  if (colon != std::string::npos && word.substr(colon) == ":1" && ratio && *ratio >= 2)
    return {.word = word, .down_over_up = *ratio};
  throw sim::UsageError("'--fabric " + word + "' is none of own, nonblocking, 2:1, 4:1, slow-nic");
}

}  // namespace

std::vector<BoxFabric> fabrics_of(const std::string& words) {
  std::vector<BoxFabric> fabrics;
  const std::string all = words.empty() ? "own" : words;
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find(',', at), all.size());
    fabrics.push_back(fabric_of(all.substr(at, end - at)));
    at = end + 1;
  }
  return fabrics;
}

sim::Scenario on_fabric(sim::Scenario scenario, const BoxFabric& fabric) {
  topology::FabricSpec& spec = scenario.fabric;
  if (fabric.one_switch) {
    spec.ports = scenario.nodes;
    spec.tiers = 1;
    spec.oversubscription = 1.0;
  } else if (fabric.down_over_up > 0) {
    const std::int64_t leaf = scenario.nodes / 2;
    if (scenario.nodes % 2 != 0 || leaf % fabric.down_over_up != 0)
      throw InputError(
          scenario.origin,
          fmt::format("{} nodes make no two leaves of {}", scenario.nodes, fabric.word),
          fmt::format("take a multiple of {} nodes", 2 * fabric.down_over_up));
    spec.ports = leaf + leaf / fabric.down_over_up;
    spec.tiers = 2;
    spec.oversubscription = static_cast<double>(fabric.down_over_up);
  }
  return scenario;
}

sim::Scenario box_for(sim::Scenario job, std::int64_t jobs, const BoxFabric& fabric) {
  job.nodes *= jobs;
  job.gpus *= jobs;
  return on_fabric(std::move(job), fabric);
}

topology::Cluster cluster_of(const sim::Scenario& s, const BoxFabric& fabric) {
  auto cluster = topology::Cluster::build(s.node, s.nodes, s.fabric, s.origin);
  return fabric.slow_nic > 1.0 ? cluster.with_slow_cables(s.nodes - 1, fabric.slow_nic)
                               : std::move(cluster);
}

}  // namespace stepcast::validate
