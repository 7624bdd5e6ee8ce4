#include "topology/router.hpp"

#include <algorithm>
#include <array>

#include "engine/check.hpp"
#include "topology/fabric_routes.hpp"
#include "topology/mesh_routes.hpp"

namespace stepcast::topology {
namespace {

constexpr LinkId no_link = ~LinkId{0};

/// The PCIe side of a node is a tree under each socket, and sockets are joined directly.
struct PcieTree {
  std::vector<LinkId> parent_link;  // of GPU, NIC, PCIe switch; no_link of a CPU
  std::vector<LinkId> socket_link;  // from socket a to b at a * sockets + b
  DeviceId first_cpu = 0;
  std::size_t sockets = 0;
};

PcieTree pcie_tree_of(const ClusterParts& parts) {
  const NodeLayout& layout = parts.node_layout;
  PcieTree tree;
  tree.first_cpu = layout.first_cpu;
  tree.sockets = static_cast<std::size_t>(parts.node.sockets);
  tree.parent_link.assign(layout.devices.size(), no_link);
  tree.socket_link.assign(tree.sockets * tree.sockets, no_link);
  for (LinkId id = 0; id < layout.links.size(); ++id) {
    const Link& link = layout.links[id];
    // pcie_tree.cpp connects child to parent, so the first of the two directions leads up.
    if (link.kind == LinkKind::pcie && id % 2 == 0) tree.parent_link[link.from] = id;
    if (link.kind == LinkKind::socket)
      tree.socket_link[(link.from - tree.first_cpu) * tree.sockets + link.to - tree.first_cpu] = id;
  }
  return tree;
}

}  // namespace

struct StaticRouter::Tables {
  /// Of a path: their ids in the cluster and within their nodes.
  struct Ends {
    DeviceId from = 0, to = 0;
    DeviceId local_from = 0, local_to = 0;
    Device source, target;
  };
  const ClusterParts* parts = nullptr;
  PcieTree tree;
  MeshRoutes mesh;

  void pcie(std::int64_t node, DeviceId from, DeviceId to, Path& path) const;
  bool nvlink(std::int64_t node, DeviceId from, DeviceId to, std::uint64_t key, Path& path) const;
  Device nic_at(const Device& end) const;
  Device leave(const Ends& ends, std::uint64_t key, Path& path) const;
  void append(const Ends& ends, std::uint64_t key, Path& path) const;
  void within_node(std::int64_t node, DeviceId from, DeviceId to, std::uint64_t key,
                   Path& path) const;

  Ends ends_of(DeviceId from, DeviceId to) const;

  LinkId link_offset(std::int64_t node) const {
    return static_cast<LinkId>(node) * parts->node_links();
  }
  DeviceId local_nic(const Device& nic) const {
    return parts->node_layout.first_nic + static_cast<DeviceId>(nic.index);
  }
};

/// Up from `from` to the first switch or socket that is also above `to`, then down; across the
/// socket link where they hang on different sockets.
void StaticRouter::Tables::pcie(std::int64_t node, DeviceId from, DeviceId to, Path& path) const {
  const LinkId offset = link_offset(node);
  const auto& links = parts->node_layout.links;
  // A NIC that cannot read GPU memory goes through the CPU's memory.
  const bool by_cpu = !parts->node.gpu_direct && (from >= tree.first_cpu + tree.sockets ||
                                                  to >= tree.first_cpu + tree.sockets);
  std::array<LinkId, 4> climb{};  // links from `to` up to its socket
  std::size_t height = 0;
  DeviceId top = to;
  for (; tree.parent_link[top] != no_link; top = links[climb[height - 1]].to)
    climb.at(height++) = tree.parent_link[top];

  DeviceId here = from;
  for (;;) {
    std::size_t met = 0;  // how many links of the climb lie below `here`; none if it is not on it
    while (met < height && links[climb[met]].from != here) ++met;
    const bool on_climb = met < height || here == top;
    if (on_climb && (!by_cpu || here == top)) {
      for (std::size_t i = met; i > 0; --i) path.push_back(offset + reverse(climb[i - 1]));
      return;
    }
    if (const LinkId up = tree.parent_link[here]; up != no_link) {
      path.push_back(offset + up);
      here = links[up].to;
      continue;
    }
    const LinkId across =
        tree.socket_link[(here - tree.first_cpu) * tree.sockets + top - tree.first_cpu];
    expects(across != no_link, "only NVLink joins the trays of a rack");
    path.push_back(offset + across);
    here = top;
  }
}

bool StaticRouter::Tables::nvlink(std::int64_t node, DeviceId from, DeviceId to, std::uint64_t key,
                                  Path& path) const {
  const LinkId offset = link_offset(node);
  if (parts->node.kind == NodeKind::nvswitch) {
    // nvswitch_node.cpp lays GPU g's cable to switch s at 2 (g S + s).
    const auto switches = static_cast<LinkId>(parts->node.nvswitches);
    const auto plane = static_cast<LinkId>(key % switches);
    path.push_back(offset + 2 * (from * switches + plane));
    path.push_back(offset + reverse(2 * (to * switches + plane)));
    return true;
  }
  if (parts->node.kind == NodeKind::pcie) return false;
  const auto route = mesh.route(from, to, key);
  for (const LinkId link : route) path.push_back(offset + link);
  return !route.empty();
}

void StaticRouter::Tables::within_node(std::int64_t node, DeviceId from, DeviceId to,
                                       std::uint64_t key, Path& path) const {
  const auto gpus = static_cast<DeviceId>(parts->node.gpus);
  const bool both_gpus = from < gpus && to < gpus;
  if (!(both_gpus && nvlink(node, from, to, key, path))) pcie(node, from, to, path);
}

Device StaticRouter::Tables::nic_at(const Device& end) const {
  if (end.kind == DeviceKind::nic) return end;
  expects(end.kind == DeviceKind::gpu, "ends on different nodes are GPUs or NICs");
  return {.kind = DeviceKind::nic,
          .node = end.node,
          .index = place_of(end.index, parts->node.gpus, parts->node.nics)};
}

/// Appends the way from the source to the NIC that its bytes leave the node by, which it returns.
Device StaticRouter::Tables::leave(const Ends& ends, std::uint64_t key, Path& path) const {
  const Device& end = ends.source;
  const Device own = nic_at(end), target = nic_at(ends.target);
  if (parts->fabric_layout.joined(own.index, target.index)) {
    if (end.kind == DeviceKind::gpu) pcie(end.node, ends.local_from, local_nic(own), path);
    return own;
  }
  const std::int64_t gpus = parts->node.gpus, nics = parts->node.nics;
  const auto beside = [&](std::int64_t nic) {  // the first GPU whose NIC it is, or its neighbour
    return static_cast<DeviceId>(nics >= gpus ? place_of(nic, nics, gpus)
                                              : (nic * gpus + nics - 1) / nics);
  };
  const Device out{DeviceKind::nic, own.node,
                   parts->fabric_layout.on_rail_of(own.index, target.index)};
  const DeviceId peer = beside(out.index);
  const DeviceId first = end.kind == DeviceKind::gpu ? ends.local_from : beside(own.index);
  if (end.kind != DeviceKind::gpu) pcie(end.node, ends.local_from, first, path);
  if (first != peer) within_node(end.node, first, peer, key, path);
  pcie(end.node, peer, local_nic(out), path);
  return out;
}

StaticRouter::Tables::Ends StaticRouter::Tables::ends_of(DeviceId from, DeviceId to) const {
  const DeviceId first = parts->first_fabric_device(), in_node = parts->node_devices();
  expects(from < first && to < first, "both ends of a path stand in nodes");
  const std::vector<Device>& layout = parts->node_layout.devices;
  Ends ends{from, to, from % in_node, to % in_node, {}, {}};
  ends.source = layout[ends.local_from];
  ends.source.node = from / in_node;
  ends.target = layout[ends.local_to];
  ends.target.node = to / in_node;
  expects(ends.source.kind != DeviceKind::nvswitch && ends.target.kind != DeviceKind::nvswitch,
          "no path ends at an NVSwitch");
  return ends;
}

void StaticRouter::Tables::append(const Ends& ends, std::uint64_t key, Path& path) const {
  const Device &a = ends.source, &b = ends.target;
  if (ends.from == ends.to) return;
  if (a.node == b.node) return within_node(a.node, ends.local_from, ends.local_to, key, path);
  const Device nic_a = leave(ends, key, path), nic_b = nic_at(b);
  append_fabric_path(*parts, nic_a, nic_b, {ends.from, ends.to, key}, path);
  if (b.kind == DeviceKind::gpu) pcie(b.node, local_nic(nic_b), ends.local_to, path);
}

void Router::append_shares(DeviceId from, DeviceId to, std::uint64_t flow_key,
                           std::vector<LinkShare>& shares) const {
  for (const LinkId link : path(from, to, flow_key)) shares.push_back({link, 1.0});
}

StaticRouter::StaticRouter(const Cluster& cluster) {
  auto tables = std::make_unique<Tables>();
  tables->parts = &cluster.parts();
  tables->tree = pcie_tree_of(cluster.parts());
  if (cluster.node().kind == NodeKind::hybrid_cube_mesh)
    tables->mesh = MeshRoutes(cluster.parts().node_layout, cluster.node().gpus);
  tables_ = std::move(tables);
}

StaticRouter::~StaticRouter() = default;
StaticRouter::StaticRouter(StaticRouter&&) noexcept = default;

void StaticRouter::append_path(DeviceId from, DeviceId to, std::uint64_t flow_key,
                               Path& path) const {
  tables_->append(tables_->ends_of(from, to), flow_key, path);
}

void StaticRouter::append_shares(DeviceId from, DeviceId to, std::uint64_t flow_key,
                                 std::vector<LinkShare>& shares) const {
  const ClusterParts& parts = *tables_->parts;
  const Tables::Ends ends = tables_->ends_of(from, to);
  const Device &a = ends.source, &b = ends.target;
  Path whole;  // links that all bytes take
  whole.reserve(16);
  if (parts.fabric.routing == Routing::spray && a.node != b.node) {
    const Device nic_a = tables_->leave(ends, flow_key, whole), nic_b = tables_->nic_at(b);
    append_sprayed_ways(parts, nic_a, nic_b, shares);
    if (b.kind == DeviceKind::gpu)
      tables_->pcie(b.node, tables_->local_nic(nic_b), ends.local_to, whole);
  } else {
    tables_->append(ends, flow_key, whole);
  }
  for (const LinkId link : whole) shares.push_back({link, 1.0});
}

Path StaticRouter::path(DeviceId from, DeviceId to, std::uint64_t flow_key) const {
  Path path;
  append_path(from, to, flow_key, path);
  return path;
}

Duration latency_of(const Cluster& cluster, const Path& path) {
  Duration sum{};
  for (const LinkId link : path) sum += cluster.parts().link(link).latency;
  return sum;
}

std::int64_t switches_on(const Cluster& cluster, const Path& path) {
  return std::count_if(path.begin(), path.end(), [&](LinkId link) {
    return cluster.parts().link(link).to >= cluster.parts().first_fabric_device();
  });
}

}  // namespace stepcast::topology
