#include "sim/network/links/hops.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "topology/wires.hpp"

namespace stepcast::sim {

using topology::DeviceId;
using topology::LinkId;
using topology::NodeKind;

topology::LinkId links_per_node(const topology::Cluster& cluster) {
  return topology::links_of_a_node(cluster);
}

LinkHops::LinkHops(const topology::Cluster& cluster, const topology::Router& router)
    : cluster_(cluster), router_(router), links_per_node_(stepcast::sim::links_per_node(cluster)) {
  for (std::int64_t g = 0; g < cluster.node().gpus; ++g) {
    auto& port = ports_.emplace_back();
    double total = 0.0;
    for (const LinkId id : cluster.nvlink_out(g)) {
      const topology::Link link = topology::link_of(cluster, id);
      const topology::Device to = topology::device_of(cluster, link.to);
      port.push_back({.link = id,
                      .peer = to.kind == topology::DeviceKind::gpu ? to.index : -1,
                      .share = link.bandwidth.value});
      total += link.bandwidth.value;
    }
    for (PortLink& link : port) link.share /= total;
  }
}

void LinkHops::port(std::int64_t node, std::int64_t gpu, double out, double in,
                    LinkLoadSum& sum) const {
  const auto offset = static_cast<LinkId>(node) * links_per_node_;
  for (const PortLink& link : ports_[static_cast<std::size_t>(gpu)]) {
    if (out > 0) sum.add(offset + link.link, out * link.share);
    if (in > 0) sum.add(topology::reverse(offset + link.link), in * link.share);
  }
}

void LinkHops::between_gpus(std::int64_t node, std::int64_t from, std::int64_t to, double weight,
                            LinkLoadSum& sum) const {
  const auto offset = static_cast<LinkId>(node) * links_per_node_;
  if (cluster_.node().kind == NodeKind::nvswitch) {
    for (const PortLink& link : ports_[static_cast<std::size_t>(from)])
      sum.add(offset + link.link, weight * link.share);
    for (const PortLink& link : ports_[static_cast<std::size_t>(to)])
      sum.add(topology::reverse(offset + link.link), weight * link.share);
    return;
  }
  for (const PortLink& link : ports_[static_cast<std::size_t>(from)])
    if (link.peer == to) return sum.add(offset + link.link, weight);
  const std::int64_t first = node * cluster_.node().gpus;
  way(cluster_.gpu(first + from), cluster_.gpu(first + to), 0, weight, sum);
}

void LinkHops::to_nic(std::int64_t gpu, NodeNic nic, double weight, LinkLoadSum& sum) const {
  way(cluster_.gpu(nic.node * cluster_.node().gpus + gpu), cluster_.nic(nic.node, nic.nic), 0,
      weight, sum);
}

void LinkHops::from_nic(NodeNic nic, std::int64_t gpu, double weight, LinkLoadSum& sum) const {
  way(cluster_.nic(nic.node, nic.nic), cluster_.gpu(nic.node * cluster_.node().gpus + gpu), 0,
      weight, sum);
}

void LinkHops::between_nics(NodeNic from, NodeNic to, const std::vector<std::uint64_t>& keys,
                            double weight, LinkLoadSum& sum) const {
  const DeviceId a = cluster_.nic(from.node, from.nic), b = cluster_.nic(to.node, to.nic);
  // Only a hash looks at the key: all flows of a pair go the same way otherwise.
  const bool hashed = cluster_.fabric().routing == topology::Routing::ecmp;
  const std::size_t flows = hashed ? keys.size() : 1;
  for (std::size_t i = 0; i < flows; ++i)
    way(a, b, keys[i], weight / static_cast<double>(flows), sum);
}

void LinkHops::into_nic(NodeNic from, NodeNic to, double weight, LinkLoadSum& sum) const {
  std::vector<topology::LinkShare>& shares = sum.scratch();
  shares.clear();
  router_.append_shares(cluster_.nic(from.node, from.nic), cluster_.nic(to.node, to.nic), 0,
                        shares);
  for (std::size_t i = 1; i < shares.size(); ++i) sum.add(shares[i].link, weight * shares[i].share);
}

void LinkHops::between_any(std::int64_t from_gpu, std::int64_t to_gpu, double weight,
                           LinkLoadSum& sum) const {
  way(cluster_.gpu(from_gpu), cluster_.gpu(to_gpu), 0, weight, sum);
}

void LinkHops::way(DeviceId from, DeviceId to, std::uint64_t key, double weight,
                   LinkLoadSum& sum) const {
  std::vector<topology::LinkShare>& shares = sum.scratch();
  shares.clear();
  router_.append_shares(from, to, key, shares);
  for (const topology::LinkShare& share : shares) sum.add(share.link, weight * share.share);
}

}  // namespace stepcast::sim
