#include "topology/graph_checks.hpp"

#include <algorithm>
#include <limits>

#include "topology/boost_graph.hpp"
// After the graph: Boost's algorithms are templates over it.
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/strong_components.hpp>

#include "engine/check.hpp"

namespace stepcast::topology {
namespace {

struct KindFilter {
  const BoostGraph* graph = nullptr;
  std::uint32_t allowed = 0;  // bit per LinkKind

  bool operator()(const BoostGraph::edge_descriptor& edge) const {
    return (allowed >> static_cast<unsigned>((*graph)[edge].kind) & 1U) != 0;
  }
};

}  // namespace

BoostGraph boost_graph_of(const Cluster& cluster) {
  const auto links = cluster.links();
  std::vector<std::pair<DeviceId, DeviceId>> ends;
  ends.reserve(links.size());
  for (const Link& link : links) ends.emplace_back(link.from, link.to);
  const auto devices = cluster.devices();
  BoostGraph graph(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), links.begin(),
                   static_cast<DeviceId>(devices.size()));
  for (DeviceId id = 0; id < devices.size(); ++id) graph[id] = devices[id];
  return graph;
}

std::vector<std::optional<std::int64_t>> hops_from(const Cluster& cluster, DeviceId from,
                                                   const std::vector<LinkKind>& allowed) {
  expects(from < cluster.devices().size(), "device of this cluster");
  const BoostGraph graph = boost_graph_of(cluster);
  KindFilter filter{&graph, 0};
  for (const LinkKind kind : allowed) filter.allowed |= 1U << static_cast<unsigned>(kind);
  const boost::filtered_graph<BoostGraph, KindFilter> visible(graph, filter);

  std::vector<std::int64_t> hops(cluster.devices().size(), 0);
  const auto distance =
      boost::make_iterator_property_map(hops.begin(), get(boost::vertex_index, graph));
  boost::breadth_first_search(visible, from,
                              boost::visitor(boost::make_bfs_visitor(
                                  boost::record_distances(distance, boost::on_tree_edge()))));
  // Tree edges write a positive number everywhere but at the start and where nothing leads.
  std::vector<std::optional<std::int64_t>> out(hops.size());
  for (DeviceId id = 0; id < hops.size(); ++id)
    if (hops[id] > 0 || id == from) out[id] = hops[id];
  return out;
}

bool strongly_connected(const Cluster& cluster) {
  const BoostGraph graph = boost_graph_of(cluster);
  std::vector<DeviceId> component(cluster.devices().size());
  return boost::strong_components(graph, boost::make_iterator_property_map(
                                             component.begin(), get(boost::vertex_index, graph))) ==
         1;
}

}  // namespace stepcast::topology
