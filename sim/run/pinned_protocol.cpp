#include "sim/run/pinned_protocol.hpp"

#include <fmt/format.h>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/collective_words.hpp"

namespace stepcast::sim {
namespace {

/// The step with this variable; none where NCCL would refuse it.
std::optional<Duration> step_with(Scenario scenario, const NcclVariable& variable,
                                  Session& session) {
  try {
    scenario.nccl_variables.push_back(variable);
    scenario.nccl_overrides = nccl_overrides(scenario.nccl_variables);
    return session.step(scenario).step_time;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

void warn_of_protocol(StepReport& report, Session& session) {
  constexpr double gain = worthwhile_gain;
  const Scenario& s = report.scenario;
  const double least = gain / (1 + gain) * seconds(report.step_time);  // to be saved
  double spent = 0.0;
  for (const ProtocolChoice& c : report.nccl_choices) spent += c.calls * seconds(c.each);
  if (spent < least || s.run.without.any()) return;
  const auto network = session.network(s);
  if (!network->nccl) return;
  const auto better =
      better_protocol(report.nccl_choices, s.node, *network->nccl, s.nccl_overrides);
  if (!better || better->saved_s < least) return;
  const auto pinned = step_with(s, better->variable, session);
  if (!pinned || seconds(*pinned) * (1 + gain) > seconds(report.step_time)) return;
  const ProtocolChoice& call = better->heaviest;
  report.warnings.push_back(fmt::format(
      "NCCL's own choice costs {:.0f} %: {} as it chooses ({} for {} of {} over {} GPUs), {} with "
      "{}=\"{}\"; a faster machine may be slower where this choice changes",
      100 * (seconds(report.step_time) / seconds(*pinned) - 1), to_text(report.step_time),
      protocol_words[static_cast<std::size_t>(call.taken)].nccl,
      collective_words[static_cast<std::size_t>(call.call.kind)].nccl, to_text(call.call.bytes),
      call.shape.ranks, to_text(*pinned), better->variable.name, better->variable.value));
}

}  // namespace stepcast::sim
