#include "sim/network/links/picture.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_map>

namespace stepcast::sim {
namespace {

/// Finds spans that equal an earlier one: `id` of that, or what is given for a new one.
template <class Use>
class Alike {
 public:
  std::uint32_t find_or_add(std::uint64_t hash, std::span<const Use> uses, std::uint32_t id) {
    auto [at, end] = known_.equal_range(hash);
    for (; at != end; ++at)
      if (std::ranges::equal(at->second.uses, uses, [](const Use& x, const Use& y) {
            return x.communicator == y.communicator && x.weight == y.weight;
          }))
        return at->second.id;
    known_.emplace(hash, Known{uses, id});
    return id;
  }

 private:
  struct Known {
    std::span<const Use> uses;
    std::uint32_t id;
  };
  std::unordered_multimap<std::uint64_t, Known> known_;  // looked up only, never walked
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 1099511628211U;  // FNV-1a
}
constexpr std::uint64_t seed = 1469598103934665603U;

// Of a link's capacity. A transfer that never takes as much leaves the others what they had, and is
// as fast as its time says: the world's sum of a norm is latency alone, but the ends of its tree
// would make ranks differ that are alike in all else.
constexpr double negligible = 1e-6;

/// Bytes of the load's byte that a link carries while a transfer moves one at its fastest.
double carried_by(BytesPerSecond capacity, double fastest) {
  return capacity.value / fastest * (1 - 1e-9);
}

/// What a transfer alone takes of a link at its end: a NIC's cable that is narrower than the NIC
/// is no part of the transfer's own time, so it is not spared.
BytesPerSecond end_of(const topology::Cluster& cluster, const topology::Link& link) {
  const bool cable = link.kind == topology::LinkKind::injection;
  return cable ? std::max(link.bandwidth, cluster.node().nic) : link.bandwidth;
}

}  // namespace

double busiest_end(const topology::Cluster& cluster, const std::vector<LinkLoad>& loads) {
  double nic = 0.0, port = 0.0;
  std::unordered_map<topology::DeviceId, double> ports;  // bytes out of a GPU; looked up only
  for (const LinkLoad& load : loads) {
    const topology::Link& link = cluster.links()[load.link];
    if (link.kind == topology::LinkKind::injection) nic = std::max(nic, load.bytes_per_byte);
    if (cluster.devices()[link.from].kind == topology::DeviceKind::gpu)
      port = std::max(port, ports[link.from] += load.bytes_per_byte);
  }
  return nic > 0.0 ? nic : port > 0.0 ? port : 1.0;
}

LinkPicture::LinkPicture(const topology::Cluster& cluster,
                         const std::vector<std::vector<LinkLoad>>& loads)
    : nics_(loads.size()) {
  for (std::size_t c = 0; c < loads.size(); ++c)
    for (const LinkLoad& load : loads[c]) {
      const topology::Link& link = cluster.links()[load.link];
      if (load.bytes_per_byte <= 0.0 || link.kind != topology::LinkKind::injection) continue;
      const NicLoad nic{end_of(cluster, link), load.bytes_per_byte};
      if (std::ranges::find(nics_[c], nic) == nics_[c].end()) nics_[c].push_back(nic);
    }
  sort_links(cluster, loads);
}

void LinkPicture::sort_links(const topology::Cluster& cluster,
                             const std::vector<std::vector<LinkLoad>>& loads) {
  std::vector<std::vector<Use>> uses_of_link(cluster.links().size());
  for (std::uint32_t c = 0; c < loads.size(); ++c)
    for (const LinkLoad& load : loads[c])
      if (load.bytes_per_byte > 0.0) uses_of_link[load.link].push_back({c, load.bytes_per_byte});
  Alike<Use> alike;
  for (topology::LinkId l = 0; l < uses_of_link.size(); ++l) {
    const std::vector<Use>& uses = uses_of_link[l];
    if (uses.empty()) continue;
    const topology::Link& link = cluster.links()[l];
    const bool uplink = link.kind == topology::LinkKind::fabric;
    std::uint64_t hash = mix(mix(seed, std::bit_cast<std::uint64_t>(link.bandwidth.value)), uplink);
    for (const Use& use : uses)
      hash = mix(mix(hash, use.communicator), std::bit_cast<std::uint64_t>(use.weight));
    const auto next = static_cast<std::uint32_t>(classes_.size());
    const std::uint32_t id = alike.find_or_add(hash, uses, next);
    const BytesPerSecond end = end_of(cluster, link);
    if (id != next && classes_[id].capacity == link.bandwidth && classes_[id].end == end &&
        classes_[id].uplink == uplink)
      continue;
    const auto owner = cluster.private_gpu(l);
    classes_.push_back({uses_.size(), uses.size(), link.bandwidth, end, uplink,
                        owner ? static_cast<std::uint32_t>(*owner) : engine::no_owner, l});
    uses_.insert(uses_.end(), uses.begin(), uses.end());
  }
}

/// Alone, a transfer runs as fast as its time says: where the picture of its loads would exceed a
/// link of its ends (in-switch reduction carries less than a ring), the load is what the link
/// carries. Uplinks are held to nothing: a collective that sends more over one than it carries,
/// because leaves are oversubscribed or its own flows collide, is slower for it.
std::vector<topology::LinkId> LinkPicture::put_on(engine::System& system,
                                                  const std::vector<double>& fastest) const {
  std::vector<topology::LinkId> origins;
  std::vector<double> carried(nics_.size(), 1.0);  // of the picture, by the NICs
  for (std::size_t c = 0; c < nics_.size(); ++c)
    for (const NicLoad& nic : nics_[c])
      carried[c] = std::min(carried[c], carried_by(nic.end, fastest[c]) / nic.weight);
  std::vector<Use> weighted = uses_;
  Alike<Use> alike;
  for (const Class& of : classes_) {
    const std::span<Use> uses(weighted.data() + of.first_use, of.num_uses);
    double demand = 0.0;
    std::uint64_t hash = seed;
    std::size_t kept = 0;
    for (Use use : uses) {
      use.weight = of.uplink ? use.weight * carried[use.communicator]
                             : std::min(use.weight, carried_by(of.end, fastest[use.communicator]));
      const double most = use.weight * fastest[use.communicator];
      if (most < negligible * of.capacity.value) continue;
      demand += most;
      uses[kept++] = use;
      hash = mix(mix(hash, use.communicator), std::bit_cast<std::uint64_t>(use.weight));
    }
    if (demand <= of.capacity.value) continue;
    const auto next = static_cast<std::uint32_t>(system.link_capacity.size());
    const std::uint32_t id = alike.find_or_add(hash, uses.first(kept), next);
    if (id != next) {
      if (of.capacity < system.link_capacity[id]) origins[id] = of.first;
      system.link_capacity[id] = std::min(system.link_capacity[id], of.capacity);
      continue;
    }
    system.link_capacity.push_back(of.capacity);
    system.link_owner.push_back(of.owner);
    origins.push_back(of.first);
    for (const Use& use : uses.first(kept))
      system.communicators[use.communicator].loads.push_back({id, use.weight});
  }
  return origins;
}

}  // namespace stepcast::sim
