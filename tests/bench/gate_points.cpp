// One case of ./dev bench gate inside a process: prepared, run once, then run again within
// stepcast_gate_measured(), whose instructions callgrind counts (gate.py).
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "sim/run/memory_figures.hpp"
#include "tests/bench/whole_scenarios.hpp"
#include "tests/engine/random_flows.hpp"

namespace stepcast::bench {
namespace {

using Case = std::function<void()>;

/// A step as `stepcast run` needs it: simulated, with the figures of its memory.
Case step(sim::Scenario s, bool fold) {
  s.run.fold = fold;
  return [s] {
    sim::StepReport report = session().step(s);
    replay(report.memory, s);
    if (report.step_time <= Duration{} || report.memory.needed() <= Bytes(0))
      throw BrokenPromise("step");
  };
}

/// The allocator's replay of a step's allocations alone.
Case memory(sim::Scenario s) {
  return [s, figures = sim::fullest_memory(s)] {
    workloads::MemoryFigures replayed = figures;
    replay(replayed, s);
    if (replayed.held <= Bytes(0)) throw BrokenPromise("memory");
  };
}

/// All at once in a tree whose core is four times too narrow: each start and end is felt by most.
Case congested_flows() {
  return [] {
    const engine::concurrent_rings::Tree tree{2048, 8};
    const auto flows = engine::random_flows::flows(tree, 1024, 1);
    engine::Fluid fluid(tree.capacities());
    Time last{};
    engine::random_flows::run(fluid, flows, [&](Time now, const auto&) { last = now; });
    if (last == Time{}) throw BrokenPromise("flows");
  };
}

Case every_rank(const std::string& model, const std::string& data) {
  const bool large = model == "llama2-70b";
  return step(
      scenario(model, 32, large ? 256 : 512, (large ? grid : "") + "data = \"" + data + "\""),
      false);
}

const std::map<std::string, std::function<Case()>> cases{
    {"point-70b",
     [] { return step(scenario("llama2-70b", 256, 2048, grid + "data = \"zero2\""), true); }},
    {"point-tensor8-pipeline8",
     [] {
       return step(scenario("llama2-70b", 64, 1024, "tensor = 8\npipeline = 8\ndata = \"ddp\""),
                   true);
     }},
    {"memory-1b", [] { return memory(scenario("llama2-1b", 1, 8, "data = \"zero2\"")); }},
    {"memory-70b",
     [] { return memory(scenario("llama2-70b", 256, 2048, grid + "data = \"zero2\"")); }},
    {"ranks-7b-zero2", [] { return every_rank("llama2-7b", "zero2"); }},
    {"ranks-7b-zero3", [] { return every_rank("llama2-7b", "zero3"); }},
    {"ranks-70b-zero2", [] { return every_rank("llama2-70b", "zero2"); }},
    {"ranks-70b-zero3", [] { return every_rank("llama2-70b", "zero3"); }},
    {"flows-congested", congested_flows},
};

}  // namespace
}  // namespace stepcast::bench

extern "C" [[gnu::noinline]] void stepcast_gate_measured(const std::function<void()>& run) {
  run();
}

int main(int argc, char** argv) {
  const auto& cases = stepcast::bench::cases;
  const auto found = argc == 2 ? cases.find(argv[1]) : cases.end();
  if (found == cases.end()) {
    for (const auto& [name, ignored] : cases) std::puts(name.c_str());
    return 2;
  }
  const std::function<void()> run = found->second();
  run();
  stepcast_gate_measured(run);
  return 0;
}
