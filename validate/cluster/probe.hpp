// What a box's links and the trainer's collectives over sockets take in it, with nothing else on
// its way. Knows no step.
#pragma once

#include <utility>
#include <vector>

#include "calibrate/device/device.hpp"
#include "sim/tables/calibration_table.hpp"
#include "validate/cluster/box.hpp"

namespace stepcast::validate {

/// From a node to another by TCP.
struct PathSpeed {
  std::int64_t from = 0, to = 0;
  BytesPerSecond rate{};  // of payload, one way
  Duration latency{};     // one way: half the median of there and back
};

/// All pairs send at once.
std::vector<PathSpeed> measure_paths(
    const Box& box, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs);

/// The nodes' ranks call each collective several times: the least of a few medians of the slowest
/// rank's times, each from a barrier. `send_receive` goes from the first to the second.
std::vector<Duration> measure_collectives(const Box& box, const std::vector<std::int64_t>& nodes,
                                          const std::vector<calibrate::CollectiveTask>& tasks);

}  // namespace stepcast::validate
