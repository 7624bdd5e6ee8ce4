// A timeline of a scenario, written and read as a user's file, is that scenario.
#include "validate/trace/timeline.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "tests/session.hpp"
#include "tests/validate/trace_writer.hpp"
#include "validate/trace/simulated.hpp"
#include "validate/trace/verdict.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

sim::Scenario scenario(const std::string& plan) {
  return sim::read_scenario(
      sim::read_toml("[model]\nname = \"llama2-1b\"\nsequence = 2048\n[cluster]\nnode = "
                     "\"dgx-h100\"\nnodes = 2\n[batch]\nlocal = 2\nmicro_batch = 1\n[plan]\n" +
                         plan,
                     "a.toml"),
      catalogue());
}

void alike(std::optional<Duration> measured, std::optional<Duration> simulated, Duration step) {
  REQUIRE(measured);
  CHECK(seconds(*measured) == Approx(seconds(*simulated)).margin(2e-3 * seconds(step)));
}

}  // namespace

TEST_CASE("a timeline beside its own scenario differs nowhere") {
  const std::string quick_host =
      "[software]\nframework = \"megatron-lm\"\nversion = \"2023\"\nlaunch_kernel = \"1 us\"\n"
      "forward_call = \"0 us\"\nmodule_call = \"0 us\"\ngradient_hook = \"0 us\"\n";
  const std::string plan =
      // Frameworks whose host keeps up: what a lane waits for where the host is late, a trace
      // cannot tell (docs/traces.md).
      GENERATE_COPY(as<std::string>{}, "data = \"zero3\"\n",
                    "data = \"zero1\"\ntensor = 4\n" + quick_host,
                    "data = \"ddp\"\npipeline = 2\ntensor = 2\n" + quick_host);
  INFO(plan);
  const SimulatedStep simulated = simulate_breakdown(scenario(plan), session());
  sim::Timeline timeline;
  session().timeline(simulated.report.scenario, timeline);
  for (const char* name : {"t.json", "t.json.gz"}) {
    const TemporaryFile at("", name);
    sim::write_timelines(at.path(), {&timeline, 1});
    TraceFile file(at.path());
    REQUIRE(is_timeline(file));
    const MeasuredStep measured = measure_timeline(read_timeline(at.path()), at.path());
    const StepBreakdown &m = measured.mean, &s = simulated.mean;
    const Duration step = *s.step;
    CHECK(m.step == step);
    alike(m.compute, s.compute, step);
    alike(m.communication, s.communication, step);
    alike(m.exposed, s.exposed, step);
    alike(m.transferring, s.transferring, step);
    alike(m.waiting, s.waiting, step);
    alike(m.idle, s.idle, step);
    REQUIRE(m.kernels.size() == s.kernels.size());
    for (const auto& [kind, tally] : s.kernels) {
      CHECK(m.kernels.at(kind).calls == Approx(tally.calls));
      alike(m.kernels.at(kind).duration, tally.duration, step);
    }
    REQUIRE(m.collectives.size() == s.collectives.size());
    for (const auto& [kind, tally] : s.collectives) {
      CHECK(m.collectives.at(kind).calls == Approx(tally.calls));
      CHECK(m.collectives.at(kind).bytes == Approx(tally.bytes));
      alike(m.collectives.at(kind).duration, tally.duration, step);
    }
    CHECK(verdict_of(m, simulated).empty());
    CHECK(measured.notes ==
          std::vector<std::string>{"Timeline \"simulated\" of 16 ranks: one step."});
  }
}

TEST_CASE("a kernel and the collective behind it may share a name") {
  sim::Timeline timeline{"simulated", {{0, 2}}, {}};
  timeline.step = 10_us;
  sim::TimelineEvent kernel{0, 0, "layer.o", "gemm"};
  kernel.duration = 4_us;
  kernel.family = workloads::KernelFamily::gemm;
  sim::TimelineEvent sum{0, 1, "layer.o", "all_reduce", "tensor", Bytes(8), 4_us, 5_us, 2_us};
  timeline.events = {kernel, sum};
  const StepBreakdown mean = measure_timeline(timeline, "t.json").mean;
  CHECK(mean.compute == 4_us);
  CHECK(mean.exposed == 5_us);
  CHECK(mean.waiting == 2_us);
  CHECK(mean.idle == 1_us);
  CHECK(mean.collectives.at(workloads::CollectiveKind::all_reduce).bytes == 8);
  timeline.events.clear();
  CHECK_THROWS_AS(measure_timeline(timeline, "t.json"), InputError);
}
