// Group whole: what a user waits for. All ranks simulated unless the name says folded; kernel level
// with launches, contention and interference. The budgets are those of issue 2: 70B on 2,048 GPUs
// 1 s (zero3: 2 s) and 150 MiB, 7B 0.25 s, 70B on 16,384 10 s and 600 MiB, folded 30 ms.
#include <benchmark/benchmark.h>

#include <string>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/bench/peak_memory.hpp"
#include "tests/session.hpp"

namespace stepcast::bench {
namespace {

sim::Scenario scenario(const std::string& model, int nodes, int global, const std::string& plan) {
  const std::string text =
      "title = \"bench\"\n[model]\nname = \"" + model +
      "\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\nnodes = " + std::to_string(nodes) +
      "\nfabric = \"rail-optimized\"\n[plan]\n" + plan +
      "\n[batch]\nglobal = " + std::to_string(global) +
      "\n[software]\nframework = \"pytorch-fsdp2\"\nversion = \"2.3\"\n";
  sim::Scenario s = sim::read_scenario(sim::read_toml(text, "bench.toml"), catalogue());
  s.run.ignore_memory = true;
  return s;
}

void run(benchmark::State& state, sim::Scenario s, bool fold) {
  s.run.fold = fold;
  reset_peak_memory();
  std::int64_t events = 0;
  for (auto _ : state) {
    const sim::StepReport report = session().step(s);
    events = report.events;
    state.counters["step_s"] = seconds(report.step_time);
  }
  state.counters["events"] = static_cast<double>(events);
  state.counters["ns_per_event"] = benchmark::Counter(
      static_cast<double>(events) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  if (const auto peak = peak_memory())
    state.counters["peak_MiB"] = static_cast<double>(peak->value) / (1 << 20);
}

const std::string grid = "tensor = 4\npipeline = 4\n";

void register_all() {
  const auto add = [](const char* name, const sim::Scenario& s, bool fold) {
    benchmark::RegisterBenchmark(name, [s, fold](benchmark::State& st) {
      run(st, s, fold);
    })->Unit(benchmark::kMillisecond);
  };
  const sim::Scenario large = scenario("llama2-70b", 256, 2048, grid + "data = \"zero2\"");
  add("whole/70B zero2 on 2048", large, false);
  add("whole/70B zero3 on 2048", scenario("llama2-70b", 256, 2048, grid + "data = \"zero3\""),
      false);
  add("whole/7B zero2 on 2048", scenario("llama2-7b", 256, 4096, "data = \"zero2\""), false);
  add("whole/70B zero2 on 16384", scenario("llama2-70b", 2048, 16384, grid + "data = \"zero2\""),
      false);
  add("whole/70B zero2 on 2048, folded", large, true);
  add("whole/1B on 8, folded", scenario("llama2-1b", 1, 8, "data = \"zero2\""), true);
}

}  // namespace
}  // namespace stepcast::bench

int main(int argc, char** argv) {
  stepcast::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (benchmark::RunSpecifiedBenchmarks() == 0) return 2;  // a filter that matches nothing
  return 0;
}
