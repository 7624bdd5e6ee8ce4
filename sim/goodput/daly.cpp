#include "sim/goodput/daly.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepcast::sim {

double daly(const DalyCase& c, double t) {
  if (!(c.between < std::numeric_limits<double>::infinity())) return t / (t + c.checkpoint);
  return t /
         (c.between * std::exp(c.restart / c.between) * std::expm1((t + c.checkpoint) / c.between));
}

double young_period(const DalyCase& c) { return std::sqrt(2.0 * c.between * c.checkpoint); }

double best_period(const DalyCase& c, double least) {
  // One maximum: golden section in ln t, from far below Young's to far above it.
  const double young = std::max(young_period(c), 1e-3);
  double low = std::log(young * 1e-3), high = std::log(young * 1e3);
  const double ratio = (std::sqrt(5.0) - 1.0) / 2.0;
  while (high - low > 1e-7) {
    const double a = high - ratio * (high - low), b = low + ratio * (high - low);
    if (daly(c, std::exp(a)) >= daly(c, std::exp(b)))
      high = b;
    else
      low = a;
  }
  return std::max(std::exp((low + high) / 2.0), least);
}

DalyCase daly_case(const FailureProcess& process, std::size_t index) {
  const CheckpointCost& tier = process.tiers[index];
  const double before = index == 0 ? 0.0 : process.tiers[index - 1].survives;
  const double rate = process.interruptions_per_second() * (tier.survives - before);
  return {.between = rate > 0.0 ? 1.0 / rate : std::numeric_limits<double>::infinity(),
          .restart = process.mean_down_s() + tier.load_s + tier.behind_s,
          .checkpoint = tier.blocking_s};
}

double daly(const FailureProcess& process) {
  double wall = 1.0;  // per second of training
  for (std::size_t i = 0; i < process.tiers.size(); ++i)
    wall += 1.0 / daly(daly_case(process, i), process.tiers[i].every_s) - 1.0;
  return 1.0 / wall;
}

double best_period(const FailureProcess& process, std::size_t index, double least) {
  const DalyCase c = daly_case(process, index);
  if (!(c.between < std::numeric_limits<double>::infinity())) return 86400.0;
  return best_period(c, std::max(least, process.tiers[index].behind_s));
}

void choose_periods(FailureProcess& process, double least) {
  double unit = 0.0;
  for (std::size_t i = 0; i < process.tiers.size(); ++i) {
    double& every = process.tiers[i].every_s;
    if (every <= 0.0) every = best_period(process, i, std::max(least, unit));
    if (unit > 0.0) every = std::max(1.0, std::round(every / unit)) * unit;
    unit = every;
  }
}

double empty_share(double per_second, double repair_s, std::int64_t spares) {
  const double load = per_second * repair_s;
  double blocked = 1.0;  // Erlang B by its recursion
  for (std::int64_t n = 1; n <= spares + 1; ++n)
    blocked = load * blocked / (static_cast<double>(n) + load * blocked);
  return blocked;
}

}  // namespace stepcast::sim
