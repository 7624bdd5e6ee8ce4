// Group whole: what a user waits for. All ranks simulated unless the name says folded; kernel level
// with launches, contention and interference. The budgets are those of issue 2: 70B on 2,048 GPUs
// 1 s (zero3: 2 s) and 150 MiB, 7B 0.25 s, 70B on 16,384 10 s and 600 MiB, folded 30 ms; of issue
// 14: DeepSeek-V3 on 2,048 6 s and 400 MiB, folded 60 ms.
#include <benchmark/benchmark.h>

#include <atomic>
#include <string>
#include <utility>

#include "engine/check.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/search/search.hpp"
#include "tests/bench/peak_memory.hpp"
#include "tests/bench/whole_scenarios.hpp"

namespace stepcast::bench {
namespace {

/// Experts of 64 ranks, 16 stages.
sim::Scenario deepseek_v3() {
  sim::Scenario s = sim::read_scenario(
      sim::read_toml(
          "[model]\nname = \"deepseek-v3\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\n"
          "nodes = 256\n[plan]\ndata = \"zero1\"\npipeline = 16\nexpert = 64\nexpert_tensor = 1\n"
          "[batch]\nglobal = 8192\nmicro_batch = 1\n[precision]\nrecipe = \"fp8_block\"\n"
          "[software]\nframework = \"nemo\"\nversion = \"2024\"\n",
          "bench.toml"),
      catalogue());
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

/// A further point of a session that does not fit in memory.
void refuse(benchmark::State& state) {
  sim::Scenario s = scenario("llama2-70b", 2, 16, "data = \"ddp\"");
  s.run.ignore_memory = false;
  std::int64_t refused = 0;
  for (auto _ : state) {
    try {
      session().step(s);
    } catch (const NoFeasiblePlan&) {
      ++refused;
    }
  }
  state.counters["refused"] = static_cast<double>(refused);
}

void time_collective(benchmark::State& state) {
  const sim::Scenario s =
      sim::read_scenario(sim::read_toml("[cluster]\nnode = \"dgx-h100\"\nnodes = 64\n[collective]\n"
                                        "kind = \"all_gather\"\nbytes = \"64 MiB\"\n",
                                        "bench.toml"),
                         catalogue());
  for (auto _ : state) benchmark::DoNotOptimize(session().collective(s).time.duration);
}

/// Plans of a 70B on 512 H100, one after the other: what a search costs on one thread.
void try_plans(benchmark::State& state) {
  std::int64_t plans = 0, refused = 0;
  const auto attempt = [&](const std::string& plan, const std::string& batch) {
    const std::string text =
        "[model]\nname = \"llama2-70b\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\n"
        "nodes = 64\n[plan]\n" +
        plan + "[batch]\nglobal = 1024\n" + batch +
        "[software]\nframework = \"megatron-core\"\nversion = \"0.7\"\n";
    try {
      const auto s = sim::read_scenario(sim::read_toml(text, "bench.toml"), catalogue());
      ++plans;
      session().step(s);
    } catch (const InputError&) {  // no legal plan
    } catch (const NoFeasiblePlan&) {
      ++refused;
    }
  };
  for (auto _ : state)
    for (const int tensor : {1, 2, 4, 8})
      for (const int pipeline : {1, 2, 4, 8, 16})
        for (const int chunks : {1, 5})
          for (const char* data : {"ddp", "zero1"})
            for (const char* recompute : {"none", "selective", "full"})
              for (const char* parallel : {"false", "true"})
                for (const int micro : {1, 2})
                  attempt("data = \"" + std::string(data) + "\"\ntensor = " +
                              std::to_string(tensor) + "\npipeline = " + std::to_string(pipeline) +
                              "\nvirtual_stages = " + std::to_string(chunks) + "\nrecompute = \"" +
                              recompute + "\"\nsequence_parallel = " + parallel + "\n",
                          "micro_batch = " + std::to_string(micro) + "\n");
  state.counters["plans"] = static_cast<double>(plans);
  state.counters["refused"] = static_cast<double>(refused);
}

/// Every kernel and every GPU differs, as in scenarios/weak_scaling_shares.toml: nothing repeats,
/// five steps and one to warm up.
sim::Scenario noisy(sim::Scenario s) {
  s.noise.kernel_sigma = 0.01;
  s.noise.gpu_sigma = 0.015;
  return s;
}

/// The allocator's replay of a step's allocations alone, as every run asks for it.
void replay_memory(benchmark::State& state, const sim::Scenario& s) {
  const workloads::MemoryFigures figures = sim::fullest_memory(s);
  for (auto _ : state) {
    workloads::MemoryFigures replayed = figures;
    sim::replay(replayed, s);
    benchmark::DoNotOptimize(replayed.held);
  }
}

/// `stepcast search` over a shipped space, proven, on one thread.
void search(benchmark::State& state, const char* name) {
  sim::TomlValue document =
      sim::read_toml_file(std::string(STEPCAST_SOURCE_DIR "/scenarios/search/") + name + ".toml");
  const sim::TomlValue table = *document.find("space");
  document.erase("space");
  sim::set_path(document, "plan.tensor", sim::toml_text("best", "bench"));
  const sim::Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  const std::atomic<bool> never{false};
  for (auto _ : state) {
    sim::Session session(catalogue);
    sim::SearchSpace space({sim::read_scenario(document, catalogue)}, false);
    space.set_all(table);
    const sim::SearchResult found = sim::search_plans(space, sim::machine_of(session), {}, never);
    state.counters["legal"] = static_cast<double>(found.legal);
    state.counters["simulated"] = static_cast<double>(found.found.size());
    state.counters["proven"] = found.proven() ? 1 : 0;
  }
}

void register_all() {
  const auto add = [](const char* name, const sim::Scenario& s, bool fold) {
    benchmark::RegisterBenchmark(name, [s, fold](benchmark::State& st) {
      run(st, s, fold);
    })->Unit(benchmark::kMillisecond);
  };
  const sim::Scenario large = scenario("llama2-70b", 256, 2048, grid + "data = \"zero2\"");
  add("whole/70B zero2 on 2048", large, false);
  const sim::Scenario gathered = scenario("llama2-70b", 256, 2048, grid + "data = \"zero3\"");
  add("whole/70B zero3 on 2048", gathered, false);
  const sim::Scenario small = scenario("llama2-7b", 256, 4096, "data = \"zero2\"");
  add("whole/7B zero2 on 2048", small, false);
  add("whole/70B zero2 on 2048, 64 micro-batches",
      scenario("llama2-70b", 256, 8192, grid + "data = \"zero2\""), false);
  add("whole/7B zero2 on 2048, noise", noisy(small), false);
  add("whole/70B zero2 on 2048, noise", noisy(large), false);
  add("whole/70B zero3 on 2048, noise", noisy(gathered), false);
  add("whole/70B zero2 on 16384", scenario("llama2-70b", 2048, 16384, grid + "data = \"zero2\""),
      false);
  add("whole/70B zero2 on 2048, folded", large, true);
  add("whole/70B tensor 8, pipeline 8, 128 micro-batches on 512, folded",
      scenario("llama2-70b", 64, 1024, "tensor = 8\npipeline = 8\ndata = \"ddp\""), true);
  add("whole/DeepSeek-V3 expert 64, pipeline 16 on 2048", deepseek_v3(), false);
  add("whole/DeepSeek-V3 expert 64, pipeline 16 on 2048, folded", deepseek_v3(), true);
  benchmark::RegisterBenchmark("whole/a plan that memory refuses", refuse);
  benchmark::RegisterBenchmark("whole/all-gather on 512", time_collective);
  benchmark::RegisterBenchmark("whole/plans of 70B on 512", try_plans)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
  benchmark::RegisterBenchmark("whole/search, 10,000 plans of 70B on 2048", search,
                               "llama2-70b-10k")
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
  benchmark::RegisterBenchmark("whole/search, 1,000,000 plans of 70B on 2048", search,
                               "llama2-70b-1m")
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
  const sim::Scenario least = scenario("llama2-1b", 1, 8, "data = \"zero2\"");
  for (const auto& [name, s] : {std::pair{"whole/memory of a 1B", least},
                                std::pair{"whole/memory of the 70B zero2", large}})
    benchmark::RegisterBenchmark(name, [s = s](benchmark::State& st) {
      replay_memory(st, s);
    })->Unit(benchmark::kMicrosecond);
  add("whole/1B on 8, folded", least, true);
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
