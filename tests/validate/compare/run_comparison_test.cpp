#include "validate/compare/run_comparison.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace stepcast::validate {
namespace {

Duration ms(double value) { return to_duration(value * 1e-3); }

sim::TimelineEvent event(const char* name, const char* kind, const char* group, Duration duration) {
  sim::TimelineEvent e;
  e.name = name;
  e.kind = kind;
  e.group = group;
  e.duration = duration;
  return e;
}

/// Two products and a gather; measured a tenth slower than simulated.
RunComparison tenth_slower(const std::string& point, double step_ms) {
  TrainerResults measured;
  measured.ranks = 1;
  for (int i = -5; i <= 5; ++i) measured.step_times.push_back(ms(step_ms * (1.0 + 0.01 * i)));
  measured.step_time = ms(step_ms);
  measured.buffers = Bytes(1000);
  measured.parts = {{"a", "gemm", "", 2.0, ms(4.4)},
                    {"b", "gemm", "", 1.0, ms(2.2)},
                    {"g", "all_gather", "data", 1.0, ms(1.1)}};
  sim::Timeline step{"measured", {{0, 1}}, {}};
  step.events = {event("a", "gemm", "", ms(6.6)), event("g", "all_gather", "data", ms(1.1))};
  step.events.back().start = ms(6.6);
  sim::Timeline simulated{"simulated", {{0, 1}}, {}};
  simulated.events = {event("a", "gemm", "", ms(4)), event("b", "gemm", "", ms(2)),
                      event("g", "all_gather", "data", ms(1))};
  sim::StepReport report;
  report.step_time = ms(10);
  report.compute = ms(6);
  report.exposed.data = ms(1);
  report.host = ms(3);
  report.memory.parts = {{"all", Bytes(1100)}};
  return compare_run(point, measured, step, report, simulated);
}

}  // namespace

TEST_CASE("kinds of kernels and collectives add up calls of one kind, measured and simulated") {
  const RunComparison c = tenth_slower("x", 11.0);
  REQUIRE(c.kinds.size() == 1);
  CHECK(c.kinds[0].what == "gemm");
  CHECK(c.kinds[0].calls == 3.0);
  CHECK(c.kinds[0].measured == ms(6.6));
  CHECK(c.kinds[0].simulated == ms(6));
  REQUIRE(c.collectives.size() == 1);
  CHECK(c.collectives[0].what == "all_gather data");
  CHECK(c.collectives[0].error() == Approx(10.0 / 11.0 - 1.0));
  CHECK(c.step.error() == Approx(10.0 / 11.0 - 1.0));
  CHECK(c.parts.front().what == "compute");
  CHECK(c.parts.back().measured == ms(11.0 - 6.6 - 1.1));
  CHECK(c.memory_error() == Approx(0.1));
  CHECK(c.spread == Approx(0.04));  // the middle 80 % of -5 % to 5 %
}

TEST_CASE("median and worst are of the step times' absolute errors") {
  const std::vector<RunComparison> points{tenth_slower("a", 10.0), tenth_slower("b", 12.5),
                                          tenth_slower("c", 8.0)};
  CHECK(worst_error(points) == Approx(0.25));   // 10 / 8 - 1
  CHECK(median_error(points) == Approx(0.20));  // 10 / 12.5 - 1
  CHECK_THAT(table_of(points), Catch::Contains("median |error| 20.0 %, worst 25.0 %"));
  CHECK_THAT(text_of(points[2]), Catch::Contains("+25.0 %"));
  const auto json = nlohmann::json::parse(json_of(points));
  CHECK(json["points"].size() == 3);
  CHECK(json["points"][1]["step"]["error"].get<double>() == Approx(-0.2));
}

}  // namespace stepcast::validate
