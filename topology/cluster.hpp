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

enum class DeviceKind : std::uint8_t { gpu, nvswitch, pcie_switch, cpu, nic, leaf, spine, core };
enum class LinkKind : std::uint8_t { nvlink, pcie, socket, injection, fabric };

struct Device {
  DeviceKind kind{};
  std::int64_t node = -1;  // of gpu, nvswitch, pcie_switch, cpu, nic; -1 for fabric switches
  std::int64_t index = 0;  // within its kind: within the node, or within the fabric tier

  friend bool operator==(const Device&, const Device&) = default;
};

/// One direction of a cable, or a bundle of `count` equal parallel ones.
struct Link {
  DeviceId from = 0, to = 0;
  LinkKind kind{};
  BytesPerSecond bandwidth{};  // of the whole bundle
  Duration latency{};
  std::int64_t count = 1;

  friend bool operator==(const Link&, const Link&) = default;
};

class Cluster {
 public:
  /// Throws InputError (where = `origin`) when the fabric cannot hold that many nodes.
  static Cluster build(const NodeSpec& node, std::int64_t nodes, const FabricSpec& fabric,
                       const std::string& origin = "cluster");

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

  /// Switch counts by tier, GPUs and NICs: what `stepcast show cluster` prints.
  std::int64_t count(DeviceKind) const;
  /// Bandwidth that can cross any equal split of the nodes in the worst numbering-preserving cut
  /// (first half against second half), one direction, by max-flow (push-relabel).
  BytesPerSecond bisection() const;
  std::string graphviz() const;

 private:
  struct Graph;
  Cluster();
  std::unique_ptr<Graph> graph_;
};

}  // namespace stepcast::topology
