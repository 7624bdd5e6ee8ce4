#include "sim/design/plan_finder.hpp"

#include <algorithm>
#include <limits>

#include "sim/search/bases.hpp"
#include "sim/search/search.hpp"

namespace stepcast::sim {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
// A search is asked a little beyond the limit, so that what it leaves out is surely above.
constexpr int share_of_a_glance = 8;  // of the time that is left one in so many
constexpr double asked_beyond = 1 + 3e-9, surely_above = 1 + 2e-9;

SearchSpace space_of_goal(const DesignGoal& goal, std::vector<Scenario> bases, bool across) {
  SearchSpace space(std::move(bases), across);
  if (goal.space) space.set_all(*goal.space);
  return space;
}

FastestPlan told(const SearchSpace& space, const SearchResult& result, double above_s) {
  FastestPlan out;
  out.legal = result.legal;
  out.too_large = result.too_large + result.risky.plans + result.refused;
  out.simulated = result.simulated();
  if (!result.best_is_proven()) {
    out.open = true;
    out.open_s = result.walked ? result.least_open : 0;
    if (result.found.empty()) return out;
    out.open_s = std::min(out.open_s, result.found.front().value);
    out.report = result.found.front().report;
    out.plan = plan_words(space, result.found.front().knobs);
    return out;
  }
  if (!result.found.empty() && result.found.front().value <= above_s * surely_above) {
    out.report = result.found.front().report;
    out.plan = plan_words(space, result.found.front().knobs);
    return out;
  }
  const bool something = result.left_out > 0 || !result.found.empty();
  out.at_least_s = something ? above_s * surely_above : unbounded;
  return out;
}

}  // namespace

PlanFinder plan_finder(const DesignGoal& goal, const Machines& machines, Session& session,
                       const FinderOptions& options, const std::atomic<bool>& stop) {
  return [&goal, &machines, &session, &stop, options](const Machine& machine, double above_s,
                                                      SearchDepth how) {
    const auto now = std::chrono::steady_clock::now();
    if (options.deadline && now >= *options.deadline) return FastestPlan{.open = true};
    const bool glance = how == SearchDepth::glance;
    auto deadline = options.deadline;
    if (deadline && glance) deadline = now + (*deadline - now) / share_of_a_glance;
    const SearchSpace space = space_of_goal(goal, machines.bases_of(machine), options.across_nodes);
    SearchMachine with = machine_of(session);
    with.refusal = refusal_by_launch(space);
    if (options.step) with.step = options.step;
    with.knows = options.knows;
    const SearchResult result = search_plans(space, with,
                                             {.top = 1,
                                              .near = 0,
                                              .deadline = deadline,
                                              .threads = options.threads,
                                              .look_first = glance,
                                              .look_alone = glance,
                                              .above = above_s * asked_beyond,
                                              .risky_if_none = false,
                                              .share = options.only_known ? no_share : Shard{}},
                                             stop);
    FastestPlan out = told(space, result, above_s);
    if (out.report && out.report->scenario.failures.on) {
      const auto step_of = [&](const Scenario& other) { return with.step(other).step_time; };
      out.report->goodput = goodput_of(out.report->scenario, out.report->step_time, step_of);
    }
    return out;
  };
}

PeakRules peak_rules(const DesignGoal& goal, const Machines& machines) {
  PeakRules out;
  for (const std::vector<Scenario>& bases : machines.bases) {
    const SearchSpace space = space_of_goal(goal, bases, false);
    const auto others = [&](const char* key, std::int64_t plain) {
      const auto& values = space.values_of(*find_knob(key));
      return std::ranges::any_of(values, [&](std::int64_t value) { return value != plain; });
    };
    const Scenario& s = bases.front();
    out.low_precision = out.low_precision || s.precision.recipe != workloads::Recipe::none ||
                        others("precision.recipe", static_cast<int>(workloads::Recipe::none));
    if (others("plan.capacity_factor", 0)) out.counts = false;
  }
  return out;
}

}  // namespace stepcast::sim
