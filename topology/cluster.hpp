// A cluster as a graph of devices and directed links, immutable once built. GPU g of node n has
// index n * gpus_per_node + g; links and devices are numbered in construction order. The graph
// itself is Boost.Graph, behind the ids; knows no workload and no time but link latency.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "topology/specs.hpp"

namespace stepcast::topology {

using DeviceId = std::uint32_t;
using LinkId = std::uint32_t;

enum class DeviceKind : std::uint8_t {
  gpu,
  nvswitch,
  pcie_switch,
  cpu,
  nic,
  leaf,
  spine,
  core,
  supercore  // fourth tier
};
enum class LinkKind : std::uint8_t { nvlink, pcie, socket, injection, fabric };

struct Device {
  DeviceKind kind{};
  std::int64_t node = -1;  // of gpu, nvswitch, pcie_switch, cpu, nic; -1 for fabric switches
  std::int64_t index = 0;  // within its kind: within the node, or within the fabric tier

  friend bool operator==(const Device&, const Device&) = default;
};

/// One direction of a cable, or a bundle of `count` equal parallel ones. Links 2k and 2k+1 are the
/// two directions of one cable.
struct Link {
  DeviceId from = 0, to = 0;
  LinkKind kind{};
  BytesPerSecond bandwidth{};  // of the whole bundle
  Duration latency{};
  std::int64_t count = 1;

  friend bool operator==(const Link&, const Link&) = default;
};

constexpr LinkId reverse(LinkId link) { return link ^ 1U; }

struct ClusterParts;  // cluster_parts.hpp: how ids are laid out, for this folder only

class Cluster {
 public:
  /// Throws InputError (where = `origin`) when the fabric cannot hold that many nodes.
  static Cluster build(const NodeSpec& node, std::int64_t nodes, const FabricSpec& fabric,
                       const std::string& origin = "cluster");

  /// The same with the cables of one node's NICs, both ways, that much slower.
  Cluster with_slow_cables(std::int64_t node, double slowdown) const;

  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  const NodeSpec& node() const;
  const FabricSpec& fabric() const;
  std::int64_t num_nodes() const;
  std::int64_t num_gpus() const;

  std::span<const Device> devices() const;
  std::span<const Link> links() const;
  std::string name_of(DeviceId) const;  // "node3/gpu5", "leaf12"
  DeviceId gpu(std::int64_t gpu_index) const;
  DeviceId nic(std::int64_t node, std::int64_t nic_index) const;
  std::int64_t nic_of_gpu(
      std::int64_t gpu_in_node) const;  // the NIC closest to that GPU (its rail)

  /// All NVLinks out of (into) a GPU: to every NVSwitch, or to its neighbours in a cube mesh.
  std::vector<LinkId> nvlink_out(std::int64_t gpu_index) const;
  std::vector<LinkId> nvlink_in(std::int64_t gpu_index) const;
  /// The link of a NIC to (from) its leaf; a cluster of one node has none.
  LinkId nic_up(std::int64_t node, std::int64_t nic_index) const;
  LinkId nic_down(std::int64_t node, std::int64_t nic_index) const;
  /// The one GPU that alone uses this link (NVLinks to an NVSwitch, its own PCIe link, a NIC that
  /// no other GPU is closest to); none when several GPUs may load it.
  std::optional<std::int64_t> private_gpu(LinkId) const;

  /// Tiers of switches above the NICs; 0 for one node.
  std::int64_t num_tiers() const;
  /// Nodes that share a leaf: the scalable unit of a rail-optimised fabric.
  std::int64_t nodes_per_unit() const;
  /// Whether switches join the NICs of these numbers on two nodes: not those of two rails of a
  /// rail-only fabric.
  bool joined(std::int64_t nic_a, std::int64_t nic_b) const;
  /// Fabric switches between two NICs: 0 for the same NIC, else 1, 3, 5 or 7. Of NICs that are not
  /// joined: from the first node's NIC on the rail of the second.
  std::int64_t switches_between(std::int64_t node_a, std::int64_t nic_a, std::int64_t node_b,
                                std::int64_t nic_b) const;

  /// Switch counts by tier, GPUs and NICs: what `stepcast show cluster` prints.
  std::int64_t count(DeviceKind) const;
  /// Bandwidth from the first half of the nodes to the second, one direction, by max-flow
  /// (push-relabel); for one node, from the first half of its GPUs over NVLink (PCIe without it).
  BytesPerSecond bisection() const;
  /// The picture in Graphviz's language, nodes and tiers as clusters: every device of a small
  /// cluster, or if asked for; of a large one at most 40 boxes, the rest as counts.
  std::string graphviz(bool every_device = false) const;

  const ClusterParts& parts() const { return *parts_; }

 private:
  explicit Cluster(std::unique_ptr<const ClusterParts>);
  std::unique_ptr<const ClusterParts> parts_;
};

/// What `stepcast show cluster` prints: tiers, cables, links, injection, bisection (describe.cpp).
std::string describe(const Cluster&);

}  // namespace stepcast::topology
