#include "sim/handout/step_handout.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/confidence/confidence.hpp"

namespace stepcast::sim {
namespace {

/// The part of a page that a scenario refuses is named, with the reason, and the rest goes on.
template <class Make>
void unless_refused(const std::string& what, std::vector<std::string>& missing, Make make) {
  try {
    make();
  } catch (const InputError& error) {
    missing.push_back(what + ": " + error.what());
  } catch (const NoFeasiblePlan& error) {
    missing.push_back(what + ": " + error.what());
  }
}

/// Plans of the same framework on the same machine, a few of them.
SearchAnswer alternatives_of(const Scenario& own, Session& session,
                             const StepHandoutOptions& options, const std::atomic<bool>& stop) {
  Scenario base = own;
  base.run.memory_is_known = false;
  base.run.ignore_memory = false;
  SearchAnswer out{SearchSpace({base}, false), {}, {}, {}, {}};
  out.options.top = 3;
  out.options.near = 0;
  out.options.limit = options.simulations;
  out.options.threads = options.threads;
  const SearchMachine machine = machine_of(session);
  out.result = search_plans(out.space, machine, out.options, stop);
  Confidence confidence(session);
  if (const Order* order = confidence.order()) out.order = *order;
  if (!out.result.found.empty())
    out.own = beside_best(out.space, machine, own, out.result.found.front().knobs);
  return out;
}

}  // namespace

StepHandout step_handout(const StepReport& report, Session& session,
                         const StepHandoutOptions& options, const std::atomic<bool>& stop) {
  StepHandout out{report};
  Scenario quiet = report.scenario;
  if (quiet.noise.on()) out.missing.emplace_back("noise in what follows: all of it is without");
  quiet.noise = {};
  quiet.open.clear();
  unless_refused("the critical path", out.missing,
                 [&] { out.why = why(quiet, session, &out.timeline); });
  unless_refused("times of each stage", out.missing,
                 [&] { out.stages = stage_times(quiet, session); });
  if (!out.why)
    unless_refused("the timeline", out.missing, [&] { session.timeline(quiet, out.timeline); });
  unless_refused("memory over the step", out.missing, [&] { out.memory = memory_timeline(quiet); });
  if (options.alternatives)
    unless_refused("other plans", out.missing,
                   [&] { out.search = alternatives_of(quiet, session, options, stop); });
  if (out.search) out.knobs = knob_values_of(quiet);
  return out;
}

}  // namespace stepcast::sim
