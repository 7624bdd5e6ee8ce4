// Ranks that differ kernel by kernel: every kernel's duration is multiplied by the rank's slowness
// and by a draw of its own, so a segment takes another time each time a rank runs it.
#include <algorithm>

#include "engine/runner.hpp"

namespace stepcast::engine {

void Runner::prepare_own_segments() {
  if (!system_.jitter.on() && compiled_.maps_know_speeds()) return;
  factors_.resize(ranks_.size());
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

/// Runs a segment that nothing cuts; `map` holds the durations that passing_factors_ apply to.
Time Runner::run_own_segment(std::uint32_t rank, std::span<const SegmentKernel> kernels,
                             SegmentMap map, Time clock, Time host) {
  Duration busy{};
  Time end = clock;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Duration d = varied(map[k].duration, passing_factors_[k]);
    end = std::max(end, host + kernels[k].launch) + d;
    busy += d;
  }
  RankAccount& account = ranks_[rank].account;
  account.compute += busy;
  account.host += end - clock - busy;
  return end;
}

/// What predict() reads off a suffix map, walked: with factors of its own a segment has no map that
/// would be used twice.
void Runner::predict_own(std::uint32_t rank, SegmentMap map) {
  Flight& flight = ranks_[rank].flight;
  const std::span<const SegmentKernel> kernels = compiled_.kernels(flight.segment);
  const std::vector<double>& factors = factors_[rank];
  Time end = flight.at;
  if (flight.whole) end = std::max(end, flight.host + kernels[flight.kernel].launch);
  end += flight.remaining;
  Duration busy = flight.remaining;
  for (std::size_t k = flight.kernel + 1; k < kernels.size(); ++k) {
    const Duration d = varied(map[k].duration, factors[k]);
    end = std::max(end, flight.host + kernels[k].launch) + d;
    busy += d;
  }
  flight.end = end;
  flight.total = flight.consumed + busy;
}

}  // namespace stepcast::engine
