#include "sim/link_classes.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_map>

namespace stepcast::sim {

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

LinkClasses::LinkClasses(const topology::Cluster& cluster) : cluster_(cluster) {}

/// Alone, a transfer runs as fast as its time says: where the picture of its loads would exceed a
/// link of its ends (in-switch reduction carries less than a ring), the load is what the link
/// carries. Uplinks are held to nothing: a collective that sends more over one than it carries,
/// because leaves are oversubscribed or its own flows collide, is slower for it.
void LinkClasses::add(std::uint32_t communicator, const std::vector<LinkLoad>& loads,
                      double fastest) {
  const auto capacity = [&](const LinkLoad& load) {
    return cluster_.links()[load.link].bandwidth.value / fastest * (1 - 1e-9);
  };
  double carried = 1.0;  // of the picture, by the NICs
  for (const LinkLoad& load : loads)
    if (load.bytes_per_byte > 0.0 &&
        cluster_.links()[load.link].kind == topology::LinkKind::injection)
      carried = std::min(carried, capacity(load) / load.bytes_per_byte);
  for (const LinkLoad& load : loads) {
    if (load.bytes_per_byte <= 0.0) continue;
    const bool uplink = cluster_.links()[load.link].kind == topology::LinkKind::fabric;
    const double weight =
        uplink ? load.bytes_per_byte * carried : std::min(load.bytes_per_byte, capacity(load));
    uses_.push_back({load.link, communicator, weight, weight * fastest});
  }
}

void LinkClasses::build(engine::System& system) const {
  std::vector<Use> uses = uses_;
  std::ranges::stable_sort(uses, {}, &Use::link);
  const auto same = [](std::span<const Use> a, std::span<const Use> b) {
    return std::ranges::equal(a, b, [](const Use& x, const Use& y) {
      return x.communicator == y.communicator && x.weight == y.weight;
    });
  };
  struct Class {
    std::span<const Use> uses;
    std::uint32_t id;
  };
  std::unordered_multimap<std::uint64_t, Class> classes;  // looked up only, never walked
  for (std::size_t first = 0; first < uses.size();) {
    std::size_t last = first;
    double demand = 0.0;
    std::uint64_t hash = 1469598103934665603U;
    for (; last < uses.size() && uses[last].link == uses[first].link; ++last) {
      demand += uses[last].demand;
      hash = (hash ^ uses[last].communicator) * 1099511628211U;
      hash = (hash ^ std::bit_cast<std::uint64_t>(uses[last].weight)) * 1099511628211U;
    }
    const std::span<const Use> of_link(uses.data() + first, last - first);
    const topology::LinkId link = of_link.front().link;
    const BytesPerSecond capacity = cluster_.links()[link].bandwidth;
    first = last;
    if (demand <= capacity.value) continue;
    auto [at, end] = classes.equal_range(hash);
    at = std::find_if(at, end, [&](const auto& c) { return same(c.second.uses, of_link); });
    if (at != end) {
      BytesPerSecond& narrowest = system.link_capacity[at->second.id];
      narrowest = std::min(narrowest, capacity);
      continue;
    }
    const auto id = static_cast<std::uint32_t>(system.link_capacity.size());
    classes.emplace(hash, Class{of_link, id});
    system.link_capacity.push_back(capacity);
    const std::optional<std::int64_t> owner = cluster_.private_gpu(link);
    system.link_owner.push_back(owner ? static_cast<std::uint32_t>(*owner) : engine::no_owner);
    for (const Use& use : of_link)
      system.communicators[use.communicator].loads.push_back({id, use.weight});
  }
}

}  // namespace stepcast::sim
