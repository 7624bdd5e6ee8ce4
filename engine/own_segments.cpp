// Ranks that differ kernel by kernel: every kernel's duration is multiplied by the rank's slowness
// and by a draw of its own, so a segment has a map of its own each time a rank runs it.
#include <algorithm>

#include "engine/runner.hpp"

namespace stepcast::engine {

void Runner::prepare_own_segments() {
  if (!system_.jitter.on() && compiled_.maps_know_speeds()) return;
  own_.resize(ranks_.size());
  drawn_.assign(ranks_.size() * max_lanes, 0);
}

double Runner::next_factor(std::uint32_t rank, std::uint8_t lane) {
  const double slowness = compiled_.maps_know_speeds() ? 1.0 : system_.slowness[rank];
  if (!system_.jitter.on()) return slowness;
  const std::uint64_t stream = std::uint64_t{rank} * max_lanes + lane;
  return slowness * jitter_.factor(stream, drawn_[stream]++);
}

/// Draws for every kernel of a segment that begins now; the map is of state 0.
const SegmentMap& Runner::own_segment(std::uint32_t rank, std::uint32_t segment) {
  OwnSegment& own = own_[rank];
  const std::size_t n = compiled_.segment(segment).kernels.size();
  own.factors.resize(n);
  for (double& factor : own.factors) factor = next_factor(rank, compute_lane);
  own.map.duration.resize(n);
  own.map.busy.resize(n + 1);
  own.map.launched.resize(n + 1);
  ranks_[rank].flight.segment = segment;
  ranks_[rank].flight.state = 0;
  change_own_state(rank, 0);
  return own.map;
}

/// Brings the rank's map to the flight's state, from kernel `from` on: those before have run.
void Runner::change_own_state(std::uint32_t rank, std::uint32_t from) {
  const Flight& flight = ranks_[rank].flight;
  const SegmentMap& common = compiled_.map(flight.segment, flight.state, ranks_[rank].speed);
  const std::vector<SegmentKernel>& kernels = compiled_.segment(flight.segment).kernels;
  OwnSegment& own = own_[rank];
  own.map.busy.back() = Duration{};
  own.map.launched.back() = common.launched.back();
  for (std::size_t i = kernels.size(); i-- > from;) {
    const Duration d = to_duration(seconds(common.duration[i]) * own.factors[i]);
    own.map.duration[i] = d;
    own.map.busy[i] = own.map.busy[i + 1] + d;
    own.map.launched[i] = std::max(kernels[i].launch + own.map.busy[i], own.map.launched[i + 1]);
  }
}

}  // namespace stepcast::engine
