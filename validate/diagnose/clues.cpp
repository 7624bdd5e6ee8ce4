#include "validate/diagnose/clues.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "sim/compare/shapley.hpp"
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

/// Whether the simulation knows what the variable does.
bool set_variable(const Sign& sign, sim::Scenario& s) {
  if (sign.variable == "CUDA_LAUNCH_BLOCKING") {
    s.software.host.launch_blocking = true;
    return true;
  }
  if (sign.variable == "TORCH_DISTRIBUTED_DEBUG") {
    s.software.host.collective_checks = true;
    return true;
  }
  if (!sign.variable.starts_with("NCCL_")) return false;
  s.nccl_variables.push_back({sign.variable, sign.value, sign.where});
  return true;
}

/// Of the step with these of the variables set; none where this version of NCCL does not know one.
std::optional<std::int64_t> step_ps(const std::vector<const Sign*>& signs, sim::ChangeSet set,
                                    sim::Scenario s, sim::Session& session) {
  s.run.ignore_memory = true;
  try {
    for (std::size_t i = 0; i < signs.size(); ++i)
      if ((set >> i & 1U) != 0 && !set_variable(*signs[i], s)) return std::nullopt;
    s.nccl_overrides = sim::nccl_overrides(s.nccl_variables);
    return session.step(s).step_time.count();
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// Seconds that a variable adds to the step by the simulation.
struct Cost {
  const Sign* sign = nullptr;
  double alone = 0, share = 0;  // share: of what all add together (Shapley), where several do
};

/// Of the variables that the simulation knows; effects that overlap are shared out.
std::vector<Cost> simulated_costs(const std::vector<const Sign*>& signs, const sim::Scenario& s,
                                  sim::Session& session) {
  constexpr double ps = 1e-12;
  const auto none = step_ps({}, 0, s, session);
  std::vector<Cost> out;
  std::vector<const Sign*> known;
  for (const Sign* sign : signs) {
    const auto step = step_ps({sign}, 1, s, session);
    if (!none || !step || known.size() == sim::most_changes) continue;
    const double alone = ps * static_cast<double>(*step - *none);
    known.push_back(sign);
    out.push_back({sign, alone, alone});
  }
  if (known.size() < 2) return out;
  constexpr std::size_t drawn = 50;
  const auto orders = sim::orders_of(known.size(), drawn, 1);
  sim::SetValues values;
  for (const sim::ChangeSet set : sim::sets_on_the_way(orders))
    values[set] = step_ps(known, set, s, session);
  if (const auto shares = sim::shares_of(orders, values))
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i].share = ps * static_cast<double>(shares->of[i]);
  return out;
}

std::string place_and_evidence(const Sign& sign) {
  return fmt::format("{}: {}", sign.where, sign.evidence);
}

std::string cost_text(const Cost& cost) {
  std::string out = fmt::format("by the simulation {} a step", milliseconds(cost.alone));
  constexpr double as_good_as_alone = 0.05e-3;
  if (std::abs(cost.share - cost.alone) > as_good_as_alone)
    out += fmt::format(" alone, its share beside the others {}", milliseconds(cost.share));
  return out;
}

/// Causes of the gap as far as it reaches; what is noise, or beyond it, are notes.
void add_costs(Attribution& found, const std::vector<Cost>& costs,
               std::vector<std::string>& notes) {
  double sum = 0;
  for (const Cost& cost : costs) sum += std::max(0.0, cost.share);
  const double open = found.causes.empty() ? 0 : std::max(0.0, found.causes.back().seconds);
  const double scale = sum > open ? open / sum : 1;
  for (const Cost& cost : costs) {
    const double seconds = scale * cost.share;
    if (seconds <= noise_share * found.expected) {
      notes.push_back(fmt::format("{}: a sign of \"{}\"; {}.", place_and_evidence(*cost.sign),
                                  words_of(cost.sign->kind).title, cost_text(cost)));
      continue;
    }
    Cause cause{cost.sign->kind, seconds,
                fmt::format("{}, {}", place_and_evidence(*cost.sign), cost_text(cost)),
                Surety::likely};
    cause.how = fmt::format("unset {}", cost.sign->variable);
    found.causes.push_back(std::move(cause));
  }
  if (!found.causes.empty()) balance(found);
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
  std::vector<const Sign*> open;
  for (const Sign& sign : around.signs) {
    const auto there = std::ranges::find(found.causes, sign.kind, &Cause::kind);
    if (there == found.causes.end()) {
      open.push_back(&sign);
      continue;
    }
    there->evidence += "; " + place_and_evidence(sign);
    there->surety = Surety::sure;
  }
  const std::vector<Cost> costs =
      traces ? std::vector<Cost>() : simulated_costs(open, scenario, session);
  add_costs(found, costs, notes);
  for (const Sign* sign : open)
    if (std::ranges::find(costs, sign, &Cost::sign) == costs.end())
      notes.push_back(fmt::format("{}: a sign of \"{}\"{}.", place_and_evidence(*sign),
                                  words_of(sign->kind).title,
                                  traces ? ", which the traces do not show" : ""));
}

}  // namespace stepcast::validate
