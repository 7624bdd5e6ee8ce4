#include "sim/why/why.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <random>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "sim/why/parameters.hpp"
#include "sim/why/path_timeline.hpp"
#include "tests/draws.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

Scenario small_scenario(const std::string& more) {
  const std::string text =
      "[model]\nname = \"llama2-1b\"\nlayers = 4\n[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n"
      "[software]\nframework = \"megatron-lm\"\n";
  return read_scenario(read_toml(text + more, "a.toml"), catalogue());
}

const std::string two_stages =
    "[plan]\ndata = \"zero1\"\ntensor = 2\npipeline = 2\n[batch]\nglobal = 16\nmicro_batch = 1\n";
const std::vector<std::string> small_plans{
    "[plan]\ndata = \"ddp\"\n[batch]\nlocal = 1\n", two_stages,
    "[plan]\ndata = \"zero1\"\ntensor = 4\nsequence_parallel = true\n[batch]\nlocal = 2\n"};

}  // namespace

TEST_CASE("the step that is explained is the one that runs, and its parts sum to it") {
  for (const std::string& plan : small_plans) {
    INFO(plan);
    const Scenario scenario = small_scenario(plan);
    const Why found = why(scenario, session());
    CHECK(found.path.length == session().step(scenario).step_time);
    Duration parts{}, edges{};
    for (const PathPart& part : found.path.parts) parts += part.time;
    for (const NamedEdge& edge : found.path.edges) edges += edge.edge.length();
    CHECK(parts == found.path.length);
    CHECK(edges == found.path.length);
    const bool pipelined = scenario.plan.pipeline > 1;
    CHECK((found.path.fill > Duration{} && found.path.drain > Duration{}) == pipelined);
  }
}

TEST_CASE(
    "a pipeline of two fills with one forward of the first stage and drains with a backward") {
  // Two layers a stage; the last one also has the head, so that it computes most.
  const Why found = why(small_scenario(two_stages), session());
  std::int64_t filled = 0, drained = 0;
  for (const NamedEdge& edge : found.path.edges) {
    if (edge.phase == Phase::fill && edge.what == "attention") ++filled;
    if (edge.phase == Phase::drain && edge.what == "attention_backward") ++drained;
    if (edge.phase == Phase::fill) CHECK(edge.edge.to <= found.path.edges.back().edge.to);
  }
  CHECK(filled == 2);
  CHECK(drained == 2);
}

TEST_CASE("slopes of the machine are differences of whole runs around it") {
  constexpr double little = 1e-3;
  int compared = 0;
  for (const std::string& plan : small_plans) {
    const Scenario scenario = small_scenario(plan);
    const Why found = why(scenario, session());
    for (const Parameter& parameter : parameters()) {
      if (parameter.in_scenario == nullptr) continue;
      const auto row = std::ranges::find(found.slopes.rows, parameter.name, &Sensitivity::name);
      if (row == found.slopes.rows.end() || !row->elasticity) continue;
      INFO(plan << parameter.name);
      Scenario more = scenario, less = scenario;
      parameter.in_scenario(more, 1 + little);
      parameter.in_scenario(less, 1 - little);
      const double step = seconds(found.path.length);
      const double right = seconds(session().step(more).step_time) / step - 1,
                   left = 1 - seconds(session().step(less).step_time) / step;
      if (std::abs(right - left) > 0.02 * little) continue;  // NCCL chose otherwise
      CHECK(*row->elasticity == Approx((right + left) / (2 * little)).epsilon(0.01).margin(0.003));
      ++compared;
    }
  }
  CHECK(compared > 15);
}

TEST_CASE("law: half and twice are what a run says with the key changed") {
  const std::pair<const char*, const char*> keys[] = {
      {"HBM bandwidth", "gpu.memory_bandwidth"},   {"kernel floor", "gpu.kernel_floor"},
      {"NVLink bandwidth", "gpu.nvlink"},          {"PCIe bandwidth", "node.pcie"},
      {"socket bandwidth", "node.socket"},         {"NIC and cables", "node.nic"},
      {"NVLink latency", "node.nvlink_latency"},   {"NIC latency", "node.nic_latency"},
      {"switch latency", "fabric.switch_latency"}, {"kernel launch", "software.launch_kernel"}};
  std::mt19937_64 random(20261128);
  const auto one_of = [&](auto... values) {
    const std::string all[] = {values...};
    return all[random() % std::size(all)];
  };
  int compared = 0;
  for (std::size_t draw = 0; draw < tests::draws(60); ++draw) {
    const std::string text =
        "[model]\nname = \"" + one_of("llama2-1b", "mixtral-8x7b") +
        "\"\nsequence = " + one_of("512", "2048") + "\nlayers = 4\n[cluster]\nnode = \"" +
        one_of("dgx-a100", "dgx-h100", "dgx-b200") + "\"\nnodes = 2\n[software]\nframework = \"" +
        one_of("megatron-core", "megatron-lm") + "\"\n[run]\nno_limit = true\n" +
        small_plans[random() % small_plans.size()];
    INFO(text);
    const auto read = [&](const std::string& what_if) {
      return read_scenario(read_toml("what_if = \"" + what_if + "\"\n" + text, "a.toml"),
                           catalogue());
    };
    std::optional<Why> found;
    try {
      found = why(read("none"), session());
    } catch (const InputError&) {
      continue;  // the framework does not run it
    } catch (const NoFeasiblePlan&) {
      continue;
    }
    for (const auto& [name, key] : keys) {
      const auto row = std::ranges::find(found->slopes.rows, name, &Sensitivity::name);
      if (row == found->slopes.rows.end()) continue;
      INFO(name);
      for (const bool twice : {false, true}) {
        const auto there = twice ? row->at_twice : row->at_half;
        const Scenario changed = read(std::string(key) + (twice ? " x2" : " / 2"));
        REQUIRE(there.has_value());
        CHECK(seconds(*there) == Approx(seconds(session().step(changed).step_time)).epsilon(1e-6));
        ++compared;
      }
    }
  }
  CHECK(compared > 20);
}

TEST_CASE("law: with all rates of a GPU doubled and the floor halved every kernel takes half") {
  for (const char* node : {"dgx-a100", "dgx-h100"}) {
    const Scenario base = read_scenario(
        read_toml("[model]\nname = \"llama2-1b\"\nsequence = 512\nlayers = 2\n[cluster]\nnode = "
                  "\"" +
                      std::string(node) + "\"\nnodes = 1\n[batch]\nlocal = 1\n",
                  "a.toml"),
        catalogue());
    const auto faster = [&](double factor) {
      Scenario out = base;
      topology::GpuSpec& gpu = out.node.gpu;
      for (FlopsPerSecond* peak :
           {&gpu.tensor_peak, &gpu.tf32_peak, &gpu.fp8_peak, &gpu.fp4_peak, &gpu.fp32_peak})
        *peak = *peak * factor;
      gpu.memory_bandwidth = gpu.memory_bandwidth * factor;
      gpu.kernel_floor /= factor;
      return session().kernels(out);
    };
    const auto once = faster(1), twice = faster(2), four_times = faster(4);
    for (const workloads::Kernel& kernel : session().bound_step(base).program.kernels) {
      INFO(node << " " << kernel.name);
      const double usual = seconds(once->time_of(kernel).duration);
      const double half = seconds(twice->time_of(kernel).duration);
      CHECK(seconds(four_times->time_of(kernel).duration) ==
            Approx(half / 2).epsilon(1e-6).margin(2e-12));
      CHECK(half == Approx(usual / 2).epsilon(0.25));  // a measured shape is a neighbour then
    }
  }
}

TEST_CASE("half and twice of a rate lie on either side of the step") {
  const Why found = why(small_scenario(small_plans[0]), session());
  const auto gemm = std::ranges::find(found.slopes.rows, "GEMM rate", &Sensitivity::name);
  REQUIRE(gemm != found.slopes.rows.end());
  CHECK(*gemm->at_half > found.path.length);
  CHECK(*gemm->at_twice < found.path.length);
  CHECK(*gemm->elasticity < 0);
}

TEST_CASE("noise is left out of an explanation, and that is said") {
  const Why found =
      why(small_scenario(small_plans[0] + "[noise]\nkernel_sigma = 0.01\n"), session());
  CHECK(found.path.length == session().step(small_scenario(small_plans[0])).step_time);
  CHECK(std::ranges::any_of(found.warnings,
                            [](const auto& w) { return w.find("[noise]") != w.npos; }));
}

TEST_CASE("a timeline with its critical path reads back as it was written") {
  Timeline timeline;
  const Why found = why(small_scenario(two_stages), session(), &timeline);
  Duration path{};
  for (const TimelineEvent& e : timeline.path) path += e.duration;
  CHECK(path == found.path.length);
  // Every device edge lies inside an event of its rank and lane.
  for (const TimelineEvent& e : timeline.path) {
    if (e.lane == host_lane) continue;
    CHECK(std::ranges::any_of(timeline.events, [&](const TimelineEvent& of) {
      return of.rank == e.rank && of.lane == e.lane && of.start <= e.start &&
             e.start + e.duration <= of.start + of.duration;
    }));
  }
  const std::string file = (::tests::own_folder() / "stepcast_path_timeline_test.json").string();
  write_timelines(file, {&timeline, 1});
  const std::vector<Timeline> back = read_timelines(file);
  REQUIRE(back.size() == 1);
  CHECK(back.front() == timeline);
  std::filesystem::remove(file);
}

}  // namespace stepcast::sim
