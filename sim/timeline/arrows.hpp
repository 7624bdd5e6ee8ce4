// Arrows of a timeline: from an event on the critical path to the next one, and from each message
// between pipeline stages to its arrival.
#pragma once

#include <vector>

#include "sim/run/timeline.hpp"

namespace stepcast::sim {

struct TimelineArrow {
  bool message = false;                       // false: of the critical path
  std::int64_t from_rank = 0, from_lane = 0;  // ranks are those that are shown
  Duration from{};
  std::int64_t to_rank = 0, to_lane = 0;
  Duration to{};
};

std::vector<TimelineArrow> arrows_of(const Timeline& timeline);

}  // namespace stepcast::sim
