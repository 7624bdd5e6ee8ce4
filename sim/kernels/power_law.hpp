// How fast tensor cores go, and what they draw, under a power cap or with their clock locked. Low
// confidence: no public curve of a training step on a Hopper or Blackwell GPU under caps was found
// (2026-11). Knows no kernel.
#pragma once

#include <string>
#include <vector>

#include "topology/specs.hpp"

namespace stepcast::sim {

/// What a loaded context adds to the power of an empty card.
Watts context_power(const topology::GpuSpec&);

/// The cap, or without one TDP.
Watts power_limit(const topology::GpuSpec&);

/// Of tensor cores under load, over what they do at the part's own power limit; 1 without a cap and
/// a clock.
struct HeldBack {
  double pace = 1;          // rate of kernels on tensor cores
  double tensor_power = 1;  // what such a kernel draws above a loaded context
};

/// Near the limit the clock follows the cube root of the watts, on Blackwell the square root
/// (sustained.hpp has the measurements: V100 at 58 to 83 % of its limit, cards of less power).
/// Below 58 %, the least that was measured, voltage is taken to fall no more, so that what is drawn
/// above a loaded context goes with the clock. A GB300's product at 500 W of 1,400 W, not used for
/// it, ran at 0.28 to 0.39 of its rate (facebookexperimental/triton pull request 2023, 2026); this
/// law says 0.34. A locked clock counts where it is below what the power limit leaves. Kernels
/// bound by memory keep their time: HBM has a clock of its own.
HeldBack held_back(const topology::GpuSpec&);

/// What a clock can be set to, down from what the card runs at under load, cap and lock counted.
struct ClockRange {
  Hertz usual{};
  double least_pace =
      1;  // of `usual`: the law's end of what was measured; 1 where nothing is known
};
ClockRange clock_range(const topology::GpuSpec&);

/// Throws InputError at `where` for a cap that memory traffic alone would pass, where the law ends,
/// and for a clock of a part whose peak says nothing of its clock.
void check_power(const topology::GpuSpec&, const std::string& where);

/// A cap or a clock that changes nothing, and how sure the others are.
std::vector<std::string> power_warnings(const topology::GpuSpec&);

}  // namespace stepcast::sim
