#include "validate/published/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

constexpr double apart = 1.05;
constexpr std::size_t first_choices = 3;
/// Pairs are counted by how far apart they are predicted, ln(slower / faster), from these on.
constexpr double gaps[] = {0, 0.02, 0.05, 0.1, 0.2, 0.5};

struct Plan {
  std::string id;  // of its first row
  double measured = 0, predicted = 0;
};

/// Rows that differ in plan alone.
auto group_of(const PublishedResult& r) {
  const PublishedRow& row = r.row;
  return std::tuple(row.source_key(), row.layers ? std::string() : row.model, row.layers,
                    row.hidden, row.heads, row.kv_heads, row.ffn_hidden, row.vocab, r.gpu_kind,
                    row.gpus, row.seq_len, row.global_batch_seqs);
}

/// Rows that repeat each other within a group.
auto plan_of(const PublishedRow& row) {
  return std::tuple(row.dp_mode, row.tp, row.sp, row.pp, row.virtual_pp, row.cp, row.ep,
                    row.micro_batch_seqs, row.grad_accum, row.activation_checkpointing,
                    row.precision, row.attention_kernel, row.framework);
}

/// Ranks from 1, ties at their mean.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i)
      ranks[order[i]] = 1.0 + 0.5 * static_cast<double>(first + last);
    first = last + 1;
  }
  return ranks;
}

using Rows = std::vector<const PublishedResult*>;

std::vector<Rows> groups_of(const Rows& scored) {
  std::map<decltype(group_of(*scored.front())), Rows> groups;
  for (const PublishedResult* row : scored) groups[group_of(*row)].push_back(row);
  std::vector<Rows> out;
  for (auto& [key, rows] : groups) out.push_back(std::move(rows));
  return out;
}

std::vector<Plan> plans_of(const Rows& rows,
                           const std::function<double(const PublishedResult&)>& predicted) {
  std::map<decltype(plan_of(rows.front()->row)), Rows> repeats;
  for (const PublishedResult* row : rows) repeats[plan_of(row->row)].push_back(row);
  std::vector<Plan> plans;
  for (const auto& [key, same] : repeats) {
    std::vector<double> measured, foretold;
    for (const PublishedResult* row : same) {
      measured.push_back(row->measured_s);
      foretold.push_back(predicted(*row));
    }
    plans.push_back({same.front()->row.id, median(measured), median(foretold)});
  }
  std::stable_sort(plans.begin(), plans.end(),
                   [](const Plan& a, const Plan& b) { return a.predicted < b.predicted; });
  return plans;
}

double correlation_of(const std::vector<Plan>& plans) {
  std::vector<double> measured, predicted;
  for (const Plan& plan : plans) {
    measured.push_back(plan.measured);
    predicted.push_back(plan.predicted);
  }
  return spearman(measured, predicted).value_or(0.0);
}

/// Sums over groups; made means at the end.
struct Sums {
  double correlation = 0, regret = 0, regret_of_three = 0, in_order = 0, pairs = 0;
};

void add_pairs(const std::vector<Plan>& plans, Sums& sums) {
  for (const Plan& a : plans)
    for (const Plan& b : plans) {
      if (!(b.measured > apart * a.measured)) continue;
      sums.pairs += 1;
      sums.in_order += a.predicted < b.predicted ? 1.0 : a.predicted == b.predicted ? 0.5 : 0.0;
    }
}

/// The least measured time of the first `choices`, which are sorted by prediction; where the last
/// of them is one of several that are predicted alike, the mean over all ways to choose.
double best_of_first(const std::vector<Plan>& plans, std::size_t choices) {
  if (plans.size() <= choices) choices = plans.size();
  const double last = plans[choices - 1].predicted;
  double sure = std::numeric_limits<double>::infinity();
  std::vector<double> alike;  // those of which some are chosen
  std::size_t open = choices;
  for (const Plan& plan : plans)
    if (plan.predicted < last)
      sure = std::min(sure, plan.measured), --open;
    else if (plan.predicted == last)
      alike.push_back(plan.measured);
  std::sort(alike.begin(), alike.end());
  // The i-th of n is the least of k chosen with probability k / (n - i) once none before it was.
  double mean = 0, left = 1;
  for (std::size_t i = 0; i < alike.size() && left > 0; ++i) {
    const double rest = static_cast<double>(alike.size() - i);
    const double taken = std::min(1.0, static_cast<double>(open) / rest);
    mean += left * taken * std::min(sure, alike[i]);
    left *= 1.0 - taken;
  }
  return mean;
}

/// `plans`: the one that is predicted fastest first.
void add_regret(const std::vector<Plan>& plans, Sums& sums, Ranking& out) {
  const auto less = [](const Plan& a, const Plan& b) { return a.measured < b.measured; };
  const double least = std::min_element(plans.begin(), plans.end(), less)->measured;
  double chosen = 0;
  std::size_t alike = 0;
  while (alike < plans.size() && plans[alike].predicted == plans[0].predicted)
    chosen += plans[alike++].measured;
  const double regret = chosen / static_cast<double>(alike) / least - 1.0;
  sums.regret += regret;
  if (out.worst.empty() || regret > out.worst_regret)
    out.worst_regret = regret, out.worst = plans[0].id;
  sums.regret_of_three += best_of_first(plans, first_choices) / least - 1.0;
}

}  // namespace

Ranking ranking_of(const std::vector<const PublishedResult*>& scored,
                   const std::function<double(const PublishedResult&)>& predicted) {
  Ranking out;
  Sums sums;
  for (const Rows& rows : groups_of(scored)) {
    const std::vector<Plan> plans = plans_of(rows, predicted);
    const bool differ = std::ranges::any_of(
        plans, [&](const Plan& plan) { return plan.measured != plans.front().measured; });
    if (plans.size() < least_plans_of_group || !differ) continue;
    out.groups += 1;
    out.plans += plans.size();
    sums.correlation += correlation_of(plans);
    add_regret(plans, sums, out);
    add_pairs(plans, sums);
  }
  if (out.groups == 0) return out;
  const auto groups_taken = static_cast<double>(out.groups);
  out.correlation = sums.correlation / groups_taken;
  out.regret = sums.regret / groups_taken;
  out.regret_of_three = sums.regret_of_three / groups_taken;
  if (sums.pairs > 0) out.pairs_in_order = sums.in_order / sums.pairs;
  return out;
}

std::vector<sim::PairCount> pair_counts(const std::vector<const PublishedResult*>& scored) {
  std::map<std::pair<std::string, double>, sim::PairCount> counts;
  for (const Rows& rows : groups_of(scored)) {
    const auto plans = plans_of(rows, [](const PublishedResult& r) { return *r.predicted_s; });
    for (std::size_t i = 0; i < plans.size(); ++i)
      for (std::size_t j = i + 1; j < plans.size(); ++j) {
        const Plan &faster = plans[i], &slower = plans[j];  // as predicted
        if (faster.measured == slower.measured) continue;
        const double gap = std::log(slower.predicted / faster.predicted);
        const double from = *(std::upper_bound(std::begin(gaps), std::end(gaps), gap) - 1);
        sim::PairCount& count = counts[{rows.front()->row.source_key(), from}];
        count.pairs += 1;
        count.in_order += gap == 0 ? 0.5 : faster.measured < slower.measured ? 1.0 : 0.0;
      }
  }
  std::vector<sim::PairCount> out;
  for (auto& [key, count] : counts) {
    std::tie(count.source, count.gap) = key;
    out.push_back(count);
  }
  return out;
}

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  expects(a.size() == b.size(), "pairs of values");
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = 0.5 * static_cast<double>(a.size() + 1);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (!(xx > 0.0) || !(yy > 0.0)) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

}  // namespace stepcast::validate
