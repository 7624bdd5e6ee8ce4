#include "validate/trace/simulated.hpp"

#include <map>

#include "sim/files/names.hpp"
#include "sim/study/answer.hpp"

namespace stepcast::validate {
namespace {

sim::StepReport step_of(const sim::Scenario& scenario, sim::Session& session) {
  const sim::Answer answer = sim::answer(scenario, simulator_of(session));
  if (const auto* report = std::get_if<sim::StepReport>(&answer)) return *report;
  if (const auto* refused = std::get_if<sim::Refused>(&answer))
    throw NoFeasiblePlan(refused->reason);
  throw InputError(scenario.origin, "asks for a collective, a trace is of a training step");
}

/// Kernels and collectives as the step runs them: collectives beside a kernel slow it.
void tally(sim::Scenario s, sim::Session& session, StepBreakdown& out) {
  s.noise = {};  // calls and sizes have none, and alike ranks stand for each other
  sim::Timeline timeline;
  timeline.sums = true;
  session.timeline(s, timeline);
  std::map<TraceKind, double> kernel_s;
  std::map<workloads::CollectiveKind, double> collective_s;
  for (const sim::TimelineEvent& e : timeline.events) {
    const double share =
        static_cast<double>(timeline.ranks.at(e.rank)) / static_cast<double>(s.gpus);
    const double calls = share * static_cast<double>(e.calls);
    if (const auto kind = sim::meaning_of(sim::collective_names, e.kind); e.is_collective()) {
      out.collectives[*kind].calls += calls;
      out.collectives[*kind].bytes += calls * static_cast<double>(e.bytes.value);
      collective_s[*kind] += share * seconds(e.duration - e.waited);
    } else {
      out.kernels[kind_of(*e.family)].calls += calls;
      kernel_s[kind_of(*e.family)] += share * seconds(e.duration);
    }
  }
  for (const auto& [kind, s_of] : kernel_s) out.kernels[kind].duration = to_duration(s_of);
  for (const auto& [kind, s_of] : collective_s) out.collectives[kind].duration = to_duration(s_of);
}

}  // namespace

SimulatedStep simulate_breakdown(sim::Scenario scenario, sim::Session& session, bool calls) {
  scenario.run.ignore_memory = true;
  SimulatedStep out{step_of(scenario, session), {}};
  const sim::StepReport& report = out.report;
  out.mean.step = report.step_time;
  out.mean.tokens_per_second_per_gpu =
      report.tokens_per_second / static_cast<double>(report.scenario.gpus);
  out.mean.flops_per_second_per_gpu = report.model_flops_per_gpu.value;
  out.mean.mfu = report.mfu;
  out.mean.compute = report.compute;
  out.mean.communication = report.communication;
  out.mean.transferring = report.exposed.total();
  out.mean.waiting = report.bubble + report.wait;
  out.mean.exposed = report.exposed.total() + report.bubble + report.wait;
  out.mean.idle = report.host;
  out.mean.memory = report.memory.total();
  if (!calls) return out;
  tally(report.scenario, session, out.mean);
  return out;
}

}  // namespace stepcast::validate
