// The exchange between experts under another micro-batch's compute: the rows of a pair, timed by
// hand; what is computed and sent stays the same.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/workloads/lane_machine.hpp"
#include "tests/workloads/step_reading.hpp"
#include "workloads/memory/figures.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr std::int64_t layers = 6, micro_batches = 8;
constexpr Batch batch{.micro_batch = 1, .micro_batches = micro_batches, .sequence = 512};

TransformerShape model_of_experts() {
  TransformerShape s = llama(layers, 1024, 16, 4, 4096);
  s.experts.count = 8, s.experts.per_token = 2, s.experts.ffn = 512;
  return s;
}

ParallelPlan plan_with(bool overlap, bool delay_wgrad = false) {
  ParallelPlan plan = plan_of(DataParallel::zero1, 8);
  plan.expert.degree = 8;
  plan.expert.dispatcher = Dispatcher::node_aware;
  plan.expert.overlap = overlap;
  plan.expert.delay_wgrad = delay_wgrad;
  plan.routing.kind = RoutingKind::balanced;
  return plan;
}

Software runs_experts() {
  Software s = fused();
  s.experts.runs = true;
  s.tensor.overlap = false;
  return s;
}

StepProgram step_with(const ParallelPlan& plan) {
  return make_step_program(model_of_experts(), plan, batch, {}, runs_experts());
}

/// Seconds of the kernels whose name ends so, all others none; and of each exchange of tokens.
struct Times {
  std::vector<std::pair<std::string, double>> kernels;
  double exchange = 0.0;
};

/// When a rank ends whose host takes no time, all ranks alike.
double end_of(const StepProgram& step, const Times& times) {
  const engine::Program& program = step.roles[0];
  std::array<double, num_lanes> lanes{};
  std::vector<double> events(program.num_events, 0.0);
  double host = 0.0;
  for (const engine::Instruction& i : program.instructions) {
    double& lane = lanes[i.lane];
    double takes = 0.0;
    if (i.op == engine::Op::work)
      for (const auto& [end, seconds] : times.kernels)
        if (step.kernels[i.arg].name.ends_with(end)) takes = seconds;
    if (i.op == engine::Op::join && step.collectives[i.arg].tokens.tokens > 0)
      takes = times.exchange;
    if (i.op == engine::Op::work || i.op == engine::Op::join) lane = std::max(lane, host) + takes;
    if (i.op == engine::Op::record) events[i.arg] = std::max(lane, host);
    if (i.op == engine::Op::wait) lane = std::max(lane, events[i.arg]);
    if (i.op == engine::Op::host_wait) host = std::max(host, events[i.arg]);
  }
  return std::max(host, *std::ranges::max_element(lanes));
}

/// Forward 1 + 1, backward 2 + 2: of attention's half and of the experts'.
Times rows_of(double exchange) {
  return {{{"attention.o.forward", 1.0},
           {"experts.down.forward", 1.0},
           {"attention.o.dgrad", 2.0},
           {"experts.down.dgrad", 2.0}},
          exchange};
}

}  // namespace

TEST_CASE(
    "without exchange time a pair takes what its kernels take, without kernels its exchange") {
  const double compute = layers * micro_batches * 6.0, sent = layers * micro_batches * 4 * 1.5;
  for (const bool overlap : {false, true}) {
    const StepProgram step = step_with(plan_with(overlap));
    CHECK(end_of(step, rows_of(0.0)) == Approx(compute));
    CHECK(end_of(step, {{}, 1.5}) == Approx(sent));
  }
}

TEST_CASE("the rows of a pair end when they do by hand") {
  const StepProgram apart = step_with(plan_with(false)), beside = step_with(plan_with(true));
  // An exchange of 1 is under compute all the while: rows 1 and 2 at 0, 3 and 4 at 1, 6 and 7 at 3,
  // 8 and 9 at 4, the next pair at 6. The first forward, 4, and the last backward, 6, run alone.
  CHECK(end_of(apart, rows_of(1.0)) == Approx(10.0 * layers * micro_batches));
  CHECK(end_of(beside, rows_of(1.0)) == Approx(layers * (4.0 + 6.0 * (micro_batches - 1) + 6.0)));
  // One of 3 is what a pair waits for: four of them, 12.
  CHECK(end_of(apart, rows_of(3.0)) == Approx(18.0 * layers * micro_batches));
  CHECK(end_of(beside, rows_of(3.0)) == Approx(layers * (8.0 + 12.0 * (micro_batches - 1) + 10.0)));
}

TEST_CASE("weight gradients that are put off hide more of the exchange") {
  Times times = rows_of(1.5);
  times.kernels[2].second = times.kernels[3].second = 1.0;
  times.kernels.emplace_back("attention.o.wgrad", 1.0);
  times.kernels.emplace_back("experts.down.wgrad", 1.0);
  // 7 a pair, 6 of which are compute: row 6 waits for the weight gradients in row 3, row 7 for it.
  CHECK(end_of(step_with(plan_with(true)), times) ==
        Approx(layers * (5.0 + 7.0 * (micro_batches - 1) + 7.0)));
  // Of a layer and pair 6, of a step's last backward 1.5 + 1 + 1.5 + 1 with the rest beside it.
  const double delayed = end_of(step_with(plan_with(true, true)), times);
  CHECK(delayed < layers * (5.0 + 6.2 * (micro_batches - 1) + 7.0));
  CHECK(delayed > layers * 6.0 * micro_batches);
}

TEST_CASE("overlap computes and sends the same, and no rank waits for ever") {
  TransformerShape s = model_of_experts();
  s.layers = 16;
  s.experts.dense_layers = 2;
  for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::dualpipe, Schedule::dualpipe_v})
    for (const std::int64_t pipeline : {1, 2, 4}) {
      if (pipeline == 1 && schedule != Schedule::one_f_one_b) continue;
      ParallelPlan plan = plan_with(false);
      plan.pipeline = pipeline;
      plan.schedule = schedule;
      plan.virtual_stages = pipeline > 1 ? 2 : 1;
      const StepProgram apart = make_step_program(s, plan, batch, {}, runs_experts());
      for (const bool delay : {false, true}) {
        plan.expert.overlap = true;
        plan.expert.delay_wgrad = delay;
        const StepProgram beside = make_step_program(s, plan, batch, {}, runs_experts());
        CAPTURE(name_of(schedule), pipeline, delay);
        for (std::size_t role = 0; role < beside.roles.size(); ++role) {
          CHECK(flops_of(beside, role) == Approx(flops_of(apart, role)).epsilon(1e-12));
          CHECK(bytes_of_kernels(beside, "", role) == bytes_of_kernels(apart, "", role));
          CHECK(bytes_by_name(beside, role) == bytes_by_name(apart, role));
        }
        CHECK(LaneMachine(beside, plan).run().empty());
      }
    }
}

TEST_CASE("the exchange and what sums its rows leave compute's lane, after one forward alone") {
  const StepProgram beside = step_with(plan_with(true));
  std::int64_t exchanges = 0, forwards = 0;
  bool backward = false;
  for (const engine::Instruction& i : beside.roles[0].instructions) {
    if (i.op == engine::Op::join && i.lane == expert_lane) ++exchanges;
    if (i.op != engine::Op::work) continue;
    const std::string& name = beside.kernels[i.arg].name;
    const bool sums = name.starts_with("layer.experts.unpermute") || name == "layer.mlp.residual";
    CHECK((i.lane == expert_lane) == sums);
    backward = backward || name.ends_with("dgrad");
    if (!backward && name == "layer.experts.down.forward") ++forwards;
  }
  CHECK(exchanges == 4 * layers * micro_batches);
  CHECK(forwards == layers);
}

TEST_CASE("only exchanges of a pair are launched under the other micro-batch's kernels") {
  for (const bool overlap : {false, true}) {
    const StepProgram step = step_with(plan_with(overlap));
    std::int64_t beside = 0, alone = 0;
    for (const engine::Instruction& i : step.roles[0].instructions)
      if (i.op == engine::Op::join && step.collectives[i.arg].tokens.tokens > 0)
        ++(step.collectives[i.arg].beside ? beside : alone);
    // The first forward and the last backward run alone, two exchanges a layer each.
    CHECK(beside == (overlap ? 4 * layers * (micro_batches - 1) : 0));
    CHECK(beside + alone == 4 * layers * micro_batches);
  }
}

TEST_CASE("a pair holds a layer more than one micro-batch, not another micro-batch") {
  const auto activations = [](const ParallelPlan& plan) {
    const Memory memory = fullest_memory(model_of_experts(), plan, batch, {}, runs_experts(), 24);
    return std::ranges::find(memory.parts, "activations", &MemoryPart::name)->bytes.value;
  };
  const std::int64_t apart = activations(plan_with(false));
  const std::int64_t beside = activations(plan_with(true));
  CHECK(beside > apart);
  CHECK(beside - apart < apart / (layers - 1));
  CHECK(activations(plan_with(true, true)) >= beside);
}
