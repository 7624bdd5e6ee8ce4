#include "sim/network/links/group_links.hpp"

#include <map>
#include <tuple>

namespace stepcast::sim {
namespace {

using Ranks = std::vector<std::int64_t>;

std::vector<Ranks> pairs_of_ring(const Ranks& ranks) {
  std::vector<Ranks> out;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    out.push_back({ranks[i], ranks[(i + 1) % ranks.size()]});
  return out;
}

bool is_ring(workloads::GroupKind kind) {
  return axis_of(kind).meeting == workloads::Meeting::ring;
}

}  // namespace

GroupShape shape_of(const topology::Cluster& cluster, workloads::GroupKind kind,
                    const Ranks& ranks) {
  if (!is_ring(kind)) return shape_of(cluster, ranks);
  GroupShape slowest;
  for (const Ranks& ends : pairs_of_ring(ranks)) {
    const GroupShape pair = shape_of(cluster, ends);
    if (std::tie(pair.nodes, pair) > std::tie(slowest.nodes, slowest)) slowest = pair;
  }
  return slowest;
}

std::vector<LinkLoad> loads_of(const NetworkModel& network, workloads::GroupKind kind,
                               const Delivery& delivery, const Ranks& ranks) {
  if (!is_ring(kind)) return network.loads_of(delivery, ranks);
  std::map<topology::LinkId, double> sum;
  for (const Ranks& ends : pairs_of_ring(ranks))
    for (const LinkLoad& load : network.loads_of(delivery, ends))
      sum[load.link] += load.bytes_per_byte;
  std::vector<LinkLoad> out;
  for (const auto& [link, bytes] : sum) out.push_back({link, bytes});
  return out;
}

}  // namespace stepcast::sim
