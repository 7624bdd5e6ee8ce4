// Noise of kernels: the distribution against its closed form, runs against each other to the
// picosecond, and the wait for the slowest of n ranks against the expected maximum of n draws.
#include "engine/jitter.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/fold.hpp"
#include "engine/run.hpp"
#include "systems.hpp"

using namespace stepcast;
using namespace stepcast::engine;
using namespace stepcast::engine::testing;

namespace {

constexpr Distribution both[] = {Distribution::lognormal, Distribution::exponential};

/// Every rank runs one kernel of 1 ms, then all meet (the bytes take a nanosecond).
System barrier_step(std::uint32_t ranks, Jitter jitter) {
  ProgramBuilder b(1);
  b.work(compute_lane, 0, no_cost);
  b.join(compute_lane, 0, 0, no_cost);
  std::vector<std::uint32_t> all(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) all[r] = r;
  System s = make_system(ranks, {b.take()}, {{all}});
  s.works = {{1_ms, 0}};
  s.transfers = {transfer(100, 100)};
  s.jitter = jitter;
  return s;
}

/// E[max of n] = integral of 1 - F(x)^n, with the distribution's own F.
double expected_maximum(const Jitter& jitter, int n) {
  const double s = std::sqrt(std::log1p(jitter.deviation * jitter.deviation));
  const auto below = [&](double x) {
    if (jitter.distribution == Distribution::exponential)
      return x <= 1 ? 0.0 : 1 - std::exp(-(x - 1) / jitter.deviation);
    return x <= 0 ? 0.0 : 0.5 * std::erfc(-(std::log(x) + s * s / 2) / s / std::sqrt(2.0));
  };
  double sum = 0.0;
  constexpr double dx = 1e-5;
  for (double x = dx / 2; x < 5; x += dx) sum += dx * (1 - std::pow(below(x), n));
  return sum;
}

}  // namespace

TEST_CASE("the normal quantile inverts the normal distribution") {
  for (double z = -6; z <= 6; z += 0.03125) {
    const double p = 0.5 * std::erfc(-z / std::sqrt(2.0));
    CHECK(normal_quantile(p) == Approx(z).margin(2e-6));
  }
}

TEST_CASE("draws have the mean and the deviation that were asked for") {
  for (const Distribution distribution : both)
    for (const double deviation : {0.01, 0.1, 0.5}) {
      const JitterSource source({distribution, deviation, 7});
      constexpr int n = 400'000;
      double sum = 0.0, squares = 0.0, least = 10.0;
      for (int i = 0; i < n; ++i) {
        const double f =
            source.factor(static_cast<std::uint64_t>(i % 100), static_cast<std::uint64_t>(i / 100));
        sum += f;
        squares += f * f;
        least = std::min(least, f);
      }
      const double mean = sum / n;
      const bool delays = distribution == Distribution::exponential;
      CHECK(mean == Approx(delays ? 1 + deviation : 1.0).epsilon(4 * deviation / std::sqrt(n)));
      CHECK(std::sqrt(squares / n - mean * mean) == Approx(deviation).epsilon(0.02));
      CHECK(least > (delays ? 1.0 : 0.0));
    }
}

TEST_CASE("a draw depends on seed, stream and number, and on nothing else") {
  const JitterSource source({Distribution::lognormal, 0.1, 1});
  const JitterSource other({Distribution::lognormal, 0.1, 2});
  CHECK(source.factor(3, 4) == JitterSource({Distribution::lognormal, 0.1, 1}).factor(3, 4));
  CHECK(source.factor(3, 4) != other.factor(3, 4));
  CHECK(source.factor(3, 4) != source.factor(4, 3));
  // The very bits, so that another compiler or C library that rounds otherwise is noticed.
  CHECK(source.factor(0, 0) == 0x1.000c163945fa7p+0);
  CHECK(JitterSource({Distribution::exponential, 0.1, 1}).factor(0, 0) == 0x1.12d2b12e0677fp+0);
}

TEST_CASE("neighbouring streams and numbers are independent") {
  const JitterSource source({Distribution::lognormal, 0.1, 1});
  double with_next = 0.0, with_neighbour = 0.0;
  constexpr int n = 200'000;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double f = source.factor(i % 64, i / 64) - 1;
    with_next += f * (source.factor(i % 64, i / 64 + 1) - 1);
    with_neighbour += f * (source.factor(i % 64 + 1, i / 64) - 1);
  }
  // A correlation of independent draws is within 4 / sqrt(n) = 0.009 of zero.
  CHECK(std::abs(with_next / n / 0.01) < 0.009);
  CHECK(std::abs(with_neighbour / n / 0.01) < 0.009);
}

TEST_CASE("with jitter, too, nothing but the system decides: segments, closed forms, worklist") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    System s = random_system(seed, seed % 2 == 0);
    s.jitter = {both[seed % 3 == 0], 0.3, seed};
    if (seed % 5 == 0) {  // more speeds than maps are kept for
      s.slowness.assign(s.num_ranks(), 1.0);
      for (std::uint32_t r = 0; r < s.num_ranks(); ++r) s.slowness[r] = 1 + 0.01 * (r + 1);
      if (seed % 10 == 0) s.jitter.deviation = 0;
    }
    const int measured = seed % 4 == 0 ? 3 : 0;
    const bool cold = measured == 0 && seed % 3 == 0;
    const RunResult a = run(s, {.cold = cold, .measured = measured});
    INFO("seed " << seed);
    for (const RunOptions o :
         {RunOptions{.segments = false, .closed_forms = false, .cold = cold, .measured = measured},
          RunOptions{.segments = false, .cold = cold, .measured = measured},
          RunOptions{.closed_forms = false, .cold = cold, .measured = measured},
          RunOptions{.last_in_first_out = true, .cold = cold, .measured = measured}}) {
      const RunResult b = run(s, o);
      REQUIRE(a.step == b.step);
      REQUIRE(a.measured == b.measured);
      REQUIRE(a.ranks == b.ranks);
    }
  }
}

TEST_CASE("a rank's own speed is the same number whether few or many ranks have one") {
  ProgramBuilder b(1);
  for (int k = 0; k < 5; ++k) b.work(compute_lane, 0, launch_cost);
  b.join(compute_lane, 0, 0, no_cost);
  std::vector<std::uint32_t> all(20);
  for (std::uint32_t r = 0; r < 20; ++r) all[r] = r;
  System s = make_system(20, {b.take()}, {{all}});
  s.works = {{10_us, 0}};
  s.transfers = {transfer(1e6, 100)};
  s.slowness.assign(20, 1.0);
  s.slowness[7] = 1.5;
  const RunResult few = run(s, {.cold = true});
  for (std::uint32_t r = 8; r < 20; ++r) s.slowness[r] = 1.0 + 0.01 * r;
  const RunResult many = run(s, {.cold = true});
  CHECK(few.step == 86_us);  // 1 us of launch, 5 x 15 us, 10 us of bytes
  CHECK(many.step == few.step);
  CHECK(many.ranks[7] == few.ranks[7]);
  CHECK(many.ranks[0] == few.ranks[0]);
}

TEST_CASE("a barrier step takes the expected maximum of n draws") {
  for (const Distribution distribution : both)
    for (const std::uint32_t ranks : {1U, 8U, 256U, 2048U})
      for (const double deviation : {0.02, 0.2}) {
        constexpr int steps = 200;
        const System s = barrier_step(ranks, {distribution, deviation, 11});
        const RunResult r = run(s, {.measured = steps});
        const double expected = expected_maximum(s.jitter, static_cast<int>(ranks));
        INFO(ranks << " ranks, deviation " << deviation);
        // The maximum scatters by no more than a draw does (exponential: by as much for any n).
        CHECK(seconds(r.step) * 1e3 ==
              Approx(expected + 1e-6).epsilon(4 * deviation / std::sqrt(steps)));
        CHECK(r.measured.size() == steps);
        CHECK(r.steady);
        // On average a rank waits for what the maximum exceeds the mean by.
        double wait = 0.0;
        for (const RankAccount& a : r.ranks) wait += seconds(a.wait) * 1e3 / ranks;
        const double mean = distribution == Distribution::exponential ? 1 + deviation : 1.0;
        CHECK(wait == Approx(expected - mean).margin(4 * deviation / std::sqrt(steps)));
      }
}

TEST_CASE("a barrier step grows with the deviation and with the ranks") {
  for (const Distribution distribution : both) {
    Duration before{};
    for (const double deviation : {0.0, 0.005, 0.01, 0.02, 0.05, 0.1}) {
      const Duration step =
          run(barrier_step(512, {distribution, deviation, 3}), {.measured = 20}).step;
      CHECK(step > before);
      before = step;
    }
    before = {};
    for (const std::uint32_t ranks : {1U, 2U, 16U, 128U, 1024U}) {  // more of the same streams
      const Duration step =
          run(barrier_step(ranks, {distribution, 0.05, 3}), {.measured = 20}).step;
      CHECK(step > before);
      before = step;
    }
  }
}

TEST_CASE("measured steps of a system that repeats are its steady step") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const System s = random_system(seed, true);
    const RunResult steady = run(s);
    if (!steady.steady || steady.steps > 2) continue;
    const RunResult measured = run(s, {.measured = 3});
    INFO("seed " << seed);
    REQUIRE(measured.measured == std::vector<Duration>(3, steady.step));
    REQUIRE(measured.step == steady.step);
    REQUIRE(measured.ranks == steady.ranks);
  }
}

TEST_CASE("jitter cannot be folded") {
  CHECK_THROWS_AS(fold(barrier_step(8, {Distribution::lognormal, 0.02, 1})), BrokenPromise);
}
