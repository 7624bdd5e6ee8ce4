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
//   on the order of links or variables, and whoever finds it by another way (fluid_rates.cpp) has
//   it to the last bit.
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

}  // namespace stepcast::engine
