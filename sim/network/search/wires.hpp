// One node's wires as NCCL's search plans them: GPUs' NVLinks, PCIe links, NICs and the sockets
// between, each direction with the bandwidth that NCCL takes it for. Knows no fabric and no bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/specs.hpp"

namespace stepcast::sim {

inline constexpr double bytes_per_gigabyte = 1e9;

inline bool hopper_or_later(const topology::NodeSpec& node) {
  return node.gpu.architecture.nccl >= topology::NcclGeneration::hopper;
}

/// How far a hop between two GPUs of a node may reach; NCCL tries the nearer first.
enum class HopReach : std::uint8_t { nvlink, nvlink_through_gpu, pcie };

/// The wires that one hop takes, in order.
struct WireRoute {
  std::array<std::uint16_t, 10> wires{};
  std::size_t count = 0;

  void add(std::size_t wire) { wires.at(count++) = static_cast<std::uint16_t>(wire); }
  void add(const WireRoute& other) {
    for (std::size_t i = 0; i < other.count; ++i) add(other.wires[i]);
  }
};

class NodeWires {
 public:
  explicit NodeWires(const topology::NodeSpec& node);

  /// Planned bandwidth of every wire, GB/s as in NCCL's tables.
  const std::vector<double>& planned() const { return planned_; }

  /// Nothing where there is no such way.
  std::optional<WireRoute> between_gpus(std::int64_t from, std::int64_t to, HopReach reach) const;
  WireRoute from_nic(std::int64_t nic, std::int64_t gpu) const;
  WireRoute to_nic(std::int64_t gpu, std::int64_t nic) const;

  /// Under one PCIe switch, or on one socket without PCIe switches.
  bool beside(std::int64_t gpu, std::int64_t nic) const;
  std::int64_t nic_of(std::int64_t gpu) const;
  /// Planned bandwidth of all NVLinks of a GPU to `members`; of its PCIe link without NVLink.
  double port(std::int64_t gpu, const std::vector<std::int64_t>& members) const;
  /// Hops of this speed that fit out of a GPU to `members`.
  double hops_at(std::int64_t gpu, const std::vector<std::int64_t>& members, double speed) const;
  double nic_bandwidth() const { return nic_; }

 private:
  /// A device on the PCIe tree: its own link both ways, and where that ends.
  struct PcieEnd {
    std::size_t up = 0, down = 0;
    std::int64_t pcie_switch = -1, socket = 0;
  };
  std::size_t wire(double bandwidth);
  bool same_tray(const PcieEnd& from, const PcieEnd& to) const {
    return from.socket / sockets_in_tray_ == to.socket / sockets_in_tray_;
  }
  WireRoute pcie(const PcieEnd& from, const PcieEnd& to) const;
  double direct(std::int64_t from, std::int64_t to) const;

  topology::NodeKind kind_;
  std::int64_t gpus_, nics_;
  double nic_ = 0.0;
  std::vector<double> planned_;
  std::vector<std::size_t> port_out_, port_in_;  // NVSwitch: of GPU
  std::vector<std::size_t> mesh_;                // from * gpus + to; planned 0 where no link is
  std::vector<PcieEnd> gpu_ends_, nic_ends_;
  std::vector<std::size_t> nic_out_, nic_in_;
  std::vector<PcieEnd> switches_;
  std::vector<std::size_t> socket_;  // from * sockets of a tray + place of `to` in its tray
  std::int64_t sockets_, sockets_in_tray_;
};

/// What NCCL takes one NVLink of a node for, GB/s; faster in a what-if node whose links are.
double planned_nvlink(const topology::NodeSpec& node);
/// One x16 link, GB/s.
double planned_pcie(const topology::NodeSpec& node);

}  // namespace stepcast::sim
