// A role's program seen from its lanes: the host-ordered calls sorted by lane, each with the host
// time at which it is launched, and stretches of work between two sync points folded into segments.
//
// With h the host time at which the segment's first kernel is launched, r_i the launch of kernel i
// after that, and d_i its duration, a lane free at c is free again at
//   max(c + sum d_i, h + max_i(r_i + d_i + ... + d_n)):
// one max-plus map of (c, h), computed once per segment and interference state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/system.hpp"

namespace stepcast::engine {

struct SegmentKernel {
  std::uint32_t work = 0;
  Duration launch{};  // after the launch of the segment's first kernel
  friend bool operator==(const SegmentKernel&, const SegmentKernel&) = default;
};

/// Suffix form of the max-plus map from a kernel on: busy = d_i + ... + d_n and
/// launched = max_{j >= i}(launch_j + d_j + ... + d_n). One past the end: 0 and minimum.
struct Suffix {
  Duration duration, busy, launched;
};
using SegmentMap = std::span<const Suffix>;  // one past the kernels

enum class LaneOp : std::uint8_t { segment, record, wait, join, mark };

struct LaneInstruction {
  LaneOp op{};
  std::uint16_t epoch = 0;  // host epoch (host_waits passed) in which it is launched, first turn
  std::uint32_t arg = 0;    // segment, event or transfer
  std::uint32_t communicator = 0;  // slot
  Duration launch{};               // after the start of its host epoch
};

/// The host blocks for `event` when it has been busy for `after` since the epoch began.
struct HostWait {
  std::uint32_t event = 0;
  Duration after{};
};

/// The program is a row of stretches: one that runs once, then a repeat, and so on. In its n-th
/// turn a repeat's events, epochs and launches are n times as much later as said here.
struct Stretch {
  std::uint32_t turns = 1;
  std::uint32_t first_event = 0, events = 0;  // of the first turn; new in each
  std::uint32_t first_epoch = 0, epochs = 0;  // in which the first turn begins; passed in each
  Duration host{};                            // busy for a turn, where no epoch passes
  std::uint32_t reach = 0;  // turns between an event of the repeat and a wait for it, at most
};

struct RoleLanes {
  std::vector<Stretch> stretches;
  std::vector<std::vector<LaneInstruction>> lanes;
  std::vector<std::vector<std::uint32_t>> ends;  // [lane][stretch]: one past its last instruction
  std::vector<HostWait> host_waits;              // each ends an epoch; repeats stand once
  std::vector<std::uint32_t> host_ends;          // by stretch: one past its last wait
  Duration last_epoch{};  // host time from the last wait to the end of the step
  std::uint32_t num_events = 0, num_epochs = 1;
  std::vector<std::uint8_t> event_lane;  // which lane records the event
  std::vector<std::uint32_t> mark;  // per lane: first instruction after the mark; empty: no mark
  std::uint32_t mark_stretch = 0, mark_epoch = 0, mark_wait = 0;  // mark_wait: the host's next
  std::vector<std::uint32_t> events_before_mark;                  // those that are awaited after it

  std::uint32_t begin(std::size_t lane, std::uint32_t stretch) const {
    return stretch == 0 ? 0 : ends[lane][stretch - 1];
  }
  std::uint32_t host_begin(std::uint32_t stretch) const {
    return stretch == 0 ? 0 : host_ends[stretch - 1];
  }
  bool repeats() const { return stretches.size() > 1; }
};

/// Rows of suffixes, made one by one and kept in place.
class SuffixRows {
 public:
  std::span<Suffix> make(std::size_t size);

 private:
  std::vector<std::vector<Suffix>> blocks_;
};

/// All roles of a system; equal segments are stored once. `single` makes every kernel its own
/// segment (the reference).
class Lanes {
 public:
  Lanes(const System& system, bool single);

  const RoleLanes& role(std::uint32_t r) const { return roles_[r]; }
  std::span<const SegmentKernel> kernels(std::uint32_t s) const {
    return {kernels_.data() + segments_[s].first, segments_[s].count};
  }
  /// The segment's map in `state` for ranks of speed class `speed`; computed at first use.
  SegmentMap map(std::uint32_t s, std::uint32_t state, std::uint32_t speed) {
    const Suffix* m = maps_[(speed * segments_.size() + s) * num_states + state];
    if (m == nullptr) m = compute_map(s, state, speed);
    return {m, segments_[s].count + 1};
  }
  std::uint32_t speed_of(std::uint32_t rank) const { return speed_of_rank_[rank]; }
  /// False when ranks have so many speeds that maps know none: the caller applies System::slowness.
  bool maps_know_speeds() const { return maps_know_speeds_; }

 private:
  struct Segment {
    std::uint32_t first = 0, count = 0;  // of kernels_
    std::uint32_t next = 0;              // of the same bucket
  };
  void sort_speeds();
  friend class RoleCompiler;
  const Suffix* compute_map(std::uint32_t s, std::uint32_t state, std::uint32_t speed);
  std::uint32_t intern(std::span<const SegmentKernel> kernels);

  const System& system_;
  std::vector<RoleLanes> roles_;
  std::vector<Segment> segments_;
  std::vector<SegmentKernel> kernels_;  // of all segments
  std::vector<std::uint32_t> buckets_;  // first segment by hash, to find equal ones
  std::vector<const Suffix*> maps_;
  SuffixRows rows_;
  std::vector<double> speeds_;
  std::vector<std::uint32_t> speed_of_rank_;
  bool maps_know_speeds_ = true;
};

}  // namespace stepcast::engine
