#include "sim/confidence/confidence.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/confidence/case.hpp"
#include "sim/confidence/memory_bar.hpp"
#include "sim/confidence/own_runs.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {
namespace {

/// Residuals that lean to one side leave the forecast out of a narrow interval round their median.
/// Their bar reaches to the forecast, which own runs alone may contradict.
ErrorBar bar_of(const Interval& interval, double level) {
  const bool holds = interval.own_runs == 0;
  const double low = std::exp(interval.low), high = std::exp(interval.high);
  return {.low = holds ? std::min(low, 1.0) : low,
          .high = holds ? std::max(high, 1.0) : high,
          .level = level,
          .kind = interval.kind,
          .sources = interval.sources,
          .assured = interval.assured,
          .widened = interval.widened,
          .own_runs = interval.own_runs};
}

/// Between and inside the sources that a case's bar rests on.
Spread spread_akin(const Case& forecast, const std::vector<Residual>& known) {
  std::vector<Residual> rows;
  for (const Residual* row : akin(forecast, known)) rows.push_back(*row);
  return spread_of(rows);
}

/// Of steps and collectives there are sources enough for every sensible level.
void check_level(const Interval& interval, const Scenario& scenario) {
  if (interval.assured) return;
  const auto k = static_cast<double>(interval.sources);
  throw InputError(scenario.origin,
                   "no error bar holds in " + percent(scenario.run.confidence) +
                       " of cases: " + std::to_string(interval.sources) +
                       " sources of measurements allow " + percent(k / (k + 1)) + " at most",
                   "lower run.confidence");
}

}  // namespace

std::string Confidence::folder() const { return session_.catalogue().directory() + "/confidence"; }

bool Confidence::has_evidence(std::vector<std::string>& warnings) {
  std::call_once(outline_read_, [&] {
    std::error_code error;
    if (!std::filesystem::exists(folder(), error)) return;
    evidence_ = read_outline(folder());
    order_.emplace(evidence_->pairs);
  });
  if (!evidence_) warnings.push_back("no error bars: there is no folder " + folder());
  return evidence_.has_value();
}

const std::vector<Residual>& Confidence::residuals(std::once_flag& read, EvidenceTable table) {
  std::call_once(read, [&] { *evidence_.*table = read_table(folder(), table); });
  return *evidence_.*table;
}

const Order* Confidence::order() {
  std::vector<std::string> ignored;
  has_evidence(ignored);
  return order_ ? &*order_ : nullptr;
}

std::vector<double> Confidence::own_residuals(const Scenario& scenario) {
  std::vector<double> out;
  for (const std::string& file : scenario.runs)
    for (const OwnRun& run : read_own_runs(file, scenario, session_.catalogue()))
      out.push_back(std::log(seconds(run.step) / seconds(session_.step(run.scenario).step_time)));
  return out;
}

std::optional<Interval> Confidence::interval(const std::vector<Residual>& known,
                                             const Case& forecast, double level) {
  const BasisKey key{&known, forecast.generation, forecast.reach, forecast.kind, level};
  const std::lock_guard lock(remembering_);
  auto basis = bases_.find(key);
  if (basis == bases_.end()) basis = bases_.emplace(key, basis_for(forecast, known, level)).first;
  if (!basis->second) return std::nullopt;
  return interval_on(*basis->second, forecast, {evidence_->shift, evidence_->unmeasured_gpu});
}

void Confidence::judge(StepReport& report) {
  if (!has_evidence(report.warnings)) return;
  const std::vector<Residual>& steps = residuals(steps_read_, &Evidence::steps);
  const double level = report.scenario.run.confidence;
  const Case forecast = case_of(report);
  if (const auto bar = interval(steps, forecast, level)) {
    check_level(*bar, report.scenario);
    const std::vector<double> own = own_residuals(report.scenario);
    report.step_bar =
        bar_of(own.empty() ? *bar : narrowed(*bar, spread_akin(forecast, steps), own), level);
    if (forecast.kind != dense_16_bit && lacks_kin(forecast, steps))
      report.warnings.emplace_back(
          "error bars rest on dense 16-bit runs; experts and low precision miss by more "
          "(docs/modern.md)");
  }
  const MemoryOdds& odds = session_.memory_odds();
  if (odds.known()) {
    const std::lock_guard lock(remembering_);
    auto& basis = bases_[{nullptr, "", "", forecast.kind, level}];
    if (!basis) {
      basis = IntervalBasis{.plain = memory_interval(odds, forecast.kind, level)};
      basis->plain.sources = odds.sources_of_peaks();
    }
    if (basis->plain.sources > 0) report.memory_bar = bar_of(basis->plain, level);
  }
  report.p_fits = odds.fits(report.scenario, report.memory.total());
  if (report.runner_up)
    report.runner_up->slower =
        order_->probability(seconds(report.step_time), seconds(report.runner_up->step_time));
}

void Confidence::judge(CollectiveReport& report) {
  if (!has_evidence(report.warnings)) return;
  const double level = report.scenario.run.confidence;
  const auto bar =
      interval(residuals(collectives_read_, &Evidence::collectives), case_of(report), level);
  if (!bar) return;
  check_level(*bar, report.scenario);
  report.bar = bar_of(*bar, level);
}

}  // namespace stepcast::sim
