#include "validate/cluster/jobs.hpp"

#include <algorithm>
#include <utility>

#include "sim/network/links/picture.hpp"
#include "workloads/plan/axes.hpp"

namespace stepcast::validate {
namespace {

using workloads::CollectiveKind;

/// Of a group, per byte of its fullest NIC: the ranks of a host load links alike in every
/// collective.
std::vector<sim::LinkLoad> loads_of(const sim::Network& network, workloads::GroupKind kind,
                                    const std::vector<std::int64_t>& nodes) {
  const bool pair = workloads::axis_of(kind).meeting == workloads::Meeting::pair;
  auto loads = network.model->loads_of(
      {pair ? CollectiveKind::send_receive : CollectiveKind::all_reduce, sim::Algorithm::p2p},
      nodes);
  const double unit = sim::busiest_end(network.cluster(), loads);
  for (sim::LinkLoad& load : loads) load.bytes_per_byte /= unit;
  return loads;
}

/// The fastest that the transfers of a group of this kind and pattern ever drain.
double fastest_of(const sim::BoundStep& bound, workloads::GroupKind kind, std::uint32_t pattern) {
  const engine::System& s = bound.step.system;
  double fastest = 0.0;
  for (std::size_t c = 0; c < bound.program.collectives.size(); ++c)
    if (bound.program.collectives[c].group == kind)
      fastest = std::max(fastest, s.transfers[c * s.num_patterns + pattern].cap.value);
  return fastest;
}

}  // namespace

std::vector<std::int64_t> nodes_of_job(std::int64_t job, std::int64_t jobs, std::int64_t ranks) {
  std::vector<std::int64_t> nodes;
  for (std::int64_t rank = 0; rank < ranks; ++rank) nodes.push_back(rank * jobs + job);
  return nodes;
}

void multiply(sim::BoundStep& bound, std::int64_t jobs) {
  engine::System& s = bound.step.system;
  const std::uint32_t ranks = s.num_ranks();
  const std::vector<engine::Communicator> of_one = std::move(s.communicators);
  const auto groups = static_cast<std::uint32_t>(of_one.size());
  const std::vector<std::uint32_t> roles = s.role_of_rank;
  const auto slots = s.communicator_of;
  s.communicators.clear();
  s.link_capacity.clear();
  s.link_owner.clear();
  std::vector<std::vector<sim::LinkLoad>> loads;
  std::vector<double> fastest;
  for (std::uint32_t job = 0; job < jobs; ++job) {
    const std::vector<std::int64_t> node = nodes_of_job(job, jobs, ranks);
    for (std::uint32_t c = 0; c < groups; ++c) {
      engine::Communicator group = of_one[c];
      group.loads.clear();
      std::vector<std::int64_t> nodes;
      for (std::uint32_t& member : group.members) {
        nodes.push_back(node[member]);
        member += job * ranks;
      }
      const workloads::GroupKind kind = bound.step.layout->kind_of(c);
      loads.push_back(nodes.size() > 1 ? loads_of(*bound.network, kind, nodes)
                                       : std::vector<sim::LinkLoad>{});
      fastest.push_back(fastest_of(bound, kind, group.pattern));
      s.communicators.push_back(std::move(group));
    }
    if (job == 0) continue;
    s.role_of_rank.insert(s.role_of_rank.end(), roles.begin(), roles.end());
    for (std::size_t slot = 0; slot < slots.size(); ++slot)
      for (const std::uint32_t c : slots[slot])
        s.communicator_of[slot].push_back(c == engine::no_communicator ? c : c + job * groups);
  }
  sim::LinkPicture(bound.network->cluster(), loads).put_on(s, fastest);
}

}  // namespace stepcast::validate
