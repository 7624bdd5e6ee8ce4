#include "validate/diagnose/faster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/study/answer.hpp"

namespace stepcast::validate {
namespace {

constexpr double worth_saying = 0.03;

/// None where it does not fit or cannot be run.
std::optional<sim::StepReport> step_of(sim::Scenario s, sim::Session& session) {
  s.run.ignore_memory = false;
  s.noise = {};
  try {
    const sim::Answer answer = sim::answer(s, sim::simulator_of(session));
    const auto* step = std::get_if<sim::StepReport>(&answer);
    return step == nullptr ? std::nullopt : std::optional(*step);
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const NoFeasiblePlan&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Faster> faster_ways(const sim::Scenario& scenario, double expected,
                                sim::Session& session) {
  std::vector<Faster> out;
  const auto add = [&](const std::optional<sim::StepReport>& step, const std::string& what,
                       const std::string& how) {
    if (step && seconds(step->step_time) < (1 - worth_saying) * expected)
      out.push_back({what, how, seconds(step->step_time)});
  };
  for (const auto& [recompute, what] :
       {std::pair{workloads::Recompute::none, "no recompute"},
        std::pair{workloads::Recompute::selective, "selective recompute"}}) {
    if (scenario.plan.recompute == workloads::Recompute::none ||
        scenario.plan.recompute == recompute)
      continue;
    sim::Scenario other = scenario;
    other.plan.recompute = recompute;
    add(step_of(std::move(other), session), what,
        fmt::format("plan.recompute = {}", sim::word_for(sim::recompute_names, recompute)));
  }
  sim::Scenario open = scenario;
  open.open = {"plan.tensor", "plan.pipeline"};
  if (const auto best = step_of(std::move(open), session)) {
    const workloads::ParallelPlan& plan = best->scenario.plan;
    if (plan.tensor != scenario.plan.tensor || plan.pipeline != scenario.plan.pipeline)
      add(best, "other degrees",
          fmt::format("plan.tensor = {}, plan.pipeline = {} (stepcast launch writes its files)",
                      plan.tensor, plan.pipeline));
  }
  std::ranges::stable_sort(out, {}, &Faster::step);
  return out;
}

}  // namespace stepcast::validate
