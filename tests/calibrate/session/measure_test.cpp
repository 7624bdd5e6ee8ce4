#include "calibrate/session/measure.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>

using namespace stepcast;
using namespace stepcast::calibrate;
using namespace stepcast::literals;

namespace {

/// A device whose repetitions take what a function of the sample number says, on a clock that
/// advances by what runs.
class MadeUp {
 public:
  using Times = std::function<double(std::int64_t batch)>;  // seconds of one repetition
  using Throttled = std::function<bool(std::int64_t batch)>;

  explicit MadeUp(
      Times times, Throttled throttled = [](std::int64_t) { return false; })
      : times_(std::move(times)), throttled_(std::move(throttled)) {}

  Timing measured(const StoppingRule& rule = {}) {
    const Clock clock{.now = [this] { return now_; }, .wait = [this](Duration d) { now_ += d; }};
    return measure([this](std::int64_t n) { return run(n); }, rule, clock);
  }
  Duration elapsed() const { return now_; }

 private:
  Batch run(std::int64_t repetitions) {
    const double each = times_(batch_);
    const Batch batch{.total = to_duration(each * static_cast<double>(repetitions)),
                      .beside = {},
                      .throttled = throttled_(batch_)};
    ++batch_;
    now_ += batch.total;
    return batch;
  }

  Times times_;
  Throttled throttled_;
  std::int64_t batch_ = 0;
  Duration now_{};
};

constexpr double base = 2e-3;

double median_error(const Timing& timing) { return std::abs(seconds(timing.median) / base - 1.0); }

/// base x (1 + relative x standard normal), seeded.
MadeUp::Times gaussian(double relative, std::uint64_t seed = 7) {
  return [=, random = std::mt19937_64(seed), normal = std::normal_distribution<double>()](
             std::int64_t) mutable { return base * (1.0 + relative * normal(random)); };
}

}  // namespace

TEST_CASE("a constant time is told exactly, after the minimum time") {
  MadeUp device([](std::int64_t) { return base; });
  const Timing timing = device.measured();
  CHECK(timing.stop == Stop::quiet);
  CHECK(timing.median == 2_ms);
  CHECK(timing.spread == 0.0);
  CHECK(timing.repetitions == 1);  // 2 ms are long enough for any clock
  CHECK(timing.samples == 250);    // 500 ms / 2 ms
}

TEST_CASE("little noise ends at the minimum time, the median within its standard error") {
  const Timing timing = MadeUp(gaussian(0.002)).measured();
  CHECK(timing.stop == Stop::quiet);
  CHECK(median_error(timing) < 3 * 1.25 * 0.002 / std::sqrt(250.0));
  CHECK(timing.spread == Approx(1.349 * 0.002).epsilon(0.25));  // quartiles of a normal
}

TEST_CASE("much noise ends when it no longer changes") {
  MadeUp device(gaussian(0.05));
  const Timing timing = device.measured();
  CHECK(timing.stop == Stop::steady);
  CHECK(median_error(timing) < 0.01);
  CHECK(timing.noise == Approx(0.05).epsilon(0.2));
  CHECK(device.elapsed() < 15000_ms);
}

TEST_CASE("a drift is told by its spread, the median is the middle of what was seen") {
  // 0.02 % slower with every sample: the noise grows with the samples and never falls silent.
  MadeUp device([](std::int64_t i) { return base * (1.0 + 2e-4 * static_cast<double>(i)); });
  const Timing timing = device.measured();
  CHECK(timing.stop != Stop::quiet);
  const double last = 1.0 + 2e-4 * static_cast<double>(timing.samples);
  CHECK(seconds(timing.median) / base == Approx(0.5 * (1.0 + last)).epsilon(0.002));
  CHECK(timing.spread > 0.02);
}

TEST_CASE("of two modes the frequent one is told") {
  MadeUp device([random = std::mt19937_64(3)](std::int64_t) mutable {
    return random() % 10 < 2 ? 1.5 * base : base;  // two of ten run at half the clock
  });
  const Timing timing = device.measured();
  CHECK(timing.stop == Stop::steady);
  CHECK(timing.median == 2_ms);
  CHECK(timing.noise == Approx(0.2 / 1.1).epsilon(0.2));  // sqrt(0.2 x 0.8) x 0.5 / 1.1
}

TEST_CASE("outliers move neither median nor spread") {
  MadeUp device([random = std::mt19937_64(5)](std::int64_t) mutable {
    return random() % 50 == 0 ? 20 * base : base;
  });
  const Timing timing = device.measured();
  CHECK(timing.median == 2_ms);
  CHECK(timing.spread == 0.0);
  CHECK(timing.noise > 0.5);  // they show there
}

TEST_CASE("throttled samples are thrown away and counted") {
  const auto every_third = [](std::int64_t i) { return i > 1 && i % 3 == 0; };
  MadeUp device([=](std::int64_t i) { return every_third(i) ? 1.7 * base : base; }, every_third);
  const Timing timing = device.measured();
  CHECK(timing.stop == Stop::quiet);
  CHECK(timing.median == 2_ms);
  CHECK(timing.samples == 250);
  CHECK(timing.throttled == Approx(125).margin(1));
}

TEST_CASE("a device that throttles nearly always gives no time") {
  MadeUp always([](std::int64_t) { return base; }, [](std::int64_t) { return true; });
  const Timing none = always.measured();
  CHECK(none.stop == Stop::throttled);
  CHECK(none.median == Duration(0));
  CHECK(always.elapsed() < 2000_ms);  // known soon, not at the time-out
  MadeUp nearly([](std::int64_t) { return base; }, [](std::int64_t i) { return i % 20 != 0; });
  CHECK(nearly.measured().stop == Stop::throttled);
}

TEST_CASE("the time-out ends what is long, with the samples there are") {
  MadeUp device([](std::int64_t) { return 2.0; });
  const Timing timing = device.measured();
  CHECK(timing.stop == Stop::timeout);
  CHECK(timing.samples >= 5);
  CHECK(timing.samples < 10);  // fewer than the rule asks for
  CHECK(timing.median == 2000_ms);
}

TEST_CASE("the time-out counts what is thrown away") {
  MadeUp device([](std::int64_t) { return 1.0; }, [](std::int64_t i) { return i % 2 == 0; });
  CHECK(device.measured().stop == Stop::timeout);
  CHECK(device.elapsed() < 17000_ms);
}

TEST_CASE("short kernels run in batches long enough for the clock") {
  MadeUp device([](std::int64_t) { return 3e-6; });
  const Timing timing = device.measured();
  CHECK(timing.repetitions >= 334);  // 1 ms / 3 us
  CHECK(timing.repetitions <= 700);
  CHECK(timing.median == 3_us);
  MadeUp middling([](std::int64_t) { return 0.7e-3; });
  CHECK(middling.measured().repetitions == 10);  // at least ten
}

TEST_CASE("a kernel that gets faster while batches grow ends at the largest batch") {
  const StoppingRule rule;
  // 66,000 repetitions are chosen, and then are too short by two thirds.
  MadeUp device([&](std::int64_t batch) {
    return seconds(rule.shortest_batch) / (batch < 4 ? 60'000 : 200'000);
  });
  CHECK(device.measured(rule).repetitions == 100'000);
}

TEST_CASE("a quick look is bounded by samples") {
  const Timing timing = MadeUp(gaussian(0.3)).measured(quick_rule());
  CHECK(timing.stop == Stop::max_samples);
  CHECK(timing.samples == 10);
}
