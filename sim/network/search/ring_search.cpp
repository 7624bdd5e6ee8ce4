#include "sim/network/search/ring_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "engine/check.hpp"
#include "sim/network/search/channel_attempt.hpp"
#include "sim/program/cache.hpp"

namespace stepcast::sim {
namespace {

using topology::NcclGeneration;
using topology::NodeSpec;

constexpr std::size_t most_rings = 32;  // half of NCCL's 64 channels, which connect.cc doubles

// Candidate speeds per channel of search.cc (v2.28.9-1), GB/s.
constexpr std::array in_node_before_hopper{40., 30., 20., 18., 15., 12., 10.,
                                           9.,  7.,  6.,  5.,  4.,  3.};
constexpr std::array in_node_hopper{60., 50., 40., 30., 24., 20., 15., 12., 11., 6., 3.};
constexpr std::array in_node_blackwell{90., 80., 70., 60., 50., 45., 40., 30., 24., 20., 19., 18.};
constexpr std::array between_before_hopper{48., 30., 28., 24., 20., 18., 15., 12., 10.,
                                           9.,  7.,  6.,  5.,  4.,  3.,  2.4, 1.2};
constexpr std::array between_hopper{48., 45., 42., 40., 30., 24., 22., 20., 17.5, 15., 12., 6., 3.};
// For SM100 as of 2.30; before it 86 and 80 were missing, which no NIC of the catalogue reaches.
constexpr std::array between_blackwell{96., 86., 80., 48.,  45.1, 42., 40., 30.,
                                       24., 22., 20., 17.5, 15.,  12., 6.,  3.};

std::span<const double> candidates_of(const NodeSpec& node, bool several_nodes) {
  // Cards on two sockets: the table for SM100 ends above what is planned between them here.
  const bool card = node.kind == topology::NodeKind::pcie;
  if (node.gpu.architecture.nccl == NcclGeneration::blackwell && !card) {
    if (several_nodes) return between_blackwell;
    return in_node_blackwell;
  }
  if (several_nodes) {
    if (hopper_or_later(node)) return between_hopper;
    return between_before_hopper;
  }
  if (hopper_or_later(node)) return in_node_hopper;
  return in_node_before_hopper;
}

struct Found {
  std::vector<NodeChannel> channels;
  double speed = 0.0;
  HopReach reach = HopReach::nvlink;
  ChannelExit exit = ChannelExit::closes;

  double total() const { return speed * static_cast<double>(channels.size()); }
};

class Search {
 public:
  Search(const NodeSpec& node, const std::vector<std::int64_t>& members, bool several_nodes)
      : node_(node), members_(members), several_nodes_(several_nodes), wires_(node) {
    std::vector<std::int64_t> nics;
    if (several_nodes)
      for (const std::int64_t gpu : members) nics.push_back(wires_.nic_of(gpu));
    nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
    nics_ = std::move(nics);
    for (const std::int64_t gpu : members) port_ = std::min(port_, wires_.port(gpu, members));
  }

  /// Largest channels x speed; the faster of equals. Slower channels are tried while one more step
  /// down the table could still be made up for by twice as many of them.
  Found rings() {
    Found best;
    for (const bool far : {false, true}) {
      far_nics_ = far;
      for (const HopReach reach : reaches())
        if (best.channels.empty()) best = fastest(reach);
      // Far from all NICs but one: out through whoever is near that, by PCIe.
      for (const double speed : speeds())
        if (best.channels.empty() && several_nodes_)
          attempt(speed, HopReach::pcie, ChannelExit::same_nic_by_pxn, best);
      if (!best.channels.empty()) return best;
    }
    throw InputError("node " + node_.name,
                     fmt::format("NCCL has no channel slower than {} GB/s, and none so fast fits "
                                 "between its GPUs and the network",
                                 speeds().back()),
                     "a NIC, a PCIe link or the link between its sockets is too slow");
  }

  /// As many chains as there are rings, as fast as the node carries them.
  Found chains(const Found& rings) const {
    const std::size_t want = rings.channels.size();
    if (members_.size() > 1)
      for (const double speed : candidates_of(node_, several_nodes_)) {
        if (speed < rings.speed * 0.999) break;
        if (bound(speed, ChannelExit::none) < want) continue;
        std::vector<NodeChannel> found =
            run(speed, rings.reach, ChannelExit::none, want, rings.speed);
        if (found.size() == want) return {std::move(found), speed, rings.reach, ChannelExit::none};
      }
    Found same = rings;  // the rings' own orders, without their ways out
    for (NodeChannel& channel : same.channels) {
      channel.nic_out = channel.nic_in;
      channel.out_gpu = channel.gpus.front();
    }
    return same;
  }

 private:
  Found fastest(HopReach reach) const {
    Found best;
    for (const double speed : speeds()) {
      if (!best.channels.empty() && speed / best.speed <= 0.49) break;
      for (const ChannelExit exit : exits(reach)) attempt(speed, reach, exit, best);
      if (best.total() >= port_) break;
    }
    return best;
  }

  std::vector<HopReach> reaches() const {
    return {HopReach::nvlink, HopReach::nvlink_through_gpu, HopReach::pcie};
  }

  std::vector<ChannelExit> exits(HopReach reach) const {
    if (!several_nodes_) return {ChannelExit::closes};
    if (reach == HopReach::pcie || node_.kind != topology::NodeKind::nvswitch)
      return {ChannelExit::same_nic, ChannelExit::cross_nic};
    return {ChannelExit::same_nic, ChannelExit::same_nic_by_pxn, ChannelExit::cross_nic};
  }

  /// The table, and below it whatever the narrowest wire carries.
  std::vector<double> speeds() const {
    const auto table = candidates_of(node_, several_nodes_);
    double limit = port_;
    if (several_nodes_) limit = std::min(wires_.nic_bandwidth(), planned_pcie(node_));
    if (several_nodes_ && members_.size() > 1) limit = std::min(limit, port_);
    std::vector<double> speeds;
    // RCCL plans rings as fast as a link of the mesh (XGMI widths of rccl src/graph/topo.h;
    // recalled, 2026).
    const bool rccl = node_.gpu.architecture.collectives == topology::CollectiveLibrary::rccl;
    if (rccl && !several_nodes_ && node_.kind == topology::NodeKind::hybrid_cube_mesh)
      speeds.push_back(planned_nvlink(node_));
    for (const double speed : table)
      if (speed <= limit * 1.001) speeds.push_back(speed);
    if (speeds.empty()) speeds.push_back(limit);
    return speeds;
  }

  /// More channels than this the wires can never carry.
  std::size_t bound(double speed, ChannelExit exit) const {
    const auto p = static_cast<double>(members_.size());
    double most = static_cast<double>(most_rings);
    if (several_nodes_ && exit != ChannelExit::none) {
      const auto usable = std::count_if(nics_.begin(), nics_.end(), [&](std::int64_t nic) {
        return exit != ChannelExit::same_nic || takes_both_ends(wires_, members_, nic, far_nics_);
      });
      most = std::min(
          most, static_cast<double>(usable) * std::floor(wires_.nic_bandwidth() / speed * 1.001));
    }
    const double hops =
        exit == ChannelExit::closes || exit == ChannelExit::same_nic_by_pxn ? p : p - 1;
    if (p > 1) {
      double out = 0.0;
      for (const std::int64_t gpu : members_) out += wires_.hops_at(gpu, members_, speed);
      most = std::min(most, std::floor(out / hops));
    }
    return static_cast<std::size_t>(most);
  }

  std::vector<NodeChannel> run(double speed, HopReach reach, ChannelExit exit, std::size_t want,
                               double nic_speed) const {
    return ChannelAttempt(wires_, members_, nics_,
                          {.speed = speed,
                           .nic_speed = nic_speed,
                           .reach = reach,
                           .exit = exit,
                           .want = want,
                           .far_nics = far_nics_})
        .run();
  }

  void attempt(double speed, HopReach reach, ChannelExit exit, Found& best) const {
    const std::size_t want = bound(speed, exit);
    if (static_cast<double>(want) * speed <= best.total() * 1.0001) return;
    Found found{run(speed, reach, exit, want, speed), speed, reach, exit};
    if (found.total() > best.total() * 1.0001) best = std::move(found);
  }

  const NodeSpec& node_;
  const std::vector<std::int64_t>& members_;
  bool several_nodes_;
  NodeWires wires_;
  std::vector<std::int64_t> nics_;
  double port_ = std::numeric_limits<double>::infinity();
  bool far_nics_ = false;
};

/// search.cc: channels of 25 GB/s and more run twice, but on Hopper and later not those below 50
/// where there are more than four.
bool runs_twice(const NodeSpec& node, const Found& rings) {
  if (rings.speed < 25.0) return false;
  return !(hopper_or_later(node) && rings.speed < 50.0 && rings.channels.size() > 4);
}

/// All that a search looks at: nodes that differ in nothing else have the same channels.
struct Question {
  NodeSpec node;  // the rest of it is left at its defaults
  std::vector<std::int64_t> members;
  bool several_nodes = false;

  Question(const NodeSpec& asked, const std::vector<std::int64_t>& gpus, bool several)
      : members(gpus), several_nodes(several) {
    node.name = asked.name;
    node.kind = asked.kind;
    node.gpu.architecture = asked.gpu.architecture;
    node.gpu.nvlink = asked.gpu.nvlink;
    node.gpu.nvlink_links = asked.gpu.nvlink_links;
    node.gpus = asked.gpus;
    node.gpus_per_tray = asked.gpus_per_tray;
    node.nvlinks = asked.nvlinks;
    node.nvlink_per_link = asked.nvlink_per_link;
    node.nics = asked.nics;
    node.nic = asked.nic;
    node.pcie_switches = asked.pcie_switches;
    node.pcie = asked.pcie;
    node.sockets = asked.sockets;
    node.socket = asked.socket;
    node.cpu = asked.cpu;
  }
  friend bool operator==(const Question&, const Question&) = default;
};

NodeChannels searched(const Question& question) {
  Search search(question.node, question.members, question.several_nodes);
  Found rings = search.rings();
  Found chains = search.chains(rings);
  NodeChannels out;
  out.copies = runs_twice(question.node, rings) ? 2 : 1;
  const double copies = static_cast<double>(out.copies);
  out.ring_speed = BytesPerSecond(rings.speed / copies * bytes_per_gigabyte);
  out.chain_speed = BytesPerSecond(chains.speed / copies * bytes_per_gigabyte);
  out.reach = rings.reach;
  out.crosses_nics = rings.exit == ChannelExit::cross_nic;
  out.rings = std::move(rings.channels);
  out.chains = std::move(chains.channels);
  return out;
}

}  // namespace

NodeChannels search_channels(const NodeSpec& node, const std::vector<std::int64_t>& members,
                             bool several_nodes) {
  expects(!members.empty() && (several_nodes || members.size() > 1),
          "channels have two ends at least");
  expects(!several_nodes || node.nics > 0, "a group over several nodes needs NICs");
  static Cache<Question, NodeChannels> found(
      64);  // a search takes most of what a group's plan does
  const Question question(node, members, several_nodes);
  return *found.get(question, [&] { return searched(question); });
}

BytesPerSecond nvls_head_speed(const NodeSpec& node, std::int64_t heads) {
  const double room = planned_nvlink(node) * static_cast<double>(node.gpu.nvlink_links) /
                      static_cast<double>(heads);
  for (const double speed : candidates_of(node, false))
    if (speed <= room * 1.001) return BytesPerSecond(speed * bytes_per_gigabyte);
  return BytesPerSecond(room * bytes_per_gigabyte);
}

}  // namespace stepcast::sim
