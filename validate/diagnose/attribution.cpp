#include "validate/diagnose/attribution.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

/// Who waits less than it should is waited for. Without waiting, the rank with the longest step.
std::size_t bounding_rank(const std::vector<RankParts>& measured, const ExpectedStep& expected) {
  std::size_t out = 0;
  double least = 1e300;
  for (std::size_t r = 0; r < measured.size(); ++r) {
    const double wait = measured[r].wait - expected.of(measured[r].rank).wait;
    if (wait < least) least = wait, out = r;
  }
  return out;
}

bool met_peers(const std::vector<RankParts>& measured) {
  return std::ranges::any_of(
      measured, [](const RankParts& r) { return r.wait > 0 || !r.waited_for.empty(); });
}

RankExcess excess_of(const RankParts& m, const RankParts& e) {
  const Ledger ledger = ledger_of(m, e);
  return {m.rank,
          sum_of(ledger.more) + ledger.at_once,
          sum_of(ledger.slower),
          m.transfer - e.transfer,
          ledger.wait,
          ledger.boundary,
          ledger.pauses,
          ledger.gaps};
}

/// What a pipeline's bubble grows by: with m micro-batches on p stages it is (p - 1) / m of what
/// the stages take, so that causes on all ranks lengthen it in proportion.
void charge_bubble(Inquest& run) {
  const sim::Scenario& s = run.expected.report.scenario;
  const auto stages = static_cast<double>(s.plan.pipeline);
  const double share = (stages - 1) / static_cast<double>(s.batch.micro_batches);
  double common = 0;
  for (const Cause& cause : run.causes)
    if (cause.ranks.empty()) common += cause.seconds;
  const double bubble = std::min(run.left.wait, share * common);
  if (bubble <= 0) return;
  for (Cause& cause : run.causes)
    if (cause.ranks.empty()) cause.seconds *= 1 + bubble / common;
  run.left.wait -= bubble;
}

/// A slow rank first eats the slack of its idle time: what it waits less is not the step's. Causes
/// share that in proportion; the rest of the ledger stays unexplained.
void charge_slack(Inquest& run) {
  double claimed = 0;
  for (const Cause& cause : run.causes) claimed += cause.seconds;
  const Ledger& left = run.left;
  const double idle =
      left.wait + left.boundary + left.pauses + left.gaps + left.rest + sum_of(left.moves);
  if (idle >= 0 || claimed <= 0) return;
  const double slack = std::min(-idle, claimed);
  for (Cause& cause : run.causes) cause.seconds *= 1 - slack / claimed;
}

void drop_noise(Inquest& run) {
  std::erase_if(run.causes, [&](const Cause& cause) { return cause.seconds < run.noise; });
  std::ranges::stable_sort(run.causes, std::greater(), &Cause::seconds);
}

}  // namespace

Surety Inquest::beside_forecast(double seconds) const {
  const auto& bar = expected.report.step_bar;
  const double band = bar ? (bar->high - 1) * should().step : 0.2 * should().step;
  return seconds > band ? Surety::likely : Surety::possible;
}

Attribution attribute(const std::vector<RankParts>& measured, const ExpectedStep& expected,
                      const UnderVariable& under) {
  expects(!measured.empty(), "a measured rank");
  Inquest run{measured, expected, under};
  run.place = bounding_rank(measured, expected);
  run.waiting_known = met_peers(measured);
  run.left = ledger_of(run.mine(), run.should());
  run.noise = noise_share * run.should().step;
  Attribution out{run.mine().step, run.should().step, run.place, run.waiting_known, {}, {}};
  for (const RankParts& rank : measured)
    out.ranks.push_back(excess_of(rank, expected.of(rank.rank)));
  for (const auto find :
       {find_launch_blocking, find_slow_rank, find_more_kernels, find_slow_network, find_host,
        find_slow_kernels, charge_bubble, find_waiting})
    find(run);
  charge_slack(run);
  drop_noise(run);
  double claimed = 0;
  for (const Cause& cause : run.causes) claimed += cause.seconds;
  out.causes = std::move(run.causes);
  out.causes.push_back({CauseKind::not_explained, out.measured - out.expected - claimed});
  return out;
}

}  // namespace stepcast::validate
