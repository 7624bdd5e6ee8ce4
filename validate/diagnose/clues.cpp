#include "validate/diagnose/clues.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/network/nccl/variables.hpp"

namespace stepcast::validate {
namespace {

/// What is left of the gap stands last.
void balance(Attribution& found) {
  std::erase_if(found.causes,
                [](const Cause& cause) { return cause.kind == CauseKind::not_explained; });
  std::ranges::stable_sort(found.causes, std::greater(), &Cause::seconds);
  double claimed = 0;
  for (const Cause& cause : found.causes) claimed += cause.seconds;
  found.causes.push_back({CauseKind::not_explained, found.measured - found.expected - claimed});
}

/// Seconds that the variable adds to the step by the simulation; none where that does not know it.
std::optional<double> simulated_cost(const Sign& sign, sim::Scenario s, double expected,
                                     sim::Session& session) {
  s.run.ignore_memory = true;
  try {
    if (sign.variable == "CUDA_LAUNCH_BLOCKING") {
      s.software.host.launch_blocking = true;
    } else if (sign.variable.starts_with("NCCL_")) {
      s.nccl_variables.push_back({sign.variable, sign.value, sign.where});
      s.nccl_overrides = sim::nccl_overrides(s.nccl_variables);
    } else {
      return std::nullopt;
    }
    return seconds(session.step(s).step_time) - expected;
  } catch (const InputError&) {
    return std::nullopt;  // this version of NCCL does not know it
  }
}

}  // namespace

void add_series(Attribution& found, const StepSeries& series) {
  found.measured = series.mean;
  for (Cause& cause : causes_of(series))
    if (cause.seconds > noise_share * found.expected) found.causes.push_back(std::move(cause));
  balance(found);
}

void add_signs(Attribution& found, const Surroundings& around, const sim::Scenario& scenario,
               bool traces, sim::Session& session, std::vector<std::string>& notes) {
  for (const Sign& sign : around.signs) {
    const std::string said = fmt::format("{}: {}", sign.where, sign.evidence);
    const auto there = std::ranges::find(found.causes, sign.kind, &Cause::kind);
    if (there != found.causes.end()) {
      there->evidence += "; " + said;
      there->surety = Surety::sure;
      continue;
    }
    const std::string_view title = words_of(sign.kind).title;
    const auto cost =
        traces ? std::nullopt : simulated_cost(sign, scenario, found.expected, session);
    const double open = found.causes.back().seconds;
    if (cost && std::min(*cost, open) > noise_share * found.expected) {
      Cause cause{sign.kind, std::min(*cost, open),
                  fmt::format("{}, by the simulation {} a step", said, milliseconds(*cost)),
                  Surety::likely};
      if (!sign.variable.empty()) cause.how = fmt::format("unset {}", sign.variable);
      found.causes.push_back(std::move(cause));
      balance(found);
    } else if (cost) {
      notes.push_back(fmt::format("{}: a sign of \"{}\"; by the simulation {} a step.", said, title,
                                  milliseconds(*cost)));
    } else {
      notes.push_back(fmt::format("{}: a sign of \"{}\"{}.", said, title,
                                  traces ? ", which the traces do not show" : ""));
    }
  }
}

}  // namespace stepcast::validate
