// The simulator's own timeline, written as Kineto would and measured as a user's trace, gives the
// simulator's own figures.
#include "validate/trace/simulated.hpp"

#include <catch2/catch.hpp>

#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "tests/validate/trace_writer.hpp"
#include "validate/trace/measure.hpp"

using namespace stepcast;
using namespace stepcast::validate;
using workloads::CollectiveKind;

namespace {

sim::Scenario scenario(const std::string& more) {
  static const sim::Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  sim::Scenario out = sim::read_scenario(
      sim::read_toml("[model]\nname = \"llama2-1b\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = 1\n"
                     "[software]\nframework = \"megatron-core\"\nuse_megatron_fsdp = true\n" +
                         more,
                     "a.toml"),
      catalogue);
  out.run.fold = false;
  return out;
}

std::string kernel_name(const sim::TimelineEvent& e) {
  if (e.kind == "all_reduce") return "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
  if (e.kind == "all_gather") return "ncclDevKernel_AllGather_RING_LL";
  if (e.kind == "reduce_scatter") return "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL";
  REQUIRE_FALSE(e.is_collective());
  return e.kind == "gemm" ? "nvjet_hsh_256x128" : "vectorized_elementwise_kernel";
}

/// Three steps, one after the other.
RankTrace trace_of(const sim::Timeline& timeline, std::int64_t rank, Duration step) {
  TraceWriter writer(static_cast<int>(rank), static_cast<int>(timeline.ranks.size()));
  for (int n = 0; n < 3; ++n) {
    const double at = 1e6 * seconds(step) * n;
    writer.mark("gpu_user_annotation", n, at, 1e6 * seconds(step));
    for (const sim::TimelineEvent& e : timeline.events) {
      if (e.rank != rank) continue;
      const double begin = at + 1e6 * seconds(e.start), length = 1e6 * seconds(e.duration);
      if (e.is_collective())
        writer.collective(kernel_name(e), begin, length, e.group);
      else
        writer.kernel(kernel_name(e), begin, length);
    }
  }
  return read_text(writer.text());
}

void close(std::optional<Duration> measured, std::optional<Duration> simulated, Duration step) {
  REQUIRE(measured);
  // Every event is rounded to a nanosecond.
  CHECK(seconds(*measured) == Approx(seconds(*simulated)).margin(2e-3 * seconds(step)));
}

}  // namespace

TEST_CASE("the measured timeline of the simulator is the simulated step") {
  const std::string plan = GENERATE(as<std::string>{}, "[plan]\ndata = \"ddp\"\n",
                                    "[plan]\ndata = \"zero1\"\ntensor = 2\n");
  const sim::Scenario s = scenario(plan + "[batch]\nlocal = 1\n");
  const SimulatedStep simulated = simulate_breakdown(s, session());
  sim::Scenario again = s;
  again.run.ignore_memory = true;
  sim::Timeline timeline;
  const Duration step = session().timeline(again, timeline).step_time;
  CHECK(step == *simulated.mean.step);
  std::vector<RankTrace> traces;
  for (const auto& [rank, alike] : timeline.ranks) traces.push_back(trace_of(timeline, rank, step));
  REQUIRE(traces.size() == 8);
  const StepBreakdown measured = measure_traces(std::move(traces), {}).mean;

  close(measured.step, step, step);
  close(measured.compute, simulated.mean.compute, step);
  close(measured.exposed, simulated.mean.exposed, step);
  close(measured.communication, simulated.mean.communication, step);
  close(measured.idle, simulated.mean.idle, step);
  for (const auto& [kind, tally] : simulated.mean.collectives)
    CHECK(measured.collectives.at(kind).calls == Approx(tally.calls));
  // Products are slowed by communication beside them, and by nothing else.
  const StepTally &m = measured.kernels.at(TraceKind::gemm),
                  &p = simulated.mean.kernels.at(TraceKind::gemm);
  CHECK(m.calls == Approx(p.calls));
  CHECK(m.duration >= p.duration - 1_us);
  CHECK(m.duration <= p.duration + simulated.report.interference + 1_us);
}

TEST_CASE("memory refuses no run that took place") {
  const SimulatedStep step = simulate_breakdown(scenario("[batch]\nlocal = 512\n"), session());
  CHECK(step.report.memory.total() > step.report.scenario.node.gpu.memory);
  CHECK(step.mean.step > Duration(0));
}
