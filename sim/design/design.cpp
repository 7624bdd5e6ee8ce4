#include "sim/design/design.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "engine/check.hpp"
#include "sim/kernels/power_law.hpp"
#include "sim/run/power.hpp"
#include "sim/study/answer.hpp"

namespace stepcast::sim {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// Bounds and answers are sums in another order: what misses a limit by less meets it.
constexpr double design_rounding = 1e-9;

bool within(double value, double limit) { return value <= limit * (1 + design_rounding); }

/// Of equals the cheaper one.
bool better(const DesignOutcome& a, const DesignOutcome& b, Aim aim) {
  return std::pair(a.of(aim), a.usd) < std::pair(b.of(aim), b.usd);
}

}  // namespace

std::string word_of(Aim aim) {
  return aim == Aim::cheapest ? "cheapest" : aim == Aim::fastest ? "fastest" : "greenest";
}

std::string_view text_of(Fate fate) {
  constexpr std::string_view texts[] = {
      "are come by in another way",
      "need more racks than there are",
      "have a bill above the capital",
      "draw more power with idle cards",
      "are too slow or dear at the peak of their cards",
      "are too slow or dear by the bound of every plan",
      "have no legal plan",
      "have no plan that fits in memory",
      "were simulated and miss a limit",
      "were simulated, meet the goal and are beaten",
      "are answers",
      "are open",
  };
  static_assert(std::size(texts) == num_fates);
  return texts[static_cast<std::size_t>(fate)];
}

double DesignOutcome::of(Aim aim) const {
  return aim == Aim::cheapest ? usd : aim == Aim::fastest ? days : mwh;
}

bool keeps_to(const DesignOutcome& o, const DesignLimits& limits) {
  return within(o.days, limits.days) && within(o.usd, limits.usd) && within(o.watts, limits.watts);
}

Designer::Designer(const Machines& machines, const PartList& parts, const PeakRules& rules,
                   PlanFinder find, const std::atomic<bool>& stop)
    : machines_(machines),
      parts_(parts),
      find_(std::move(find)),
      stop_(stop),
      known_(machines.all.size()) {
  for (const Machine& machine : machines.all)
    peak_s_.push_back(peak_step_s(machine.scenario, rules));
  for (std::size_t m = 0; m < known_.size(); ++m) known_[m].at_least_s = peak_s_[m];
  for (const Offer& offer : machines.offers) {
    const Scenario& s = machines.all[offer.machine].scenario;
    const Bill bill = bill_of(s, parts_for(s, offer.terms, parts), {}, s.node.gpu.idle);
    const bool own = offer.terms.way.tenure == Tenure::own;
    statics_.push_back({bill.racks, own ? bill.capital().value : 0});
  }
}

const Machine& Designer::machine_of_offer(std::size_t offer) const {
  return machines_.all[machines_.offers[offer].machine];
}

DesignOutcome Designer::outcome_from(const Scenario& s, const Offer& offer,
                                     const StepFigures& figures, const Band& goodput,
                                     Watts gpu) const {
  DesignOutcome out;
  out.run = whole_run(s, figures, goodput);
  const auto gpus = static_cast<double>(s.gpus);
  const Band capital{s.cost.capex_low.value * gpus, s.cost.capex.value * gpus,
                     s.cost.capex_high.value * gpus};
  if (auto cash = cash_of(s, offer.terms, machines_.accounting, out.run, capital)) {
    out.cash = *std::move(cash);
    out.money = budget_money(out.cash, machines_.accounting);
  }
  out.days = out.run.days.value;
  out.usd = out.run.dollars ? out.money.value : infinite;
  out.mwh = out.run.megawatt_hours.value;
  out.watts = power_at_work(s, gpu).total().value * s.site.pue;
  return out;
}

DesignOutcome Designer::bound_of(const Scenario& s, const Offer& offer, double step_s) const {
  const topology::GpuSpec& gpu = s.node.gpu;
  const Watts idle = gpu.idle + context_power(gpu);
  const double tensor = std::min(1.0, peak_s_[offer.machine] / step_s);
  const StepFigures figures{.tokens = static_cast<double>(s.global_batch * s.batch.sequence),
                            .step_s = step_s,
                            .gpu = mean_power(gpu, {.tensor = tensor}),
                            .idle_gpu = idle};
  const double goodput = s.failures.on ? 1 : s.goal.goodput;
  return outcome_from(s, offer, figures, {goodput, goodput, goodput}, idle);
}

DesignOutcome Designer::bound(std::size_t offer, double step_s, const PriceFactors& factors) const {
  const Offer& of = machines_.offers[offer];
  return bound_of(priced(machines_.all[of.machine].scenario, of.terms, parts_, factors), of,
                  step_s);
}

DesignOutcome Designer::outcome(std::size_t offer, const StepReport& report,
                                const PriceFactors& factors) const {
  const Offer& of = machines_.offers[offer];
  const Scenario s = priced(report.scenario, of.terms, parts_, factors);
  StepReport with = report;
  with.scenario = s;
  return outcome_from(s, of, figures_of(with), goodput_band(report), report.power_per_gpu);
}

std::int64_t Designer::racks(std::size_t offer) const { return statics_[offer].racks; }

Bill Designer::bill(std::size_t offer, Watts gpu, const PriceFactors& factors) const {
  const Scenario& s = machine_of_offer(offer).scenario;
  return bill_of(s, parts_for(s, machines_.offers[offer].terms, parts_), factors, gpu);
}

std::optional<Fate> Designer::static_fate(std::size_t offer, const DesignLimits& limits) const {
  if (limits.only && machines_.offers[offer].terms.way != *limits.only) return Fate::way;
  if (!within(static_cast<double>(statics_[offer].racks), limits.racks)) return Fate::racks;
  if (!within(statics_[offer].capital, limits.capital)) return Fate::capital;
  if (limits.watts < DesignLimits::none && !within(bound(offer, 1).watts, limits.watts))
    return Fate::power;
  return std::nullopt;
}

/// Days, USD and MWh of the bound grow with the step: halving finds it, from the step that idle
/// cards allow.
double Designer::longest_step(std::size_t offer, Aim aim, const DesignLimits& limits, double value,
                              const PriceFactors& factors) const {
  constexpr int halvings = 50;
  constexpr double long_s = 1e12;  // tensor cores idle
  const Offer& of = machines_.offers[offer];
  constexpr double rounded_up = 1.001;  // a last contract's term that is not used up
  const Scenario s = priced(machines_.all[of.machine].scenario, of.terms, parts_, factors);
  const DesignOutcome idle = bound_of(s, of, long_s);
  double high = long_s * rounded_up *
                std::min({limits.days / idle.days, limits.usd / idle.usd, value / idle.of(aim)});
  if (!std::isfinite(high) || high == 0) return high;
  const auto good = [&](double step_s) {
    const DesignOutcome o = bound_of(s, of, step_s);
    return o.days <= limits.days && o.usd <= limits.usd && o.of(aim) <= value;
  };
  if (good(high)) return high;
  double low = 0;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (good(middle) ? low : high) = middle;
  }
  return high;
}

void Designer::ask(std::size_t machine, double above_s, SearchDepth how) {
  Known& known = known_[machine];
  FastestPlan plan = find_(machines_.all[machine], above_s, how);
  simulated_ += plan.simulated;
  searched_ += known.asked ? 0 : 1;
  known.asked = true;
  known.open = plan.open;
  known.legal = plan.legal;
  known.too_large = plan.too_large;
  if (plan.open) {
    known.at_least_s = std::max(known.at_least_s, plan.open_s);
    const bool faster =
        plan.report && (!known.so_far || plan.report->step_time < known.so_far->report->step_time);
    if (faster) known.so_far = std::move(plan);
    return;
  }
  known.at_least_s =
      plan.report ? seconds(plan.report->step_time) : std::max(known.at_least_s, plan.at_least_s);
  if (plan.report) known.plan = std::move(plan);
}

void Designer::scout(Aim aim, const DesignLimits& limits) {
  constexpr double guessed_share = 0.4;  // of the peak: the order of a glance, no answer
  constexpr std::size_t most_glances = 6;
  struct Guessed {
    double value;
    std::size_t offer;
  };
  std::vector<Guessed> queue;
  for (std::size_t i = 0; i < machines_.offers.size(); ++i) {
    if (static_fate(i, limits)) continue;
    const double at_least = known_[machines_.offers[i].machine].at_least_s;
    if (at_least == infinite) continue;
    const DesignOutcome guess = bound(i, at_least / guessed_share);
    if (keeps_to(guess, limits)) queue.push_back({guess.of(aim), i});
  }
  std::ranges::sort(queue, [](const Guessed& a, const Guessed& b) {
    return std::tie(a.value, a.offer) < std::tie(b.value, b.offer);
  });
  std::size_t glances = 0;
  for (const Guessed& one : queue) {
    const Known& known = known_[machines_.offers[one.offer].machine];
    if (known.asked) continue;
    const auto best = best_known(aim, limits, {});
    if (best && bound(one.offer, known.at_least_s).of(aim) >= best->outcome.of(aim)) continue;
    if (stop_ || glances++ == most_glances) return;
    ask(machines_.offers[one.offer].machine, infinite, SearchDepth::glance);
  }
}

std::optional<DesignChoice> Designer::best_known(Aim aim, const DesignLimits& limits,
                                                 const PriceFactors& factors) const {
  std::optional<DesignChoice> out;
  for (DesignChoice& one : known(limits, factors))
    if (!out || better(one.outcome, out->outcome, aim)) out = std::move(one);
  return out;
}

std::optional<DesignChoice> Designer::best(Aim aim, const DesignLimits& limits,
                                           const PriceFactors& factors) {
  struct Queued {
    double bound;
    std::size_t offer;
  };
  std::vector<Queued> queue;
  for (std::size_t i = 0; i < machines_.offers.size(); ++i) {
    if (static_fate(i, limits)) continue;
    const double at_least = known_[machines_.offers[i].machine].at_least_s;
    if (at_least == infinite) continue;
    queue.push_back({bound(i, at_least, factors).of(aim), i});
  }
  std::ranges::sort(queue, [](const Queued& a, const Queued& b) {
    return std::tie(a.bound, a.offer) < std::tie(b.bound, b.offer);
  });
  std::optional<DesignChoice> out = best_known(aim, limits, factors);
  open_ = 0;
  least_open_ = infinite;
  for (const Queued& one : queue) {
    const double value = out ? out->outcome.of(aim) : infinite;
    const std::size_t machine = machines_.offers[one.offer].machine;
    const double longest = longest_step(one.offer, aim, limits, value, factors);
    // Learned since, of its other offers as well.
    if (!within(known_[machine].at_least_s, longest)) continue;
    if (!known_[machine].plan && !stop_) ask(machine, longest, SearchDepth::whole);
    if (!known_[machine].plan) {
      if (!within(known_[machine].at_least_s, longest)) continue;
      ++open_;
      least_open_ =
          std::min(least_open_, bound(one.offer, known_[machine].at_least_s, factors).of(aim));
      if (known_[machine].any() == nullptr) continue;
    }
    const FastestPlan& plan = *known_[machine].any();
    const DesignOutcome outcome = this->outcome(one.offer, *plan.report, factors);
    if (!keeps_to(outcome, limits) || (out && !better(outcome, out->outcome, aim))) continue;
    out = DesignChoice{one.offer, *plan.report, outcome, plan.plan};
  }
  return out;
}

std::vector<DesignChoice> Designer::known(const DesignLimits& limits,
                                          const PriceFactors& factors) const {
  std::vector<DesignChoice> out;
  for (std::size_t i = 0; i < machines_.offers.size(); ++i) {
    const FastestPlan* plan = known_[machines_.offers[i].machine].any();
    if (plan == nullptr || static_fate(i, limits)) continue;
    const DesignOutcome outcome = this->outcome(i, *plan->report, factors);
    if (keeps_to(outcome, limits)) out.push_back({i, *plan->report, outcome, plan->plan});
  }
  return out;
}

Fate Designer::fate(std::size_t offer, const DesignLimits& limits,
                    const std::vector<std::size_t>& answers) const {
  if (std::ranges::find(answers, offer) != answers.end()) return Fate::answer;
  if (const auto found = static_fate(offer, limits)) return *found;
  const std::size_t machine = machines_.offers[offer].machine;
  const Known& known = known_[machine];
  if (known.plan)
    return keeps_to(outcome(offer, *known.plan->report), limits) ? Fate::beaten : Fate::missed;
  if (!known.asked) return stop_ && open_ > 0 ? Fate::open : Fate::peak;
  if (known.open && open_ > 0) return Fate::open;
  if (known.legal == 0) return Fate::no_plan;
  return known.at_least_s == infinite ? Fate::memory : Fate::plans;
}

}  // namespace stepcast::sim
