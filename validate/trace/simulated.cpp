#include "validate/trace/simulated.hpp"

#include "sim/study/answer.hpp"
#include "validate/trace/timeline.hpp"

namespace stepcast::validate {
namespace {

sim::StepReport step_of(const sim::Scenario& scenario, sim::Session& session) {
  const sim::Answer answer = sim::answer(scenario, simulator_of(session));
  if (const auto* report = std::get_if<sim::StepReport>(&answer)) return *report;
  if (const auto* refused = std::get_if<sim::Refused>(&answer))
    throw NoFeasiblePlan(refused->reason);
  throw InputError(scenario.origin, "asks for a collective, a trace is of a training step");
}

}  // namespace

SimulatedStep simulate_breakdown(sim::Scenario scenario, sim::Session& session) {
  scenario.run.ignore_memory = true;
  SimulatedStep out{step_of(scenario, session), {}, {}};
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
  sim::Scenario quiet = report.scenario;
  quiet.noise = {};  // calls and sizes have none, and alike ranks stand for each other
  session.timeline(quiet, out.timeline);
  const StepBreakdown shown = measure_timeline(out.timeline, report.scenario.origin).mean;
  out.mean.kernels = shown.kernels;
  out.mean.collectives = shown.collectives;
  return out;
}

}  // namespace stepcast::validate
