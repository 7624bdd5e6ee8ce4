// The channels that NCCL's search finds in a node, as far as time depends on them: how many, how
// fast each is inside the node and between nodes. Their orders and links: channels.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/network/model.hpp"
#include "topology/specs.hpp"

namespace stepcast::sim {

/// `channels` rings, trees or NVLS heads, each at these speeds (planned payload, one direction).
struct ChannelGraph {
  std::int64_t channels = 1;
  BytesPerSecond in_node{};
  BytesPerSecond between_nodes{};
  std::int64_t ctas = 1;  // kernel channels: one CTA each on every member

  BytesPerSecond bus_in_node() const { return in_node * static_cast<double>(channels); }
  BytesPerSecond bus_between_nodes() const { return between_nodes * static_cast<double>(channels); }
};

/// A group on its machine, as NCCL sees it.
struct NcclMachine {
  topology::NodeSpec node;
  GroupShape shape;
  ChannelGraph ring;
  ChannelGraph tree;                 // the rings' count; may be faster inside the node
  std::optional<ChannelGraph> nvls;  // NVLink SHARP: NVSwitch of Hopper and later
  bool nvlink = true;                // every hop inside the node is NVLink
  bool sharp = false;                // NCCL sums in the network's switches (CollNet)
  BytesPerSecond nic_bandwidth{};    // of all NICs that one node's rings use, one direction
  BytesPerSecond own_nics{};         // the same of all NICs that members are closest to
  BytesPerSecond in_node_bus{};      // of rings in one node alone: its wires, whatever the NICs
};

/// The most heads that NVLS has in an NVLink domain (NCCL_MAX_NVLS_ARITY; nccl@v2.28.9-1
/// src/graph/search.cc, read 2026-11).
inline constexpr std::int64_t most_nvls_heads = 32;

NcclMachine nccl_machine(const topology::NodeSpec&, const GroupShape&);

/// What a hop between two GPUs carries at most where peers have no access to each other and meet in
/// the host's memory, which each hop writes and reads while all of `members` have one; nothing
/// where they do, or where the memory is not known.
std::optional<BytesPerSecond> hop_through_host(const topology::NodeSpec&, std::int64_t members);

/// NVLinks of one member to other members when the first `members` GPUs of a node form a group: the
/// least over the members. 0 when a member has none.
std::int64_t nvlinks_within(const topology::NodeSpec&, std::int64_t members);

}  // namespace stepcast::sim
