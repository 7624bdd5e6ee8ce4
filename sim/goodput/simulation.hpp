// A failing run over months, event by event; no step is simulated. Every cause draws from a seeded
// stream of its own: the same seed is the same run, and another rate of one cause leaves the
// others.
#pragma once

#include <cstdint>

#include "sim/goodput/process.hpp"

namespace stepcast::sim {

/// Where wall time goes, in seconds or as shares; they add up to it.
struct WallTime {
  double training = 0.0;    // full-speed work that stands
  double checkpoint = 0.0;  // training stood still for
  double lost = 0.0;        // work that was done again
  double down = 0.0;        // noticing, starting, reading
  double waiting = 0.0;     // for a node, without a spare
  double slowed = 0.0;      // by slow or missing nodes
  double flapped = 0.0;     // links were gone

  double total() const { return training + checkpoint + lost + down + waiting + slowed + flapped; }
  WallTime& operator+=(const WallTime&);
  friend WallTime operator*(WallTime, double);
};

struct RunOutcome {
  WallTime seconds;
  std::int64_t interruptions = 0;
};

/// Run `number` of those that `seed` makes, for `wall_s`.
RunOutcome simulate_failures(const FailureProcess&, double wall_s, std::uint64_t seed,
                             std::uint64_t number);

struct FailureStudy {
  double wall_s = 0.0;
  std::int64_t runs = 1000;
  std::uint64_t seed = 1;
  double rate_sigma = 0.0;  // of ln(rate of interruptions), drawn once per run for the band
  double level = 0.8;       // of the band
};

struct FailureBand {
  WallTime shares;  // mean over runs, at the process's own rates
  double interruptions = 0.0;
  double low = 0.0, high = 0.0;  // share of training that `level` of the runs lie between
};

FailureBand simulate_failures(const FailureProcess&, const FailureStudy&);

}  // namespace stepcast::sim
