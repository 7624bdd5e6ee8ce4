#include "sim/study/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/goodput/goodput.hpp"
#include "sim/program/today.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/run/pinned_protocol.hpp"
#include "sim/run/power.hpp"
#include "sim/scenario/goal_file.hpp"

namespace stepcast::sim {
namespace {

constexpr double least_goodput = 1e-9;

/// Why the space of a scenario's open keys holds no plan.
[[noreturn]] void throw_no_plan(const Scenario& scenario) {
  with_degrees(scenario, scenario.plan.tensor, scenario.plan.pipeline);
  throw InputError(scenario.plan_origin,
                   "no plan fits " + std::to_string(scenario.gpus) + " GPUs and this batch");
}

Refused refusal(const Scenario& scenario, const NoFeasiblePlan& error) {
  const auto* memory = dynamic_cast<const OutOfMemory*>(&error);
  return {scenario, error.what(), memory ? std::optional(memory->over()) : std::nullopt};
}

Answer best_step(const Scenario& scenario, const Simulator& simulator) {
  const SearchSpace space = SearchSpace::of_open_keys(scenario);
  const SearchMachine machine =
      simulator.machine ? simulator.machine(space) : SearchMachine{simulator.step, {}, {}};
  const std::atomic<bool> to_the_end{false};
  SearchResult result =
      search_plans(space, machine, {.top = 2, .near = 0, .threads = 1}, to_the_end);
  if (result.legal == 0) throw_no_plan(scenario);
  if (result.found.empty()) {
    const Miss& nearest = result.misses.front();
    const Scenario refused = space.scenario_of(nearest.knobs);
    return Refused{
        refused,
        fmt::format("none of {} plans fits; the nearest, {}, needs {} per GPU, "
                    "{} has {}",
                    result.legal, plan_words(space, nearest.knobs), to_text(nearest.needed),
                    refused.node.gpu.name, to_text(refused.node.gpu.memory)),
        nearest.needed - refused.node.gpu.memory};
  }
  StepReport best = std::move(result.found.front().report);
  if (result.found.size() > 1)
    best.runner_up = {
        plan_words(space, result.found[1].knobs), result.found[1].report.step_time, {}};
  return best;
}

}  // namespace

const Scenario& scenario_of(const Answer& answer) {
  return std::visit([](const auto& a) -> const Scenario& { return a.scenario; }, answer);
}

Simulator simulator_of(Session& session) {
  return simulator_of(session, std::make_shared<Confidence>(session));
}

Simulator simulator_of(Session& session, std::shared_ptr<Confidence> confidence) {
  return {[&](const Scenario& s) { return session.step(s); },
          [&](const Scenario& s) { return session.collective(s); },
          [=](StepReport& report) { confidence->judge(report); },
          [=](CollectiveReport& report) { confidence->judge(report); },
          [&](StepReport& report) { warn_of_protocol(report, session); },
          [&](const SearchSpace&) { return machine_of(session); }};
}

StepFigures figures_of(const StepReport& report) {
  const Scenario& s = report.scenario;
  StepFigures out{.tokens = static_cast<double>(s.global_batch * s.batch.sequence),
                  .step_s = seconds(report.step_time),
                  .gpu = report.power_per_gpu,
                  .idle_gpu = s.node.gpu.idle + context_power(s.node.gpu)};
  if (report.step_bar) out.bar_low = report.step_bar->low, out.bar_high = report.step_bar->high;
  return out;
}

Band goodput_band(const StepReport& report) {
  const double stated = report.scenario.goal.goodput;
  if (!report.goodput) return {stated, stated, stated};
  const auto some = [](double share) { return std::max(share, least_goodput); };
  const Goodput& g = *report.goodput;
  return {some(g.low), some(g.mean), some(g.high)};
}

namespace {

Answer simulated(const Scenario& scenario, const Simulator& simulator) {
  if (scenario.collective) return simulator.collective(scenario);
  if (!scenario.open.empty()) return best_step(scenario, simulator);
  try {
    return simulator.step(scenario);
  } catch (const NoFeasiblePlan& error) {
    return refusal(scenario, error);
  }
}

/// With [failures]: what they leave of the run.
void add_goodput(StepReport& report, const Simulator& simulator) {
  if (!report.scenario.failures.on) return;
  const auto step_of = [&](const Scenario& other) { return simulator.step(other).step_time; };
  report.goodput = goodput_of(report.scenario, report.step_time, step_of);
  const auto& warnings = report.goodput->warnings;
  report.warnings.insert(report.warnings.end(), warnings.begin(), warnings.end());
}

}  // namespace

void add_whole_run(StepReport& report) {
  const Scenario& s = report.scenario;
  report.whole_run = whole_run(s, figures_of(report), goodput_band(report));
  if (report.goodput && report.goodput->mean < least_goodput)
    report.warnings.emplace_back("failures: no work is ever kept, the run would not end");
  for (const std::string& warning : goal_warnings(s, today())) report.warnings.push_back(warning);
}

void complete(StepReport& report, const Simulator& simulator) {
  add_goodput(report, simulator);
  if (asks_for_costs(report.scenario)) add_whole_run(report);
}

Answer answer(const Scenario& scenario, const Simulator& simulator) {
  Answer out = simulated(scenario, simulator);
  if (auto* step = std::get_if<StepReport>(&out)) {
    replay(step->memory, step->scenario);
    if (simulator.question_nccl) simulator.question_nccl(*step);
    if (simulator.judge_step) simulator.judge_step(*step);
    complete(*step, simulator);
  }
  if (auto* one = std::get_if<CollectiveReport>(&out); one != nullptr && simulator.judge_collective)
    simulator.judge_collective(*one);
  return out;
}

}  // namespace stepcast::sim
