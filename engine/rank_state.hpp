// What a run knows of one rank: its lanes, its host thread, what is under way and what is behind
// it. Plain values, moved by Runner. Private to engine.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/system.hpp"

namespace stepcast::engine {

inline constexpr Time never = Time::max();
inline constexpr std::size_t max_lanes = 15;

using LaneSet = std::uint16_t;  // a bit for each lane

/// Why a lane does not go on. From `transfer` on, looking again changes nothing.
enum class Block : std::uint8_t { none, event, host, transfer, flight, turn, stop };

struct LaneState {
  Time clock{};
  std::array<Time, 2> entered{};  // its step and the one before, by the parity of the step
  std::uint32_t pc = 0;
  std::uint32_t end = 0;  // of its stretch
  std::uint32_t stretch = 0, turn = 0;
  std::uint32_t events = 0, epochs = 0;  // of the turns before: what its instructions do not say
  Duration launch{};
  std::uint32_t step = 0;
  std::uint32_t event = 0;  // awaited, when blocked on one
  Block block = Block::none;
};

/// The host thread's next host_wait.
struct HostPlace {
  std::uint32_t wait = 0, stretch = 0, turn = 0;
  friend bool operator==(const HostPlace&, const HostPlace&) = default;
};

/// A transfer that a lane has joined and that has not ended.
struct Membership {
  Time arrived{};
  Time started = never;  // known, perhaps ahead of time, once all members have come
  std::uint32_t communicator = 0;
  std::uint8_t interference_class = 0;
};

/// A transfer or a piece of side work that a lane has behind it: explains idle compute lanes.
struct Past {
  Time arrived{}, started{}, ended{};
  std::uint8_t traffic = 0;  // own_work: a kernel
  std::uint8_t lane = 0;
};

/// The compute lane's segment under way, when it cannot run ahead: `kernel` has `remaining` to go
/// in `state`, as of `at`. The state is the same until `seen`, and the segment over at `end` if it
/// stays; its kernels then have taken `total`.
struct Flight {
  std::uint32_t segment = 0;
  std::uint32_t kernel = 0;
  std::uint32_t state = 0;
  std::uint32_t version = 0;
  Time begin{}, at{}, seen{}, end{}, host{};
  Time change{};  // the next of state after `seen` that is known
  Duration remaining{}, consumed{}, total{}, base{};
  bool whole = true;  // the kernel has not begun
  bool active = false;
};

/// What runs beside the compute lane and is known from its begin on: copies, and transfers that
/// depend on nobody else.
struct SideWork {
  Time from, to;
  std::uint8_t interference_class = side_work_class;
};

struct RoleLanes;
inline constexpr std::uint32_t no_event = ~std::uint32_t{0};

struct RankState {
  const RoleLanes* role = nullptr;
  Time* epoch_starts = nullptr;  // [parity of step * epochs + epoch]
  std::uint32_t speed = 0;
  LaneSet todo = 0;             // lanes to look at
  LaneSet waiting = 0;          // lanes blocked on an event
  LaneSet outstanding = 0;      // lanes other than compute in a transfer that has not ended
  bool listed = false;          // in the worklist
  bool dirty = false;           // interference may have changed at this instant
  std::uint32_t host_step = 0;  // the host thread's step and epoch
  std::uint32_t host_epoch = 0;
  std::uint32_t host_event = no_event;  // that the host waits for next in its step
  HostPlace host_place;
  std::uint32_t launches_late = 0;  // times that a launch decided when something began
  Flight flight;
  std::vector<SideWork> side;
  std::vector<Past> past;  // what ended after the compute lane's clock, and some before
  Time boundary{};         // end of the last accounted step
  RankAccount account, last_account;
};

}  // namespace stepcast::engine
