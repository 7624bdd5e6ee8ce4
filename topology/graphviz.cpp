// The cluster in Graphviz's language. Up to some hundred devices every device is drawn; beyond, a
// quotient picture: one node in full and every tier of switches as one box with its count.
#include <sstream>

#include <fmt/format.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>

#include "engine/units_text.hpp"
#include "topology/cluster_parts.hpp"

namespace stepcast::topology {
namespace {

constexpr std::size_t most_devices_drawn = 300;

/// A connection is drawn once, without arrows; the label says what one direction carries.
struct Vertex {
  std::string name;
  std::string shape;
};
struct Edge {
  std::string label;
};
using Picture = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Vertex, Edge>;

std::string shape_of(DeviceKind kind) {
  if (kind == DeviceKind::gpu) return "box";
  if (kind == DeviceKind::nic || kind == DeviceKind::cpu) return "component";
  return "ellipse";
}

std::string label_of(const Link& link) {
  return link.count == 1 ? to_text(link.bandwidth)
                         : fmt::format("{} x {}", link.count,
                                       to_text(link.bandwidth / static_cast<double>(link.count)));
}

Picture every_device(const Cluster& cluster) {
  Picture picture(cluster.devices().size());
  for (DeviceId id = 0; id < cluster.devices().size(); ++id)
    picture[id] = {cluster.name_of(id), shape_of(cluster.devices()[id].kind)};
  for (LinkId id = 0; id < cluster.links().size(); id += 2) {
    const Link& link = cluster.links()[id];
    add_edge(link.from, link.to, Edge{label_of(link)}, picture);
  }
  return picture;
}

/// Node 0 as it is, then one vertex per tier; cables between tiers are summed.
Picture one_node_and_tiers(const Cluster& cluster) {
  const ClusterParts& parts = cluster.parts();
  const auto& tiers = parts.fabric_layout.tiers;
  const std::size_t devices = parts.node_devices();
  Picture picture(devices + tiers.size());
  for (DeviceId id = 0; id < devices; ++id)
    picture[id] = {cluster.name_of(id), shape_of(parts.devices[id].kind)};
  for (LinkId id = 0; id < parts.node_links(); id += 2)
    add_edge(parts.links[id].from, parts.links[id].to, Edge{label_of(parts.links[id])}, picture);
  for (std::int64_t j = 0; j < parts.node.nics; ++j)
    add_edge(cluster.nic(0, j), devices, Edge{label_of(parts.links[cluster.nic_up(0, j)])},
             picture);
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const std::int64_t switches = tiers[t].blocks * tiers[t].top;
    const Device first = parts.devices[tiers[t].first_switch];
    const std::string name = cluster.name_of(tiers[t].first_switch);
    picture[devices + t] = {fmt::format("{} x {}", switches, name.substr(0, name.size() - 1)),
                            shape_of(first.kind)};
    if (t > 0) {
      const std::int64_t bundles = tiers[t - 1].blocks * tiers[t - 1].top * tiers[t].links_up();
      const Link& link = parts.links[tiers[t].first_link];
      add_edge(devices + t - 1, devices + t,
               Edge{fmt::format("{} cables of {}", bundles * link.count,
                                to_text(link.bandwidth / static_cast<double>(link.count)))},
               picture);
    }
  }
  return picture;
}

}  // namespace

std::string Cluster::graphviz() const {
  const bool all = parts_->devices.size() <= most_devices_drawn;
  const Picture picture = all ? every_device(*this) : one_node_and_tiers(*this);
  std::ostringstream out;
  boost::write_graphviz(
      out, picture,
      [&](std::ostream& text, std::size_t vertex) {
        text << fmt::format("[label=\"{}\", shape={}]", picture[vertex].name,
                            picture[vertex].shape);
      },
      [&](std::ostream& text, const Picture::edge_descriptor& edge) {
        text << fmt::format("[label=\"{}\"]", picture[edge].label);
      },
      [&](std::ostream& text) {
        text << fmt::format("label=\"{} x {}{}\";\nlayout=dot;\n", parts_->nodes, parts_->node.name,
                            all ? "" : ": one node and the tiers above");
      });
  return out.str();
}

}  // namespace stepcast::topology
