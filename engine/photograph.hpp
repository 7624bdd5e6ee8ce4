// A run at an instant, as far as its future depends on it: see turns.cpp. Private to engine.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/system.hpp"

namespace stepcast::engine {

/// All that the future of a run depends on, relative to an instant and to the turn of each rank:
/// two instants with the same photograph have the same future, as long as the turns last.
struct Photograph {
  Time now;
  std::uint32_t step = 0, stretch = 0;  // of rank 0's compute lane
  std::uint64_t first = 0, second = 0;  // a hash
  std::vector<std::uint32_t> turns{};   // by rank: of its compute lane
  std::vector<std::uint32_t> room{};    // by rank: turns that every lane has left
  std::vector<RankAccount> accounts{};  // by rank
  std::vector<Duration>
      hosts{};  // by rank: launches against `now`, where no epoch passes in a turn
  std::vector<std::uint32_t> launches_late{};  // by rank
  RunResult counters{};

  void add(std::uint64_t value);
  void add(Time time) { add(static_cast<std::uint64_t>((time - now).count())); }
  void add(Duration d) { add(static_cast<std::uint64_t>(d.count())); }
  bool alike(const Photograph& other) const {
    return first == other.first && second == other.second && step == other.step &&
           stretch == other.stretch;
  }
};

}  // namespace stepcast::engine
