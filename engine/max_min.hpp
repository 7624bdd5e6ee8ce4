// Max-min fair rates on shared links: a pure function. Knows no time: see fluid.hpp.
//
// The nouns
//   link      l  carries at most C_l bytes per second.
//   variable  f  is one flow, or one collective whose edges advance together. It moves x_f bytes of
//                its own amount per second and never more than its cap c_f.
//   load         (link l, weight w): every byte of f's amount puts w bytes on l. A ring whose edges
//                cross l three times has w = 3 if its amount is the bytes of one edge.
//
// The mathematics
//   sum over f of w_lf x_f <= C_l  for every link,   0 <= x_f <= c_f  for every variable.
//   Among all such x the max-min fair one makes the smallest x_f as large as possible, then the
//   second smallest, and so on. It is unique (Bertsekas & Gallager, Data Networks, 6.5.2), and it
//   is the one where every variable is at its cap, or crosses a saturated link on which no other
//   variable is faster. Progressive filling finds it: raise all rates together; at the level
//       t = min over links of (C_l - what frozen variables use) / (sum of active weights)
//   the variables of all links that attain t freeze at t in one round; a variable whose cap is not
//   above t freezes at its cap before that. Weights do not make a variable slower than others on
//   the same link: they say how much of the link it eats.
//
// Exactness
//   Rates are integers in units of 1/64 byte/s (Quanta), rounded down, at most 2^46 bytes/s.
//   Weights are integers in units of 2^-32 (weights that are multiples of 2^-32 are exact, others
//   are off by at most 1.2e-10). All sums are integers of 128 bits, so the result does not depend
//   on the order of links or variables, and a part that shares no link with the rest can be solved
//   alone with the same result to the last bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::engine {

/// Bytes over the link per byte of the variable's amount. A variable names a link at most once.
struct LinkLoad {
  std::uint32_t link;
  double weight;
};

struct Variable {
  BytesPerSecond cap;  // may be infinite
  std::span<const LinkLoad> loads;
};

/// The max-min fair rates, one per variable.
std::vector<BytesPerSecond> max_min(std::span<const BytesPerSecond> capacities,
                                    std::span<const Variable> variables);

/// A rate in units of 1/64 byte/s.
using Quanta = std::int64_t;
inline constexpr double quanta_per_byte_per_second = 64;
inline constexpr Quanta fastest_rate = Quanta{1} << 52;  // 2^46 bytes/s
/// A weight in units of 2^-32.
using FixedWeight = std::int64_t;
__extension__ typedef __int128 Wide;  // Quanta times FixedWeight: Quanta << 32

/// Rounds down; an infinite rate becomes fastest_rate.
Quanta to_quanta(BytesPerSecond rate);
/// Rounds down; a capacity may exceed fastest_rate.
Quanta capacity_to_quanta(BytesPerSecond capacity);
inline BytesPerSecond to_rate(Quanta q) {
  return BytesPerSecond(static_cast<double>(q) / quanta_per_byte_per_second);
}
inline FixedWeight to_fixed(double weight) {
  return static_cast<FixedWeight>(weight * 0x1p32 + 0.5);
}
inline Wide widen(Quanta q) { return static_cast<Wide>(q) << 32; }
/// What a rate uses of a link, rounded up.
inline Quanta usage(FixedWeight weight, Quanta rate) {
  return static_cast<Quanta>((static_cast<Wide>(weight) * rate + 0xffff'ffff) >> 32);
}
/// The largest rate, at most fastest_rate, with weight * rate <= room.
Quanta share(Wide room, FixedWeight weight);

/// The solver behind max_min() with its memory kept between solves. Add all links, then each
/// variable followed by its loads.
class MaxMinSolver {
 public:
  void clear();
  std::uint32_t add_link(Quanta capacity) { return add_room(widen(capacity)); }
  /// A link of which only this much is left.
  std::uint32_t add_room(Wide room);
  std::uint32_t add_variable(Quanta cap);
  /// Loads the variable added last.
  void add_load(std::uint32_t link, FixedWeight weight) { loads_.push_back({link, weight}); }
  void solve();
  Quanta rate(std::uint32_t variable) const { return variables_[variable].rate; }
  /// One of the links at which the variable froze, or no_link if it is at its cap.
  std::uint32_t bottleneck(std::uint32_t variable) const { return variables_[variable].bottleneck; }
  static constexpr std::uint32_t no_link = 0xffff'ffff;

  std::size_t num_variables() const { return variables_.size(); }
  std::size_t num_loads() const { return loads_.size(); }

 private:
  struct Load {
    std::uint32_t link;
    FixedWeight weight;
  };
  struct ActiveVariable {
    Quanta cap;
    Quanta rate;
    std::uint32_t first_load;
    std::uint32_t bottleneck;
    bool frozen;
  };
  struct ActiveLink {
    Wide room;           // capacity minus what frozen variables use
    FixedWeight weight;  // of the variables not frozen
    std::uint32_t first_user, num_users;
  };
  struct Key {  // in a heap with the smallest value on top
    Quanta value;
    std::uint32_t index;
    friend bool operator<(const Key& a, const Key& b) { return a.value > b.value; }
  };

  void index_users();
  void start_levels();
  bool refresh_lowest_level();
  void freeze(std::uint32_t variable, Quanta rate, std::uint32_t bottleneck);
  void freeze_capped_at(Quanta level);
  void freeze_links_at(Quanta level);

  std::vector<ActiveLink> links_;
  std::vector<ActiveVariable> variables_;
  std::vector<Load> loads_;           // by variable
  std::vector<std::uint32_t> users_;  // variables, by link
  std::vector<Key> levels_, caps_;    // heaps; a level in the heap is never above the true one
  std::vector<std::uint32_t> tied_;
  std::size_t num_active_ = 0;
};

}  // namespace stepcast::engine
