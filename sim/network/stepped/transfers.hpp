// Transfers that follow one another over shared links: a collective written out chunk by chunk, and
// its run through the fluid layer. Knows no ranks and no algorithms: see expansion.hpp.
//
//      data of another's transfer ──> hop ──┐
//                                           ├──> bytes flow over the way's links ──> arrived
//      the sender's own transfer before ────┘
//
// A transfer begins its hop when all data that it passes on has arrived, and moves its bytes when
// the hop is over and the transfers that it queues behind have left. So a hop delays whoever waits
// for the data, but holds no link: NCCL's senders write ahead into 8 slots.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/max_min.hpp"
#include "engine/units.hpp"
#include "topology/cluster.hpp"

namespace stepcast::sim {

/// What bytes cross from one member to another (or to several: a load per link).
struct Way {
  std::vector<engine::LinkLoad> loads;  // a link at most once
  BytesPerSecond cap{};                 // of one transfer, as fast as the protocol is
  Duration hop{};
};

class TransferGraph {
 public:
  using Id = std::uint32_t;

  std::uint32_t add_way(Way way);
  /// Throws InputError when so many more are too many for an answer within seconds.
  void make_room(std::size_t more) const;
  /// Likewise.
  Id add(std::uint32_t way, double bytes, std::uint32_t step);
  /// Every hop becomes the latency of the way's links, and `extra`.
  void take_hops_from_links(std::span<const topology::Link> links, Duration extra = {});
  /// `later` passes on what `earlier` brings.
  void pass_on(Id later, Id earlier) { data_.push_back({earlier, later}); }
  /// `later` leaves after `earlier` has left.
  void queue(Id later, Id earlier) { queued_.push_back({earlier, later}); }

  std::size_t size() const { return transfers_.size(); }
  std::uint32_t num_steps() const { return num_steps_; }
  const std::vector<Way>& ways() const { return ways_; }
  /// Bytes over every link when all is done.
  std::vector<double> bytes_on_links(std::size_t num_links) const;

 private:
  friend class TransferRun;
  using Pair = std::pair<Id, Id>;
  struct Transfer {
    std::uint32_t way;
    std::uint32_t step;
    double bytes;
  };
  std::vector<Way> ways_;
  std::vector<Transfer> transfers_;
  std::vector<Pair> data_, queued_;  // earlier, later
  std::uint32_t num_steps_ = 0;
};

/// What of the machine counts; each switched off in turn tells what it costs.
struct TransferRules {
  bool share_links = true;   // false: every transfer at its cap
  bool hops = true;          // false: hops take no time
  bool hold_on_hop = false;  // a sender waits until its bytes have arrived, as in rendezvous
};

/// When the last transfer of each step has arrived, all starting at 0.
std::vector<Duration> run_transfers(const TransferGraph&,
                                    std::span<const BytesPerSecond> capacities,
                                    const TransferRules& = {});

/// The end of the last step.
Duration makespan(const std::vector<Duration>& step_ends);

}  // namespace stepcast::sim
