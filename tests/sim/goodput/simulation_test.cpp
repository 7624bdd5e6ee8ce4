// Failing runs against closed forms, and laws that hold for all of them.
#include "sim/goodput/simulation.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/goodput/daly.hpp"

using namespace stepcast::sim;

namespace {

constexpr double day = 86400.0;

double between(double gpus, double per_1000_node_days) {
  return day / (per_1000_node_days / 1000.0 * gpus / 8.0);
}

/// One tier of checkpoints, one kind of interruption, the best period.
FailureProcess one_tier(double between_s, double restart_s, double checkpoint_s) {
  FailureProcess process;
  process.interruptions = {{.per_second = 1.0 / between_s, .down_s = restart_s}};
  process.tiers = {{.blocking_s = checkpoint_s}};
  choose_periods(process, 1.0);
  return process;
}

FailureBand months(const FailureProcess& process, double days = 90, std::int64_t runs = 300) {
  return simulate_failures(process, {.wall_s = days * day, .runs = runs, .seed = 7});
}

/// All that can go wrong, at once.
FailureProcess everything() {
  FailureProcess process;
  process.interruptions = {{.per_second = 1.0 / 9000, .down_s = 300, .takes_node = true},
                           {.per_second = 1.0 / 20000, .down_s = 900}};
  process.tiers = {{.blocking_s = 0.5, .behind_s = 5, .load_s = 5, .survives = 0.7},
                   {.blocking_s = 4, .behind_s = 60, .load_s = 90}};
  process.slow = {.per_second = 1.0 / 50000, .noticed_s = 1800, .speed = 0.8, .restart_s = 200};
  process.flaps_per_second = 1.0 / 5000;
  process.flap_s = 15;
  process.pool = SparePool{.spares = 20, .repair_s = 2 * day, .restart_s = 200};
  choose_periods(process, 2.0);
  return process;
}

}  // namespace

TEST_CASE("the simulation is within half a point of Daly's formula") {
  // GPUs, failures per 1,000 node-days, R, d: 16,384 and 131,072 GPUs, a checkpoint of 1, 20, 60 s.
  const double cases[][4] = {
      {16384, 3.79, 600, 20},  {16384, 3.79, 600, 1}, {16384, 3.79, 600, 60},
      {131072, 6.50, 600, 20}, {1024, 23.7, 660, 5},  {2048, 3.79, 60, 300},
  };
  for (const auto& [gpus, rate, restart, checkpoint] : cases) {
    INFO(gpus << " GPUs, checkpoint " << checkpoint << " s");
    const FailureProcess process = one_tier(between(gpus, rate), restart, checkpoint);
    CHECK(std::abs(months(process).shares.training - daly(process)) < 0.005);
  }
}

TEST_CASE("Daly's formula by hand: 16,384 GPUs, R 10 min, d 20 s train for 89.2 % of the time") {
  CHECK(daly(one_tier(between(16384, 3.79), 600, 20)) == Approx(0.892).margin(0.0005));
  CHECK(daly(one_tier(between(16384, 3.79), 600, 1)) == Approx(0.935).margin(0.0005));
  CHECK(daly(one_tier(between(16384, 3.79), 600, 60)) == Approx(0.853).margin(0.0005));
  CHECK(daly(one_tier(between(131072, 6.50), 600, 20)) == Approx(0.379).margin(0.0005));
}

TEST_CASE("the best period is the best of a fine comb, and Young's where failures are rare") {
  const DalyCase often{.between = 800, .restart = 600, .checkpoint = 20};
  const double best = best_period(often);
  for (double t = 1; t < 3000; t *= 1.01) CHECK(daly(often, t) <= daly(often, best) * (1 + 1e-9));
  const DalyCase rarely{.between = 1e7, .restart = 600, .checkpoint = 1};
  CHECK(best_period(rarely) == Approx(young_period(rarely)).epsilon(0.001));
  CHECK(best_period(often, 5000) == 5000);
}

TEST_CASE("every second of wall time is accounted for, whatever goes wrong") {
  FailureProcess process = everything();
  for (const bool shrinks : {false, true}) {
    if (shrinks) process.pool->lost_speed = 0.01;
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const RunOutcome run = simulate_failures(process, 60 * day, seed, 0);
      CHECK(run.seconds.total() == Approx(60 * day).epsilon(1e-9));
      for (const double part : {run.seconds.training, run.seconds.checkpoint, run.seconds.lost,
                                run.seconds.down, run.seconds.slowed, run.seconds.flapped})
        CHECK(part > 0);
      CHECK((run.seconds.waiting > 0) == !shrinks);
    }
  }
}

TEST_CASE("the same seed is the same run, another one is not") {
  const FailureProcess process = everything();
  const double first = simulate_failures(process, 60 * day, 3, 5).seconds.training;
  CHECK(simulate_failures(process, 60 * day, 3, 5).seconds.training == first);
  CHECK(simulate_failures(process, 60 * day, 3, 6).seconds.training != first);
  CHECK(simulate_failures(process, 60 * day, 4, 5).seconds.training != first);
}

TEST_CASE("Llama 3 is interrupted 419 times in 54 days, give or take chance") {
  FailureProcess process = one_tier(54 * day / 419, 600, 3);
  const double counted = months(process, 54, 200).interruptions;
  // The mean of 200 runs: a deviation of sqrt(419 / 200); one run: sqrt(419).
  CHECK(std::abs(counted - 419) < 4 * std::sqrt(419.0 / 200));
  CHECK(std::abs(static_cast<double>(simulate_failures(process, 54 * day, 1, 0).interruptions) -
                 419) < 3 * std::sqrt(419.0));
}

TEST_CASE(
    "waiting for nodes takes the share of Erlang's formula, once the pool is in its usual state") {
  FailureProcess process = one_tier(10'000, 60, 1);
  process.interruptions.front().takes_node = true;
  process.pool = SparePool{.spares = 8, .repair_s = 80'000, .restart_s = 60};
  const double expected = empty_share(1.0 / 10'000, 80'000, 8);
  CHECK(expected == Approx(0.1731).margin(0.0005));  // Erlang B of 9 places, 8 erlangs
  CHECK(months(process, 900, 100).shares.waiting == Approx(expected).margin(0.005));
}

TEST_CASE("a slow node costs its share of the speed until it is noticed, then a restart") {
  FailureProcess process = one_tier(1e12, 60, 1e-3);
  process.tiers.front().every_s = 1000;
  process.slow = {.per_second = 1e-5, .noticed_s = 2000, .speed = 0.75, .restart_s = 500};
  // Every 1e5 s of running somebody lags for 2,000 s, of which a quarter is lost; second ones that
  // lag meanwhile cost no speed. Then 500 s of restart. To first order:
  const FailureBand band = months(process, 300, 100);
  CHECK(band.shares.down == Approx(500e-5).epsilon(0.05));
  CHECK(band.shares.slowed == Approx(0.25 * 2000e-5).epsilon(0.05));
}

TEST_CASE("links that are gone stop the run for as long as they are") {
  FailureProcess process = one_tier(1e12, 60, 1e-3);
  process.tiers.front().every_s = 1000;
  process.flaps_per_second = 1e-3;
  process.flap_s = 20;
  // Up for 1,000 s in the mean, then 20 s of pause in which another flap adds nothing.
  CHECK(months(process, 30, 100).shares.flapped == Approx(20.0 / 1020).epsilon(0.02));
}

TEST_CASE("a second tier that half of the failures survive pays, and counts by its own failures") {
  FailureProcess store = one_tier(5000, 300, 30);
  FailureProcess both;
  both.interruptions = store.interruptions;
  both.tiers = {{.blocking_s = 0.5, .survives = 0.5}, {.blocking_s = 30}};
  choose_periods(both, 1.0);
  const double simulated = months(both).shares.training;
  CHECK(simulated > months(store).shares.training + 0.01);
  CHECK(std::abs(simulated - daly(both)) < 0.01);  // first order: losses of tiers add up
}

TEST_CASE("a checkpoint on its way is none: work since the one before is lost") {
  FailureProcess process = one_tier(5000, 300, 1);
  const double at_once = months(process).shares.lost;
  process.tiers.front().behind_s = 0.9 * process.tiers.front().every_s;
  const double later = months(process).shares.lost;
  // Each interruption loses the time on the way more.
  const double more = months(process).interruptions / (90 * day) * process.tiers.front().behind_s;
  CHECK(later - at_once == Approx(more).epsilon(0.15));
}

TEST_CASE("goodput falls with rates, restarts and blocking, and its band opens with unsure rates") {
  const double base = months(one_tier(11'000, 660, 3)).shares.training;
  CHECK(months(one_tier(5500, 660, 3)).shares.training < base);
  CHECK(months(one_tier(11'000, 1320, 3)).shares.training < base);
  CHECK(months(one_tier(11'000, 660, 12)).shares.training < base);
  FailureStudy study{.wall_s = 90 * day, .runs = 200};
  const FailureBand sure = simulate_failures(one_tier(11'000, 660, 3), study);
  study.rate_sigma = 0.5;
  const FailureBand unsure = simulate_failures(one_tier(11'000, 660, 3), study);
  CHECK(unsure.shares.training == sure.shares.training);
  CHECK(unsure.high - unsure.low > 3 * (sure.high - sure.low));
  CHECK((sure.low < sure.shares.training && sure.shares.training < sure.high));
}
