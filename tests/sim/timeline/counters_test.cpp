#include "sim/timeline/counters.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

Scenario small_step(const std::string& plan) {
  const std::string text =
      "[model]\nname = \"llama2-1b\"\nlayers = 3\n[cluster]\nnode = \"dgx-h100\"\n[batch]\nlocal = "
      "2\n[software]\nframework = \"pytorch-fsdp2\"\nversion = \"2.3\"\n[plan]\n";
  return read_scenario(read_toml(text + plan, "a.toml"), catalogue());
}

const TimelineCounter& counter(const Timeline& timeline, std::int64_t rank,
                               const std::string& name) {
  const auto found = std::ranges::find_if(timeline.counters, [&](const TimelineCounter& c) {
    return c.rank == rank && c.name == name;
  });
  REQUIRE(found != timeline.counters.end());
  return *found;
}

/// The integral over the instants, of what is above `base`.
double above(const TimelineCounter& counter, double base) {
  double sum = 0.0;
  for (std::size_t i = 0; i + 1 < counter.values.size(); ++i)
    sum += (counter.values[i].second - base) *
           seconds(counter.values[i + 1].first - counter.values[i].first);
  return sum;
}

}  // namespace

TEST_CASE("the power of all instants means to the power of the step, less the peaks cut off") {
  // One lane: what kernels draw is the step's mean, but where products that also load the HBM
  // would pass the GPU's limit.
  const Scenario scenario = small_step("data = \"ddp\"\ntensor = 8\n");
  Timeline timeline;
  const StepReport report = session().timeline(scenario, timeline);
  add_power(timeline, scenario.node.gpu);
  const TimelineCounter& power = counter(timeline, 0, "power");
  CHECK(power.unit == "W");
  const double idle = power.values.front().second;
  const double end = power.values.back().second;
  CHECK(end == idle);
  const double limit =
      std::ranges::max(power.values, {}, [](const auto& v) { return v.second; }).second;
  CHECK(limit <= scenario.node.gpu.tdp.value);
  const double mean = idle + above(power, idle) / seconds(report.step_time);
  CHECK(mean <= report.power_per_gpu.value * 1.0001);
  CHECK(mean > report.power_per_gpu.value * 0.97);
}

TEST_CASE("bytes in flight add up to what the collectives move") {
  const Scenario scenario = small_step("data = \"zero3\"\n");
  Timeline timeline;
  session().timeline(scenario, timeline);
  add_bytes_in_flight(timeline);
  double moved = 0.0;  // megabytes times seconds
  for (const TimelineEvent& e : timeline.events)
    if (e.is_collective() && e.rank == 0)
      moved += static_cast<double>(e.bytes.value) * 1e-6 * seconds(e.duration - e.waited);
  const TimelineCounter& counted = counter(timeline, 0, "bytes in flight");
  CHECK(counted.values.back().second == Approx(0.0).margin(1e-6));
  CHECK(above(counted, 0.0) == Approx(moved).epsilon(1e-9));
}

TEST_CASE("memory over the step reaches the peak that the step is said to need") {
  for (const std::string plan : {"data = \"zero2\"\n", "data = \"ddp\"\npipeline = 2\n"}) {
    INFO(plan);
    const Scenario scenario = small_step(plan);
    Timeline timeline;
    const StepReport report = session().timeline(scenario, timeline);
    add_memory(timeline, scenario);
    double most = 0.0;
    for (const auto& [rank, alike] : timeline.ranks) {
      const TimelineCounter& memory = counter(timeline, rank, "memory allocated");
      CHECK(std::ranges::is_sorted(memory.values, {}, [](const auto& v) { return v.first; }));
      CHECK(memory.values.back().first <= timeline.step * 2);
      for (const auto& [when, gib] : memory.values) most = std::max(most, gib);
    }
    // The same replay as `memory_allocated_gib`; forward and backward lie between.
    CHECK(most * (1 << 30) > 0.5 * static_cast<double>(report.memory.total().value));
    CHECK(most * (1 << 30) < 1.5 * static_cast<double>(report.memory.total().value));
  }
}

}  // namespace stepcast::sim
