// Bisection by max-flow.
//
// Capacities are whole Mbit/s, so push-relabel is exact. Every arc gets a reverse arc of its own
// with capacity zero: sharing one pair for both directions of a cable gives the right value but
// breaks Boost's own check of the flow.
#include <algorithm>
#include <cmath>
#include <map>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "engine/check.hpp"
#include "topology/cluster_parts.hpp"
#include "topology/graph_checks.hpp"

namespace stepcast::topology {
namespace {

struct Arc;
using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct Arc {
  std::int64_t capacity = 0;  // Mbit/s
  std::int64_t residual = 0;
  Traits::edge_descriptor back;
};
using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Arc>;

std::int64_t to_mbit(BytesPerSecond bandwidth) { return std::llround(bandwidth.value * 8e-6); }
BytesPerSecond from_mbit(std::int64_t mbit) {
  return BytesPerSecond(static_cast<double>(mbit) / 8e-6);
}

void add_arc(FlowGraph& graph, std::size_t from, std::size_t to, std::int64_t capacity) {
  const auto forward = add_edge(from, to, Arc{capacity, 0, {}}, graph).first;
  const auto back = add_edge(to, from, Arc{0, 0, {}}, graph).first;
  graph[forward].back = back;
  graph[back].back = forward;
}

BytesPerSecond solve(FlowGraph& graph, std::size_t source, std::size_t sink) {
  return from_mbit(
      boost::push_relabel_max_flow(graph, source, sink,
                                   boost::capacity_map(get(&Arc::capacity, graph))
                                       .residual_capacity_map(get(&Arc::residual, graph))
                                       .reverse_edge_map(get(&Arc::back, graph))
                                       .vertex_index_map(get(boost::vertex_index, graph))));
}

/// Flow between the halves of the nodes over the fabric. The NICs of one half at one leaf are one
/// arc of their summed capacity, which changes no cut and leaves only switches as vertices.
BytesPerSecond fabric_bisection(const ClusterParts& parts) {
  const DeviceId first = parts.first_fabric_device();
  const std::size_t source = parts.num_devices() - first, sink = source + 1;
  FlowGraph graph(sink + 1);
  std::map<DeviceId, std::int64_t> into_leaf, out_of_leaf;
  for (LinkId id = parts.first_fabric_link(); id < parts.num_links(); ++id) {
    const Link link = parts.link(id);
    const std::int64_t capacity = to_mbit(link.bandwidth);
    if (link.kind != LinkKind::injection) {
      add_arc(graph, link.from - first, link.to - first, capacity);
    } else if (link.from < first) {
      if (parts.device(link.from).node < parts.nodes / 2) into_leaf[link.to] += capacity;
    } else if (parts.device(link.to).node >= parts.nodes / 2) {
      out_of_leaf[link.from] += capacity;
    }
  }
  for (const auto& [leaf, capacity] : into_leaf) add_arc(graph, source, leaf - first, capacity);
  for (const auto& [leaf, capacity] : out_of_leaf) add_arc(graph, leaf - first, sink, capacity);
  return solve(graph, source, sink);
}

}  // namespace

BytesPerSecond max_flow(const Cluster& cluster, const std::vector<DeviceId>& sources,
                        const std::vector<DeviceId>& sinks, const std::vector<LinkKind>& allowed) {
  const std::size_t source = cluster.devices().size(), sink = source + 1;
  FlowGraph graph(sink + 1);
  std::vector<std::int64_t> out(source, 0), in(source, 0);  // what a device's own links can carry
  for (const Link& link : cluster.links()) {
    if (std::find(allowed.begin(), allowed.end(), link.kind) == allowed.end()) continue;
    const std::int64_t capacity = to_mbit(link.bandwidth);
    add_arc(graph, link.from, link.to, capacity);
    out[link.from] += capacity;
    in[link.to] += capacity;
  }
  for (const DeviceId device : sources) add_arc(graph, source, device, out.at(device));
  for (const DeviceId device : sinks) add_arc(graph, device, sink, in.at(device));
  return solve(graph, source, sink);
}

BytesPerSecond Cluster::bisection() const {
  if (parts_->nodes > 1) return fabric_bisection(*parts_);
  std::vector<DeviceId> left, right;
  for (std::int64_t g = 0; g < num_gpus(); ++g)
    (g < num_gpus() / 2 ? left : right).push_back(gpu(g));
  if (left.empty()) return {};
  if (parts_->node.kind != NodeKind::pcie) return max_flow(*this, left, right, {LinkKind::nvlink});
  return max_flow(*this, left, right, {LinkKind::pcie, LinkKind::socket});
}

}  // namespace stepcast::topology
