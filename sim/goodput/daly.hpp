// Checkpoints and restarts in closed form: Daly, Future Generation Computer Systems 22 (2006) 303,
// exact for exponential failures, which may hit checkpoints and restarts.
#pragma once

#include <cstdint>

#include "sim/goodput/process.hpp"

namespace stepcast::sim {

/// All in seconds.
struct DalyCase {
  double between = 0.0;     // failures, in the mean: M
  double restart = 0.0;     // R, reading the checkpoint included
  double checkpoint = 0.0;  // d, that training stands still for
};

/// Share of wall time that trains, t seconds between checkpoints:
/// t / (M e^(R/M) (e^((t+d)/M) - 1)).
double daly(const DalyCase&, double t);

/// The t >= `least` of the largest daly(), within a millionth of it.
double best_period(const DalyCase&, double least = 0.0);

/// Young's first order, sqrt(2 M d), where the search begins.
double young_period(const DalyCase&);

/// What tier `index` of a process is to the failures that only it survives, of those that the tiers
/// before it do not. Work that was done while a checkpoint was on its way is lost as well: R grows.
DalyCase daly_case(const FailureProcess&, std::size_t index);

/// The process by restarts and checkpoints alone: exact for one tier and equal restarts. With more
/// tiers their losses, each by its own failures, are added up.
double daly(const FailureProcess&);

/// The best period of a tier; not before `least`, nor before the last checkpoint can be read. A
/// tier that no failure needs: a day.
double best_period(const FailureProcess&, std::size_t index, double least);

/// Sets every period that is 0 to the best one, and makes each a multiple of the one before it.
void choose_periods(FailureProcess&, double least);

/// Share of wall time without a spare of n, where nodes leave at `per_second` while the run is up
/// and are away for `repair_s`: Erlang's loss formula for n + 1 places, whatever the distribution
/// of repairs (Sevastyanov 1957).
double empty_share(double per_second, double repair_s, std::int64_t spares);

}  // namespace stepcast::sim
