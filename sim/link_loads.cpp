#include "sim/link_loads.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {

using topology::LinkId;
using topology::NodeKind;
using workloads::CollectiveKind;

/// The ranks in ring order, cut into nodes; and the members that speak for the rails.
struct LinkLoads::Group {
  struct OnNode {
    std::int64_t node = 0;
    std::size_t first = 0, count = 0;  // within ranks
  };
  std::vector<std::int64_t> ranks;
  std::vector<OnNode> nodes;
  std::size_t rails = 0;                 // NICs that every node offers
  std::vector<std::int64_t> rail_ranks;  // of node i and rail r at i * rails + r
};

/// Bytes per byte of the collective: through every member's port, and from node to node.
struct LinkLoads::Flow {
  double port = 0.0;
  double network = 0.0;
};

namespace {

/// Weights are rounded up to multiples of 1 / this. Sprayed packets leave small parts on many
/// links: 1/8 of a ring over 32 x 32 ways is 2^-13.
double weight_units(topology::Routing routing) {
  return routing == topology::Routing::spray ? 0x1p24 : 1024.0;
}

/// Products like 1/8 of 7/8 may miss theirs by a rounding error.
double rounded_up(double weight, double units) {
  return std::ceil(weight * units - 1e-9 * units / 1024.0) / units;
}

void merge(std::vector<LinkLoad>& loads, double units) {
  std::sort(loads.begin(), loads.end(),
            [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < loads.size();) {
    LinkLoad sum = loads[i];
    for (++i; i < loads.size() && loads[i].link == sum.link; ++i)
      sum.bytes_per_byte += loads[i].bytes_per_byte;
    sum.bytes_per_byte = rounded_up(sum.bytes_per_byte, units);
    loads[kept++] = sum;
  }
  loads.resize(kept);
}

/// The same for groups that touch a good part of all links: one pass over the links, no sorting.
void merge_densely(std::vector<LinkLoad>& loads, std::size_t num_links, double units) {
  std::vector<double> sums(num_links, 0.0);
  for (const LinkLoad& load : loads) sums[load.link] += load.bytes_per_byte;
  loads.clear();
  for (std::size_t link = 0; link < num_links; ++link)
    if (sums[link] > 0) loads.push_back({static_cast<LinkId>(link), rounded_up(sums[link], units)});
}

/// NVLink SHARP serves AllReduce in a node from 5 members on (NCCL's choice on H200; on fewer the
/// ring is as fast): see nccl_graph.hpp.
bool in_switch(const topology::NodeSpec& node, std::int64_t members) {
  return node.kind == NodeKind::nvswitch &&
         node.gpu.architecture >= topology::Architecture::hopper && members >= 5;
}

}  // namespace

LinkLoads::LinkLoads(const topology::Cluster& cluster, const topology::Router& router)
    : cluster_(cluster), router_(router), gpus_per_node_(cluster.node().gpus) {
  for (std::int64_t g = 0; g < gpus_per_node_; ++g) {
    auto& port = ports_.emplace_back();
    double total = 0.0;
    for (const LinkId id : cluster.nvlink_out(g)) {
      const topology::Link& link = cluster.links()[id];
      const topology::Device& to = cluster.devices()[link.to];
      port.push_back({.link = id,
                      .peer = to.kind == topology::DeviceKind::gpu ? to.index : -1,
                      .share = link.bandwidth.value});
      total += link.bandwidth.value;
    }
    for (PortLink& link : port) link.share /= total;
  }
  if (cluster.num_nodes() > 1 && !ports_.front().empty())
    links_per_node_ = cluster.nvlink_out(gpus_per_node_).front() - ports_.front().front().link;
}

LinkLoads::Group LinkLoads::group_of(const std::vector<std::int64_t>& ranks) const {
  Group group;
  group.ranks = ranks;
  std::sort(group.ranks.begin(), group.ranks.end());
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    expects(group.ranks[i] >= 0 && group.ranks[i] < cluster_.num_gpus(), "GPUs of this cluster");
    const std::int64_t node = group.ranks[i] / gpus_per_node_;
    if (group.nodes.empty() || group.nodes.back().node != node) group.nodes.push_back({node, i, 0});
    ++group.nodes.back().count;
  }
  if (group.nodes.size() < 2) return group;

  // Members that reach another NIC than those before them; a node with more rails than the others
  // leaves some unused.
  std::vector<std::int64_t> nics, speakers;
  std::vector<std::size_t> first;
  group.rails = group.ranks.size();
  for (const Group::OnNode& on : group.nodes) {
    nics.clear();
    first.push_back(speakers.size());
    for (std::size_t i = on.first; i < on.first + on.count; ++i) {
      const std::int64_t nic = cluster_.nic_of_gpu(group.ranks[i] % gpus_per_node_);
      if (std::find(nics.begin(), nics.end(), nic) != nics.end()) continue;
      nics.push_back(nic);
      speakers.push_back(group.ranks[i]);
    }
    group.rails = std::min(group.rails, nics.size());
  }
  for (const std::size_t f : first)
    for (std::size_t r = 0; r < group.rails; ++r) group.rail_ranks.push_back(speakers[f + r]);
  return group;
}

/// A ring moves (n-1)/n of the buffer over each of its edges, AllReduce twice that; of a node's p
/// edges one leaves the node. NVLink SHARP instead: every member sends its buffer into the switch
/// once and one p-th of the sum back to all, and takes in the same. Two nodes swap the sum once.
LinkLoads::Flow LinkLoads::flow_of(CollectiveKind kind, const Group& group) const {
  const auto n = static_cast<double>(group.ranks.size());
  const auto nodes = group.nodes.size();
  const double p = n / static_cast<double>(nodes);
  double ring = (n - 1) / n;
  if (kind == CollectiveKind::all_reduce) ring *= 2;
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) ring = 1;
  Flow flow{.port = nodes == 1 ? ring : ring * (p - 1) / p, .network = nodes == 1 ? 0.0 : ring};
  if (kind == CollectiveKind::all_reduce &&
      in_switch(cluster_.node(), static_cast<std::int64_t>(p))) {
    flow.port = 1 + 1 / p;
    if (nodes == 2) flow.network = 1;
  }
  return flow;
}

/// The bundle of all NVLinks of a GPU to its switches, out and in.
void LinkLoads::add_port(std::int64_t gpu, double weight, std::vector<LinkLoad>& loads) const {
  const auto offset = static_cast<LinkId>(gpu / gpus_per_node_) * links_per_node_;
  for (const PortLink& link : ports_[static_cast<std::size_t>(gpu % gpus_per_node_)]) {
    loads.push_back({offset + link.link, weight * link.share});
    loads.push_back({topology::reverse(offset + link.link), weight * link.share});
  }
}

/// Direct NVLinks: the rings together use a member's links to other members evenly.
void LinkLoads::add_mesh(const std::int64_t* members, std::int64_t count, double weight,
                         std::vector<LinkLoad>& loads) const {
  const std::int64_t node = members[0] / gpus_per_node_;
  const auto offset = static_cast<LinkId>(node) * links_per_node_;
  const auto is_member = [&](std::int64_t peer) {
    return std::find(members, members + count, node * gpus_per_node_ + peer) != members + count;
  };
  for (std::int64_t m = 0; m < count; ++m) {
    const auto& port = ports_[static_cast<std::size_t>(members[m] % gpus_per_node_)];
    double inside = 0.0;
    for (const PortLink& link : port) inside += is_member(link.peer) ? link.share : 0.0;
    if (inside == 0.0) {
      add_path(members[m], members[(m + 1) % count], weight, 0, loads);
      continue;
    }
    for (const PortLink& link : port)
      if (is_member(link.peer)) loads.push_back({offset + link.link, weight * link.share / inside});
  }
}

void LinkLoads::add_path(std::int64_t from, std::int64_t to, double weight, std::uint64_t key,
                         std::vector<LinkLoad>& loads) const {
  std::vector<topology::LinkShare> shares;
  shares.reserve(16);
  router_.append_shares(cluster_.gpu(from), cluster_.gpu(to), key, shares);
  for (const topology::LinkShare& share : shares)
    loads.push_back({share.link, weight * share.share});
}

void LinkLoads::add_inside(const Group& group, double weight, std::vector<LinkLoad>& loads) const {
  for (const Group::OnNode& on : group.nodes) {
    if (on.count < 2) continue;
    const std::int64_t* members = group.ranks.data() + on.first;
    const auto count = static_cast<std::int64_t>(on.count);
    switch (cluster_.node().kind) {
      case NodeKind::nvswitch:
        for (std::int64_t m = 0; m < count; ++m) add_port(members[m], weight, loads);
        break;
      case NodeKind::hybrid_cube_mesh:
        add_mesh(members, count, weight, loads);
        break;
      case NodeKind::pcie:
        for (std::int64_t m = 0; m < count; ++m)
          add_path(members[m], members[(m + 1) % count], weight, 0, loads);
        break;
    }
  }
}

void LinkLoads::add_rails(const Group& group, double weight, std::vector<LinkLoad>& loads) const {
  const double share = weight / static_cast<double>(group.rails);
  const std::size_t nodes = group.nodes.size();
  for (std::size_t i = 0; i < nodes; ++i)
    for (std::size_t r = 0; r < group.rails; ++r)
      add_path(group.rail_ranks[i * group.rails + r],
               group.rail_ranks[(i + 1) % nodes * group.rails + r], share, 0, loads);
}

/// AlltoAll: every member sends 1/n of its buffer to each other one, over its own rail.
void LinkLoads::add_all_pairs(const Group& group, std::vector<LinkLoad>& loads) const {
  const auto n = static_cast<double>(group.ranks.size());
  const double p = n / static_cast<double>(group.nodes.size());
  add_inside(group, (p - 1) / n, loads);
  const double share = p * p / n / static_cast<double>(std::max<std::size_t>(1, group.rails));
  for (std::size_t i = 0; i < group.nodes.size(); ++i)
    for (std::size_t j = 0; j < group.nodes.size(); ++j)
      for (std::size_t r = 0; i != j && r < group.rails; ++r)
        add_path(group.rail_ranks[i * group.rails + r], group.rail_ranks[j * group.rails + r],
                 share, 0, loads);
}

/// Under one NVSwitch NCCL spreads a message over all NVLinks of both ends.
void LinkLoads::add_pair(const std::vector<std::int64_t>& ranks,
                         std::vector<LinkLoad>& loads) const {
  expects(ranks.size() == 2 && ranks[0] != ranks[1] && std::min(ranks[0], ranks[1]) >= 0 &&
              std::max(ranks[0], ranks[1]) < cluster_.num_gpus(),
          "a sender and a receiver, GPUs of this cluster");
  const bool one_node = ranks[0] / gpus_per_node_ == ranks[1] / gpus_per_node_;
  if (!one_node || cluster_.node().kind != NodeKind::nvswitch)
    return add_path(ranks[0], ranks[1], 1.0, 0, loads);
  const auto offset = static_cast<LinkId>(ranks[0] / gpus_per_node_) * links_per_node_;
  for (const PortLink& link : ports_[static_cast<std::size_t>(ranks[0] % gpus_per_node_)])
    loads.push_back({offset + link.link, link.share});
  for (const PortLink& link : ports_[static_cast<std::size_t>(ranks[1] % gpus_per_node_)])
    loads.push_back({topology::reverse(offset + link.link), link.share});
}

std::vector<LinkLoad> LinkLoads::of(CollectiveKind kind,
                                    const std::vector<std::int64_t>& ranks) const {
  std::vector<LinkLoad> loads;
  if (ranks.size() < 2) return loads;
  loads.reserve(16 * ranks.size());  // NVLink ports out and in, one path over the fabric
  if (kind == CollectiveKind::send_receive) {
    add_pair(ranks, loads);
  } else {
    const Group group = group_of(ranks);
    if (kind == CollectiveKind::all_to_all) {
      add_all_pairs(group, loads);
    } else {
      const Flow flow = flow_of(kind, group);
      add_inside(group, flow.port, loads);
      if (flow.network > 0) add_rails(group, flow.network, loads);
    }
  }
  const std::size_t num_links = cluster_.links().size();
  const double units = weight_units(cluster_.fabric().routing);
  loads.size() > num_links / 8 ? merge_densely(loads, num_links, units) : merge(loads, units);
  return loads;
}

GroupShape shape_of(const topology::Cluster& cluster, const std::vector<std::int64_t>& ranks) {
  expects(!ranks.empty(), "a group has a member");
  const std::int64_t per_node = cluster.node().gpus;
  std::vector<std::int64_t> nodes;
  nodes.reserve(ranks.size());
  for (const std::int64_t rank : ranks) nodes.push_back(rank / per_node);
  std::sort(nodes.begin(), nodes.end());
  GroupShape shape{.ranks = static_cast<std::int64_t>(ranks.size()),
                   .nodes = 0,
                   .ranks_per_node = 1,
                   .node_stride = 1};
  for (auto at = nodes.begin(); at != nodes.end();) {
    const auto next = std::upper_bound(at, nodes.end(), *at);
    if (shape.nodes == 0 && next != nodes.end()) shape.node_stride = *next - *at;
    ++shape.nodes;
    shape.ranks_per_node = std::max<std::int64_t>(shape.ranks_per_node, next - at);
    at = next;
  }
  return shape;
}

}  // namespace stepcast::sim
