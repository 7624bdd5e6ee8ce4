// --timeline and what belongs to it, of every verb that shows a step.
#pragma once

#include <string_view>

#include "sim/program/command_line.hpp"
#include "sim/run/timeline.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

inline constexpr Option timeline_ranks_option{
    "timeline-ranks", "LIST", "",
    "ranks to show: 0,8-15; all; classes (default): one of those alike, and the slowest"};
inline constexpr Option timeline_limit_option{
    "timeline-limit", "BYTES", "", "the largest timeline to write without asking (default: 200MB)"};

/// "all", "classes", or ranks "0,8-15". Throws UsageError.
RankChoice rank_choice(std::string_view text, const std::string& option);

struct TimelineOrder {
  std::string path;
  RankChoice ranks;
  Bytes limit;
};
/// Throws UsageError where the options stand without a file.
TimelineOrder timeline_order(const Arguments& arguments);

/// With the quantities of `scenario` as counters.
void write_step(const TimelineOrder& order, Timeline timeline, const Scenario& scenario);

}  // namespace stepcast::sim
