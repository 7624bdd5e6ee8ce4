#include "validate/diagnose/series.hpp"

#include <catch2/catch.hpp>

using namespace stepcast::validate;

namespace {

/// Steps of 1 s, the n-th as `seconds` says.
StepLog log_of(std::int64_t steps, double (*seconds)(std::int64_t)) {
  StepLog out;
  out.framework = "Megatron-LM";
  for (std::int64_t n = 1; n <= steps; ++n) {
    out.step_s.push_back(seconds(n));
    out.numbers.push_back(n);
  }
  return out;
}

}  // namespace

TEST_CASE("a steady series has no cause; its warm-up is left out") {
  const auto series = series_of(log_of(40, [](std::int64_t n) { return n == 1 ? 30.0 : 1.0; }), 0);
  REQUIRE(series);
  CHECK(series->left_out == 4);
  CHECK(series->mean == Approx(1));
  CHECK(causes_of(*series).empty());
}

TEST_CASE("steps that stick out: how many, how often, what they add to the mean") {
  const auto series =
      series_of(log_of(100, [](std::int64_t n) { return n % 10 == 0 ? 3.0 : 1.0; }), 0);
  REQUIRE(series);
  CHECK(series->longer == 9);  // step 10 is warm-up
  CHECK(series->period == 10);
  CHECK(series->stalls == Approx(0.2));
  const auto causes = causes_of(*series);
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].kind == CauseKind::stalls);
  CHECK(causes[0].evidence.find("one every 10 steps") != std::string::npos);
}

TEST_CASE("steps that grow, and restarts") {
  const auto series =
      series_of(log_of(80, [](std::int64_t n) { return 1.0 + 0.005 * static_cast<double>(n); }), 0);
  REQUIRE(series);
  CHECK(series->growth == Approx(0.27).margin(0.03));
  CHECK(causes_of(*series).front().kind == CauseKind::drift);
  StepLog log = log_of(40, [](std::int64_t) { return 1.0; });
  for (std::size_t i = 20; i < 40; ++i) log.numbers[i] -= 10;
  log.step_s[20] = 60;
  CHECK(series_of(log, 0)->restarts == 1);
  CHECK(series_of(log, 0)->mean == Approx(1));
}

TEST_CASE("tokens per second are steps too; few steps tell nothing") {
  StepLog log;
  log.tokens_per_second_per_gpu.assign(20, 500);
  CHECK(series_of(log, 1000)->usual == Approx(2));
  log.tokens_per_second_per_gpu.assign(5, 500);
  CHECK_FALSE(series_of(log, 1000));
}
