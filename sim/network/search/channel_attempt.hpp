// One try of the channel search: as many channels of one given speed as the wires of a node carry.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/search/ring_search.hpp"

namespace stepcast::sim {

/// How a channel ends.
enum class ChannelExit : std::uint8_t {
  closes,           // one node: back to its first GPU
  same_nic,         // out by the NIC it came in, from a GPU beside that
  same_nic_by_pxn,  // the same NIC, through the GPU beside it where the last one is not
  cross_nic,        // out by another NIC; the next channel of the pair the other way round
  none,             // a chain of a tree
};

/// The GPU may speak to the NIC.
inline bool near(const NodeWires& wires, std::int64_t gpu, std::int64_t nic, bool far_nics) {
  return wires.beside(gpu, nic) || (far_nics && wires.nic_of(gpu) == nic);
}

/// A channel can come in and go out there: two members are near, or there is but one member.
bool takes_both_ends(const NodeWires& wires, const std::vector<std::int64_t>& members,
                     std::int64_t nic, bool far_nics);

class ChannelAttempt {
 public:
  struct Terms {
    double speed = 0.0;      // of a hop in the node, GB/s
    double nic_speed = 0.0;  // of a hop between nodes
    HopReach reach = HopReach::nvlink;
    ChannelExit exit = ChannelExit::closes;
    std::size_t want = 1;   // stop there
    bool far_nics = false;  // a GPU may use its closest NIC although other hops lie between
  };
  /// All but the terms are borrowed.
  ChannelAttempt(const NodeWires& wires, const std::vector<std::int64_t>& members,
                 const std::vector<std::int64_t>& nics, const Terms& terms);

  /// The largest set found within a fixed number of steps.
  std::vector<NodeChannel> run();

 private:
  void next_channel();
  void close_in_node();
  void enter_from_network();
  void replay(std::vector<std::int64_t> order);
  void visit(NodeChannel& channel);
  void leave(NodeChannel& channel);
  void leave_by(NodeChannel& channel, std::int64_t nic);
  void complete(const NodeChannel& channel);
  std::vector<std::int64_t> next_gpus(const NodeChannel& channel) const;
  double left_between(std::int64_t from, std::int64_t to) const;
  bool take(const WireRoute& way, double speed);
  void give(const WireRoute& way, double speed);
  bool finished() const { return best_.size() >= terms_.want || steps_ <= 0; }

  const NodeWires& wires_;
  const std::vector<std::int64_t>& members_;
  const std::vector<std::int64_t>& nics_;
  Terms terms_;
  std::vector<double> left_;
  std::vector<char> visited_;
  std::vector<NodeChannel> channels_, best_;
  std::int64_t steps_ = 5'000;
};

}  // namespace stepcast::sim
