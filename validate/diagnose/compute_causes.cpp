// Kernels: those of one rank beside its peers', and all ranks' beside the forecast.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/arithmetic.hpp"
#include "validate/diagnose/attribution.hpp"

namespace stepcast::validate {
namespace {

std::string times_text(double ratio) { return fmt::format("{:.2f} times", ratio); }

/// Of all ranks, each beside what it should be.
std::vector<double> slownesses(const Inquest& run, bool (*counts)(TraceKind)) {
  std::vector<double> out;
  for (std::size_t r = 0; r < run.measured.size(); ++r)
    out.push_back(slowness_of(run.measured[r], run.should(r), counts).value_or(1));
  return out;
}

/// How far ranks that do the same lie from each other: 1.48 x the median distance from the median
/// is a normal distribution's sigma.
double spread(const std::vector<double>& values, double middle) {
  std::vector<double> away;
  for (const double value : values) away.push_back(std::abs(value - middle));
  return 1.48 * median(std::move(away));
}

/// Kernels of collectives that wait for the slow rank hold SMs beside their peers' kernels, which
/// therefore take longer too: no measure of what is usual.
bool peers_are_slowed(const Inquest& run) {
  constexpr double much_longer = 1.3;
  std::vector<double> all;
  for (const RankParts& rank : run.measured) all.push_back(rank.communicating);
  const double mine = run.mine().communicating;
  return median(std::move(all)) > much_longer * mine && run.mine().under_compute > 0.1;
}

/// Calls over expected ones of the kinds that a layer is made of.
double layer_calls(const RankParts& m, const RankParts& e) {
  double measured = 0, expected = 0;
  for (const TraceKind kind : {TraceKind::gemm, TraceKind::attention_backward}) {
    measured += calls_of(m, kind).calls;
    expected += calls_of(e, kind).calls;
  }
  return expected > 0 ? measured / expected : 1;
}

/// Some stages have more layers than expected, so others have fewer.
bool find_imbalance(Inquest& run) {
  double most = 0, least = 1e300;
  for (std::size_t r = 0; r < run.measured.size(); ++r) {
    const double calls = layer_calls(run.measured[r], run.should(r));
    most = std::max(most, calls);
    least = std::min(least, calls);
  }
  const double mine = layer_calls(run.mine(), run.should());
  constexpr double uneven = 0.03;
  if (most < 1 + uneven || least > 1 - uneven || mine < 1 + uneven) return false;
  Cause cause{CauseKind::stage_imbalance};
  for (auto& [kind, seconds] : run.left.more) cause.seconds += taken(seconds);
  for (auto& [kind, seconds] : run.left.slower) cause.seconds += taken(seconds);
  cause.seconds += taken(run.left.at_once);
  for (auto& [kind, seconds] : run.left.moves) cause.seconds += taken(seconds);
  cause.seconds += taken(run.left.gaps) + taken(run.left.boundary) + taken(run.left.pauses);
  cause.surety = Surety::sure;
  for (std::size_t r = 0; r < run.measured.size(); ++r)
    if (layer_calls(run.measured[r], run.should(r)) > 1 + uneven)
      cause.ranks.push_back(run.measured[r].rank);
  cause.evidence = fmt::format(
      "{} the products and attentions of an even split on the fullest stage, {} on the emptiest",
      times_text(most), times_text(least));
  run.causes.push_back(std::move(cause));
  return true;
}

/// What comes with a pass that runs again: its transfers, and the gaps between its launches.
void take_repeated(Inquest& run, Cause& cause) {
  constexpr double again = 1.2;  // times the calls
  for (auto& [kind, seconds] : run.left.moves) {
    const auto measured = run.mine().exchanges.find(kind),
               expected = run.should().exchanges.find(kind);
    if (measured == run.mine().exchanges.end() || expected == run.should().exchanges.end())
      continue;
    if (measured->second.calls > again * expected->second.calls) cause.seconds += taken(seconds);
  }
  double calls = 0, more = 0;
  for (const auto& [kind, tally] : run.mine().kernels) {
    calls += tally.calls;
    more += tally.calls - calls_of(run.should(), kind).calls;
  }
  if (calls <= 0 || more <= 0) return;
  const double gaps = std::clamp(run.left.gaps, 0.0, more / calls * run.mine().gaps);
  cause.seconds += gaps;
  run.left.gaps -= gaps;
}

bool find_recompute(Inquest& run) {
  const CallTally forward = calls_of(run.mine(), TraceKind::attention_forward),
                  expected = calls_of(run.should(), TraceKind::attention_forward);
  if (expected.calls == 0 || forward.calls < 1.5 * expected.calls) return false;
  Cause cause{CauseKind::recompute};
  // Kernels of the forward pass are shorter than the mean of both passes, which therefore falls.
  for (auto* amounts : {&run.left.more, &run.left.slower})
    for (auto& [kind, seconds] : *amounts)
      if (kind != TraceKind::optimizer) cause.seconds += taken(seconds);
  take_repeated(run, cause);
  cause.surety = Surety::sure;
  cause.evidence = fmt::format("{:.0f} forward attentions a step where {:.0f} are expected",
                               forward.calls, expected.calls);
  run.causes.push_back(std::move(cause));
  return true;
}

void find_copies(Inquest& run) {
  double& more = run.left.more[TraceKind::copy];
  if (more < run.noise) return;
  const CallTally measured = calls_of(run.mine(), TraceKind::copy),
                  expected = calls_of(run.should(), TraceKind::copy);
  run.causes.push_back(
      {CauseKind::copies, taken(more),
       fmt::format("{:.0f} copies of {} a step where {:.0f} of {} are expected", measured.calls,
                   milliseconds(measured.seconds), expected.calls, milliseconds(expected.seconds)),
       Surety::likely});
}

void find_unfused(Inquest& run) {
  constexpr double more_calls = 1.1;
  double more = 0, calls = 0, expected = 0;
  for (const auto& [kind, seconds] : run.left.more) {
    if (!is_memory_bound(kind) || kind == TraceKind::copy) continue;
    more += seconds;
    calls += calls_of(run.mine(), kind).calls;
    expected += calls_of(run.should(), kind).calls;
  }
  if (more < run.noise || calls < more_calls * expected) return;
  Cause cause{CauseKind::unfused, 0,
              fmt::format("{:.0f} small kernels a step where {:.0f} are expected", calls, expected),
              run.beside_forecast(more)};
  // Where others are among them, the mean of a kind says nothing of the expected ones.
  for (auto& [kind, seconds] : run.left.more) {
    if (!is_memory_bound(kind) || kind == TraceKind::copy) continue;
    const double measured = calls_of(run.mine(), kind).calls,
                 usual = calls_of(run.should(), kind).calls;
    cause.seconds += taken(seconds);
    if (measured > more_calls * usual) cause.seconds += taken(run.left.slower[kind]);
  }
  run.causes.push_back(std::move(cause));
}

/// The slower kernels of the kinds that `counts`, as one cause.
void take_slower(Inquest& run, CauseKind kind, bool (*counts)(TraceKind), std::string evidence) {
  double seconds = 0;
  for (auto& [one, amount] : run.left.slower)
    if (counts(one)) seconds += taken(amount);
  run.causes.push_back({kind, seconds, std::move(evidence), run.beside_forecast(seconds)});
}

bool is_computed(TraceKind kind) { return is_product(kind) || is_attention(kind); }

}  // namespace

void find_slow_rank(Inquest& run) {
  constexpr std::size_t fewest = 3;  // ranks that tell which one is not like the others
  constexpr double least = 0.03, sigmas = 5;
  if (run.measured.size() < fewest) return;
  const std::vector<double> all = slownesses(run, nullptr);
  const double middle = median(all), mine = all[run.place];
  if (mine - middle < std::max(least, sigmas * spread(all, middle))) return;
  const std::vector<double> others = slownesses(run, is_memory_bound);
  const bool experts = run.expected.report.scenario.model.experts.count > 0;
  const bool all_kinds = others[run.place] / median(others) - 1 > 0.3 * (mine / middle - 1);
  Cause cause{experts && !all_kinds ? CauseKind::expert_imbalance : CauseKind::slow_rank};
  double slower = 0;
  for (const auto& [kind, amount] : run.left.slower) slower += amount;
  const double usual = peers_are_slowed(run) ? std::min(1.0, middle) : middle;
  const double share = mine > 1 ? std::min(1.0, (mine - usual) / (mine - 1)) : 1.0;
  cause.seconds = share * slower;
  for (auto& [kind, amount] : run.left.slower) amount *= 1 - share;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] - middle > 0.5 * (mine - middle)) cause.ranks.push_back(run.measured[r].rank);
  cause.surety = Surety::sure;
  cause.evidence = fmt::format(
      "the same kernels take {} as long on rank {} as usual on {} ranks; it waits {} a step, the "
      "median rank {}",
      times_text(mine / usual), run.mine().rank, run.measured.size(), milliseconds(run.mine().wait),
      milliseconds([&] {
        std::vector<double> waits;
        for (const RankParts& rank : run.measured) waits.push_back(rank.wait);
        return median(std::move(waits));
      }()));
  run.causes.push_back(std::move(cause));
}

void find_more_kernels(Inquest& run) {
  if (find_imbalance(run) || find_recompute(run)) return;
  find_copies(run);
  find_unfused(run);
}

void find_slow_kernels(Inquest& run) {
  // Of many ranks the slowest is beyond the noise of one: what is slow on all is so on most.
  const std::vector<double> all = slownesses(run, nullptr);
  if (all.size() > 2 && median(all) < 1 + noise_share) return;
  const auto of = [&](bool (*counts)(TraceKind)) {
    return slowness_of(run.mine(), run.should(), counts).value_or(1);
  };
  const double products = of(is_product), attention = of(is_attention),
               memory = of(is_memory_bound);
  constexpr double fp32 = 3, another_kernel = 1.5, slower = 1.04;
  const auto than = [&run](double ratio, const char* what) {
    return fmt::format("{} take {} as long as expected on {}", what, times_text(ratio),
                       run.measured.size() > 1 ? "every rank" : "this rank");
  };
  if (products > fp32)
    take_slower(run, CauseKind::fp32_products, is_product, than(products, "products"));
  if (attention > another_kernel && attention > 1.3 * products)
    take_slower(run, CauseKind::slow_attention, is_attention, than(attention, "attentions"));
  const double computed = of(is_computed);
  if (computed > slower && memory < 1 + 0.4 * (computed - 1))
    take_slower(run, CauseKind::clocks, is_computed,
                than(computed, "products and attention") +
                    fmt::format(", kernels bound by memory {}", times_text(memory)));
  double left = 0;
  for (const auto& [kind, amount] : run.left.slower) left += amount;
  if (left < run.noise) return;
  const auto worst =
      std::ranges::max_element(run.left.slower, {}, [](const auto& one) { return one.second; });
  const std::string kind(name_of(worst->first));
  const double ratio = calls_of(run.mine(), worst->first).each() /
                       std::max(1e-12, calls_of(run.should(), worst->first).each());
  take_slower(
      run, CauseKind::slow_kernels, [](TraceKind) { return true; },
      than(ratio, ("kernels of kind " + kind).c_str()));
}

}  // namespace stepcast::validate
