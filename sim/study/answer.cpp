#include "sim/study/answer.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/run/memory_figures.hpp"

namespace stepcast::sim {
namespace {

std::vector<std::int64_t> candidates(bool best, std::int64_t fixed, std::int64_t most) {
  if (!best) return {fixed};
  std::vector<std::int64_t> out;
  for (std::int64_t degree = 1; degree <= most; degree *= 2) out.push_back(degree);
  return out;
}

/// Degrees that do not divide are no candidates; of the others at least one must exist.
std::vector<Scenario> feasible_degrees(const Scenario& scenario) {
  std::vector<Scenario> out;
  std::optional<InputError> last;
  for (const std::int64_t pipeline :
       candidates(scenario.best_pipeline, scenario.plan.pipeline, scenario.model.layers))
    for (const std::int64_t tensor :
         candidates(scenario.best_tensor, scenario.plan.tensor, scenario.model.heads)) {
      if (tensor * pipeline > scenario.gpus) continue;
      try {
        out.push_back(with_degrees(scenario, tensor, pipeline));
      } catch (const InputError& error) {
        last = error;
      }
    }
  if (!out.empty()) return out;
  if (last) throw *last;
  throw InputError(scenario.plan_origin,
                   "no degrees fit " + std::to_string(scenario.gpus) + " GPUs");
}

Refused refusal(const Scenario& scenario, const NoFeasiblePlan& error) {
  const auto* memory = dynamic_cast<const OutOfMemory*>(&error);
  return {scenario, error.what(), memory ? std::optional(memory->over()) : std::nullopt};
}

Answer best_step(const Scenario& scenario, const Simulator& simulator) {
  std::optional<StepReport> best, next;
  std::optional<Refused> refused;
  for (const Scenario& candidate : feasible_degrees(scenario)) {
    try {
      StepReport report = simulator.step(candidate);
      const bool smaller = best && candidate.plan.tensor * candidate.plan.pipeline <
                                       best->scenario.plan.tensor * best->scenario.plan.pipeline;
      if (!best || report.step_time < best->step_time ||
          (report.step_time == best->step_time && smaller))
        std::swap(best, next), best = std::move(report);
      else if (!next || report.step_time < next->step_time)
        next = std::move(report);
    } catch (const NoFeasiblePlan& error) {
      refused = refusal(candidate, error);  // the last one cuts the model finest
    }
  }
  if (best && next)
    best->runner_up = {next->scenario.plan.tensor, next->scenario.plan.pipeline, next->step_time};
  if (best) return *std::move(best);
  return Refused{refused->scenario,
                 "no degrees fit; with tensor " + std::to_string(refused->scenario.plan.tensor) +
                     ", pipeline " + std::to_string(refused->scenario.plan.pipeline) + ": " +
                     refused->reason,
                 refused->over};
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
          [=](CollectiveReport& report) { confidence->judge(report); }};
}

namespace {

Answer simulated(const Scenario& scenario, const Simulator& simulator) {
  if (scenario.collective) return simulator.collective(scenario);
  if (scenario.best_tensor || scenario.best_pipeline) return best_step(scenario, simulator);
  try {
    return simulator.step(scenario);
  } catch (const NoFeasiblePlan& error) {
    return refusal(scenario, error);
  }
}

}  // namespace

Answer answer(const Scenario& scenario, const Simulator& simulator) {
  Answer out = simulated(scenario, simulator);
  if (auto* step = std::get_if<StepReport>(&out)) {
    step->figures = memory_figures(step->scenario);
    if (simulator.judge_step) simulator.judge_step(*step);
  }
  if (auto* one = std::get_if<CollectiveReport>(&out); one != nullptr && simulator.judge_collective)
    simulator.judge_collective(*one);
  return out;
}

}  // namespace stepcast::sim
