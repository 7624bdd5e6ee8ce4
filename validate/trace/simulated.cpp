#include "validate/trace/simulated.hpp"

#include <map>

#include "sim/study/answer.hpp"

namespace stepcast::validate {
namespace {

/// A rank that plays the role; every role has as many.
std::size_t player_of(const engine::System& system, std::size_t role) {
  for (std::size_t r = 0; r < system.role_of_rank.size(); ++r)
    if (system.role_of_rank[r] == role) return r;
  throw BrokenPromise("a role that nobody plays");
}

Duration time_alone(const engine::System& system, const engine::Instruction& i, std::size_t rank) {
  const std::uint32_t communicator = system.communicator_of[i.communicator][rank];
  const engine::Transfer& transfer =
      system.transfers[i.arg * system.num_patterns + system.communicators[communicator].pattern];
  return to_duration(transfer.bytes / transfer.cap.value);
}

void tally(const sim::BoundStep& bound, StepBreakdown& out) {
  const engine::System& system = bound.step.system;
  const double share = 1.0 / static_cast<double>(system.roles.size());
  std::map<TraceKind, double> kernel_s;
  std::map<workloads::CollectiveKind, double> collective_s;
  for (std::size_t role = 0; role < system.roles.size(); ++role) {
    const std::size_t rank = player_of(system, role);
    for (const engine::Instruction& i : system.roles[role].instructions) {
      if (i.op == engine::Op::work) {
        const TraceKind kind = kind_of(bound.program.kernels[i.arg].family);
        kernel_s[kind] += share * seconds(system.works[i.arg].duration);
        out.kernels[kind].calls += share;
      } else if (i.op == engine::Op::join) {
        const workloads::Collective& collective = bound.program.collectives[i.arg];
        StepTally& sum = out.collectives[collective.kind];
        collective_s[collective.kind] += share * seconds(time_alone(system, i, rank));
        sum.calls += share;
        sum.bytes += share * static_cast<double>(collective.bytes.value);
      }
    }
  }
  for (const auto& [kind, s] : kernel_s) out.kernels[kind].duration = to_duration(s);
  for (const auto& [kind, s] : collective_s) out.collectives[kind].duration = to_duration(s);
}

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
  SimulatedStep out{step_of(scenario, session), {}};
  const sim::StepReport& report = out.report;
  out.mean.step = report.step_time;
  out.mean.tokens_per_second_per_gpu =
      report.tokens_per_second / static_cast<double>(report.scenario.gpus);
  out.mean.compute = report.compute;
  out.mean.communication = report.communication;
  out.mean.transferring = report.exposed.total();
  out.mean.waiting = report.bubble + report.wait;
  out.mean.exposed = report.exposed.total() + report.bubble + report.wait;
  out.mean.idle = report.host;
  out.mean.memory = report.memory.total();
  tally(session.bound_step(report.scenario), out.mean);
  return out;
}

}  // namespace stepcast::validate
