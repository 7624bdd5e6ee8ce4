#include "sim/why/why.hpp"

#include "engine/check.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/why/path_timeline.hpp"

namespace stepcast::sim {

Why why(const Scenario& asked, Session& session, Timeline* timeline) {
  Why out;
  Scenario scenario = asked;
  if (scenario.noise.on() && !scenario.run.without.jitter) {
    scenario.run.without.jitter = true;
    out.warnings.emplace_back(
        "[noise] is left out: the critical path is that of the step without it, which is shorter");
  }
  out.report = session.step(scenario);
  out.warnings.insert(out.warnings.begin(), out.report.warnings.begin(), out.report.warnings.end());
  const LoggedStep step(out.report.scenario, session);
  replay(out.report.memory, out.report.scenario);
  out.report.p_fits = session.memory_odds().fits(out.report.scenario, out.report.memory.needed());
  ensures(step.result().step == out.report.step_time, "a logged step takes as long as any");
  out.path = named_path(step, *session.kernels(out.report.scenario), near_tie);
  if (timeline != nullptr) *timeline = path_timeline(step, out.path, timeline->asked);
  out.slopes = sensitivities(step, session);
  out.levers = levers(out.report.scenario, session);
  out.slack = pipeline_slack(step, session);
  return out;
}

}  // namespace stepcast::sim
