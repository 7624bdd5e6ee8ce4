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

/// Factors on the durations of the next kernels of a lane.
void Runner::draw_factors(std::uint32_t rank, std::uint8_t lane, std::size_t kernels,
                          std::vector<double>& factors) {
  factors.resize(kernels);
  const std::uint64_t stream = std::uint64_t{rank} * max_lanes + lane;
  jitter_.factors(stream, drawn_[stream], factors);
  drawn_[stream] += kernels;
  if (compiled_.maps_know_speeds()) return;
  for (double& factor : factors) factor *= system_.slowness[rank];
}

/// Runs a segment that nothing cuts; `map` holds the durations that the factors apply to.
Time Runner::run_own_segment(std::uint32_t rank, const std::vector<SegmentKernel>& kernels,
                             const SegmentMap& map, Time clock, Time host) {
  const std::vector<double>& factors = own_[rank].factors;
  Duration busy{};
  Time end = clock;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Duration d = varied(map.duration[k], factors[k]);
    end = std::max(end, host + kernels[k].launch) + d;
    busy += d;
  }
  RankAccount& account = ranks_[rank].account;
  account.compute += busy;
  account.host += end - clock - busy;
  return end;
}

/// The map of the segment that the rank's flight begins, in state 0, for the factors drawn.
const SegmentMap& Runner::own_map(std::uint32_t rank, std::uint32_t segment) {
  SegmentMap& map = own_[rank].map;
  const std::size_t n = compiled_.segment(segment).kernels.size();
  map.duration.resize(n);
  map.busy.resize(n + 1);
  map.launched.resize(n + 1);
  ranks_[rank].flight.segment = segment;
  ranks_[rank].flight.state = 0;
  change_own_state(rank, 0);
  return map;
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
    const Duration d = varied(common.duration[i], own.factors[i]);
    own.map.duration[i] = d;
    own.map.busy[i] = own.map.busy[i + 1] + d;
    own.map.launched[i] = std::max(kernels[i].launch + own.map.busy[i], own.map.launched[i + 1]);
  }
}

}  // namespace stepcast::engine
