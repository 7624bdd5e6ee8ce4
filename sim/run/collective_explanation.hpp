// Why a collective takes as long as it does: the channels over the nodes, the terms of its time hop
// by hop, the link that is busiest, what NCCL weighed against each other, the measurements behind.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/links/loads.hpp"
#include "sim/network/model.hpp"
#include "sim/network/nccl/choice.hpp"
#include "sim/run/machine.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

struct CollectiveExplanation {
  /// One channel on one node; GPUs and NICs count within it, -1 where there is none.
  struct ChannelOnNode {
    std::int64_t node = 0;
    NodeChannel channel;
  };
  std::int64_t searched = 0;       // channels that the search found, copies included
  BytesPerSecond channel_speed{};  // as NCCL plans it
  bool crosses_nics = false;
  std::vector<std::vector<ChannelOnNode>> channels;  // by channel, by node: rings, or chains
  /// Parent of every node in the two trees (-1 for the root), by place in the group; empty where
  /// no tree runs.
  std::array<std::vector<std::int64_t>, 2> parents;

  /// One line of the time: `count` times `each`.
  struct Term {
    std::string name;
    std::int64_t count = 1;
    Duration each{};
    Duration total() const { return count * each; }
  };
  std::vector<Term> terms;  // add up to the duration, to a picosecond a hop

  struct Bottleneck {
    std::string from, to;  // names of devices
    Bytes load{};
    BytesPerSecond capacity{};
    std::int64_t alike = 0;  // other links that are just as busy
    Duration busy() const { return load / capacity; }
  };
  std::vector<Bottleneck> bottleneck;  // none when nothing moves

  std::vector<NcclOption> options;  // none for send_receive and AlltoAll
  bool hierarchical = false;        // chains of trees rather than rings
  std::int64_t heads = 0;           // NVLS: GPUs of a node, each for its part of the bytes
};

/// The collective that the scenario asks for, which took `time` over these GPUs of the network.
CollectiveExplanation explain_collective(const Scenario&, const Network&,
                                         const CollectiveTime& time,
                                         std::vector<std::int64_t> ranks);

/// The time's terms, in order; the one place that knows what CollectiveTime is made of.
std::vector<CollectiveExplanation::Term> terms_of(const CollectiveTime&);

}  // namespace stepcast::sim
