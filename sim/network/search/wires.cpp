#include "sim/network/search/wires.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using topology::NodeKind;
using topology::NodeSpec;

// topo.h: between sockets 10 GB/s on Intel (Skylake's UPI), 16 on AMD.
double planned_socket(const NodeSpec& node) {
  return std::min(node.socket.value / bytes_per_gigabyte, node.cpu == "amd" ? 16.0 : 10.0);
}

std::int64_t place_of(std::int64_t index, std::int64_t count, std::int64_t places) {
  return index * places / count;
}

}  // namespace

double planned_nvlink(const NodeSpec& node) {
  const double link = node.kind == NodeKind::nvswitch
                          ? node.gpu.nvlink.value / static_cast<double>(node.gpu.nvlink_links)
                          : node.nvlink_per_link.value;
  const topology::Architecture& architecture = node.gpu.architecture;
  expects(architecture.planned_link.value > 0, "an architecture with a planned speed of links");
  const double ratio = link / architecture.link.value;
  const double speedup = std::abs(ratio - 1.0) < 0.02 ? 1.0 : ratio;
  return architecture.planned_link.value / bytes_per_gigabyte * speedup;
}

/// 12 of 15.75 GB/s on PCIe 3.0 x16 (topo.h), 24 and 48 on the next two.
double planned_pcie(const NodeSpec& node) {
  return node.pcie.value / bytes_per_gigabyte * 12.0 / 15.75;
}

NodeWires::NodeWires(const NodeSpec& node)
    : kind_(node.kind),
      gpus_(node.gpus),
      nics_(node.nics),
      nic_(node.nic.value / bytes_per_gigabyte),
      sockets_(std::max<std::int64_t>(1, node.sockets)),
      sockets_in_tray_(std::max<std::int64_t>(1, sockets_ / node.trays())) {
  const auto gpus = static_cast<std::size_t>(gpus_);
  if (kind_ == NodeKind::nvswitch) {
    const double port = planned_nvlink(node) * static_cast<double>(node.gpu.nvlink_links);
    for (std::size_t g = 0; g < gpus; ++g) {
      port_out_.push_back(wire(port));
      port_in_.push_back(wire(port));
    }
  } else if (kind_ == NodeKind::hybrid_cube_mesh) {
    for (std::size_t i = 0; i < gpus; ++i)
      for (std::size_t j = 0; j < gpus; ++j)
        mesh_.push_back(wire(planned_nvlink(node) * static_cast<double>(node.nvlinks[i][j])));
  }
  const double pcie = planned_pcie(node);
  const std::int64_t switches = node.pcie_switches;
  for (std::int64_t s = 0; s < switches; ++s) {
    const std::size_t up = wire(pcie), down = wire(pcie);
    switches_.push_back({up, down, s, place_of(s, switches, sockets_)});
  }
  for (std::int64_t a = 0; a < sockets_ * sockets_in_tray_; ++a)
    socket_.push_back(wire(planned_socket(node)));
  const auto end_of = [&](std::int64_t index, std::int64_t count) {
    const std::size_t up = wire(pcie), down = wire(pcie);
    if (switches == 0) return PcieEnd{up, down, -1, place_of(index, count, sockets_)};
    const std::int64_t s = place_of(index, count, switches);
    return PcieEnd{up, down, s, switches_[static_cast<std::size_t>(s)].socket};
  };
  for (std::int64_t g = 0; g < gpus_; ++g) gpu_ends_.push_back(end_of(g, gpus_));
  for (std::int64_t n = 0; n < nics_; ++n) {
    nic_ends_.push_back(end_of(n, nics_));
    nic_out_.push_back(wire(nic_));
    nic_in_.push_back(wire(nic_));
  }
}

std::size_t NodeWires::wire(double bandwidth) {
  planned_.push_back(bandwidth);
  return planned_.size() - 1;
}

double NodeWires::direct(std::int64_t from, std::int64_t to) const {
  return planned_[mesh_[static_cast<std::size_t>(from * gpus_ + to)]];
}

WireRoute NodeWires::pcie(const PcieEnd& from, const PcieEnd& to) const {
  expects(same_tray(from, to), "only NVLink joins the trays of a rack");
  WireRoute way;
  way.add(from.up);
  if (from.pcie_switch < 0 || from.pcie_switch != to.pcie_switch) {
    if (from.pcie_switch >= 0) way.add(switches_[static_cast<std::size_t>(from.pcie_switch)].up);
    if (from.socket != to.socket)
      way.add(socket_[static_cast<std::size_t>(from.socket * sockets_in_tray_ +
                                               to.socket % sockets_in_tray_)]);
    if (to.pcie_switch >= 0) way.add(switches_[static_cast<std::size_t>(to.pcie_switch)].down);
  }
  way.add(to.down);
  return way;
}

std::optional<WireRoute> NodeWires::between_gpus(std::int64_t from, std::int64_t to,
                                                 HopReach reach) const {
  WireRoute way;
  const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  if (reach == HopReach::pcie) {
    if (!same_tray(gpu_ends_[a], gpu_ends_[b])) return std::nullopt;
    return pcie(gpu_ends_[a], gpu_ends_[b]);
  }
  if (kind_ == NodeKind::pcie) return std::nullopt;
  if (kind_ == NodeKind::nvswitch) {
    way.add(port_out_[a]);
    way.add(port_in_[b]);
    return way;
  }
  if (direct(from, to) > 0) {
    way.add(mesh_[static_cast<std::size_t>(from * gpus_ + to)]);
    return way;
  }
  if (reach == HopReach::nvlink) return std::nullopt;
  std::int64_t best = -1;
  double widest = 0.0;
  for (std::int64_t via = 0; via < gpus_; ++via) {
    const double width = std::min(direct(from, via), direct(via, to));
    if (width > widest) {
      widest = width;
      best = via;
    }
  }
  if (best < 0) return std::nullopt;
  way.add(mesh_[static_cast<std::size_t>(from * gpus_ + best)]);
  way.add(mesh_[static_cast<std::size_t>(best * gpus_ + to)]);
  return way;
}

WireRoute NodeWires::from_nic(std::int64_t nic, std::int64_t gpu) const {
  const auto n = static_cast<std::size_t>(nic);
  WireRoute way;
  way.add(nic_in_[n]);
  way.add(pcie(nic_ends_[n], gpu_ends_[static_cast<std::size_t>(gpu)]));
  return way;
}

WireRoute NodeWires::to_nic(std::int64_t gpu, std::int64_t nic) const {
  const auto n = static_cast<std::size_t>(nic);
  WireRoute way = pcie(gpu_ends_[static_cast<std::size_t>(gpu)], nic_ends_[n]);
  way.add(nic_out_[n]);
  return way;
}

bool NodeWires::beside(std::int64_t gpu, std::int64_t nic) const {
  const PcieEnd &g = gpu_ends_[static_cast<std::size_t>(gpu)],
                &n = nic_ends_[static_cast<std::size_t>(nic)];
  return g.pcie_switch < 0 ? g.socket == n.socket : g.pcie_switch == n.pcie_switch;
}

std::int64_t NodeWires::nic_of(std::int64_t gpu) const { return place_of(gpu, gpus_, nics_); }

double NodeWires::port(std::int64_t gpu, const std::vector<std::int64_t>& members) const {
  if (kind_ == NodeKind::nvswitch) return planned_[port_out_[static_cast<std::size_t>(gpu)]];
  double sum = 0.0;
  if (kind_ == NodeKind::hybrid_cube_mesh)
    for (const std::int64_t other : members) sum += direct(gpu, other);
  return sum > 0 ? sum : planned_[gpu_ends_[static_cast<std::size_t>(gpu)].up];
}

double NodeWires::hops_at(std::int64_t gpu, const std::vector<std::int64_t>& members,
                          double speed) const {
  const auto fits = [speed](double bandwidth) { return std::floor(bandwidth / speed * 1.001); };
  if (kind_ != NodeKind::hybrid_cube_mesh) return fits(port(gpu, members));
  double hops = 0.0;
  bool linked = false;
  for (const std::int64_t other : members) {
    hops += fits(direct(gpu, other));
    linked = linked || direct(gpu, other) > 0;
  }
  // Through another GPU it may use all its links; by PCIe its one.
  for (std::int64_t other = 0; !linked && other < gpus_; ++other) hops += fits(direct(gpu, other));
  return hops;
}

}  // namespace stepcast::sim
