#include "validate/published/score.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "validate/compare/score.hpp"

namespace stepcast::validate {
namespace {

using Results = std::vector<const PublishedResult*>;
using Error = double (PublishedResult::*)() const;

std::optional<ErrorScore> errors_of(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  std::vector<double> absolute;
  for (const double e : errors) absolute.push_back(std::abs(e));
  ErrorScore score;
  score.median = median(absolute);
  score.p90 = quantile(absolute, 0.9);
  score.mape =
      std::accumulate(absolute.begin(), absolute.end(), 0.0) / static_cast<double>(absolute.size());
  score.bias = median(errors);
  return score;
}

std::optional<ErrorScore> errors_of(const Results& rows, Error error) {
  std::vector<double> errors;
  for (const PublishedResult* row : rows) errors.push_back((row->*error)());
  return errors_of(errors);
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

/// Rows that differ in plan alone.
auto group_of(const PublishedResult& r) {
  return std::tuple(r.row.source_key(), r.row.model, r.gpu_kind, r.row.gpus.value_or(0),
                    r.row.seq_len.value_or(0), r.row.global_batch_seqs.value_or(0));
}

struct Ranking {
  std::optional<double> ours, baseline;
  std::size_t groups = 0;
};

/// The mean over groups of plans.
Ranking ranking_of(const Results& rows) {
  std::map<decltype(group_of(*rows.front())), Results> groups;
  for (const PublishedResult* row : rows) groups[group_of(*row)].push_back(row);
  Ranking out;
  double ours = 0, baseline = 0;
  std::size_t baselines = 0;
  for (const auto& [key, members] : groups) {
    if (members.size() < least_rows_of_group) continue;
    std::vector<double> measured, predicted, constant;
    for (const PublishedResult* row : members) {
      measured.push_back(row->measured_s);
      predicted.push_back(*row->predicted_s);
      constant.push_back(*row->baseline_s);
    }
    const auto correlation = spearman(measured, predicted);
    if (!correlation) continue;
    ours += *correlation;
    out.groups += 1;
    if (const auto other = spearman(measured, constant)) baseline += *other, baselines += 1;
  }
  if (out.groups > 0) out.ours = ours / static_cast<double>(out.groups);
  if (baselines > 0) out.baseline = baseline / static_cast<double>(baselines);
  return out;
}

/// Errors and ranking of a source's rows, or of all.
template <class Score>
void judge(Score& score, const Results& scored) {
  score.ours = errors_of(scored, &PublishedResult::error);
  score.baseline = errors_of(scored, &PublishedResult::baseline_error);
  const Ranking ranking = ranking_of(scored);
  score.rank_correlation = ranking.ours;
  score.baseline_rank_correlation = ranking.baseline;
  score.groups = ranking.groups;
}

SourceScore score_of_source(const std::string& key, const Results& rows) {
  SourceScore score;
  score.key = key;
  score.source = rows.front()->row.source;
  Results scored;
  for (const PublishedResult* row : rows) {
    score.rows += 1;
    score.in_scope += row->in_scope && row->row.scorable;
    if (row->scored()) scored.push_back(row);
  }
  score.predicted = scored.size();
  if (scored.empty()) return score;
  judge(score, scored);
  std::sort(scored.begin(), scored.end(), [](const auto* a, const auto* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  for (std::size_t i = 0; i < std::min<std::size_t>(3, scored.size()); ++i)
    score.worst.push_back(scored[i]->row.id);
  return score;
}

void add_memory(const std::vector<PublishedResult>& results, PublishedSummary& summary) {
  std::vector<double> errors;
  for (const PublishedResult& r : results) {
    if (!r.memory_gib || !r.row.scorable || !r.in_scope) continue;
    summary.too_large += *r.memory_gib > r.gpu_memory_gib;
    if (r.row.mem_gib_per_gpu && *r.row.mem_gib_per_gpu > 0)
      errors.push_back(*r.memory_gib / *r.row.mem_gib_per_gpu - 1.0);
  }
  summary.memory_rows = errors.size();
  summary.memory = errors_of(errors);
}

void add_sources(const std::vector<PublishedResult>& results, PublishedSummary& summary) {
  std::map<std::string, Results> sources;
  for (const PublishedResult& r : results) sources[r.row.source_key()].push_back(&r);
  double ours = 0, baseline = 0;
  for (const auto& [key, rows] : sources) {
    summary.by_source.push_back(score_of_source(key, rows));
    const SourceScore& score = summary.by_source.back();
    if (score.predicted < least_rows_of_source) continue;
    summary.sources += 1;
    ours += score.ours->median;
    baseline += score.baseline->median;
  }
  if (summary.sources == 0) return;
  summary.mean_source_median = ours / static_cast<double>(summary.sources);
  summary.baseline_mean_source_median = baseline / static_cast<double>(summary.sources);
}

/// Model FLOPs of a row by the baseline's formula.
double baseline_flops(const PublishedRow& row) {
  const auto seq = static_cast<double>(*row.seq_len);
  const double tokens = static_cast<double>(*row.global_batch_seqs) * seq;
  const double attention =
      12.0 * static_cast<double>(*row.layers) * static_cast<double>(*row.hidden) * seq;
  const double recompute = row.activation_checkpointing == "full" ? 4.0 / 3.0 : 1.0;
  return tokens * (6.0e9 * *row.params_b + attention) * recompute / static_cast<double>(*row.gpus);
}

}  // namespace

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

double quantile(std::vector<double> values, double q) {
  expects(!values.empty() && q >= 0.0 && q <= 1.0, "a share of some values");
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

void add_baseline(std::vector<PublishedResult>& results) {
  std::map<std::string, std::vector<double>> rates;  // by kind of GPU: log FLOP/s per GPU
  for (const PublishedResult& r : results)
    if (r.scored() && r.row.params_b)
      rates[r.gpu_kind].push_back(std::log(baseline_flops(r.row) / r.measured_s));
  for (PublishedResult& r : results)
    if (r.scored() && r.row.params_b)
      r.baseline_s = baseline_flops(r.row) / std::exp(median(rates[r.gpu_kind]));
    else if (r.scored())
      r.baseline_s = r.predicted_s;  // no count of parameters: neither better nor worse than ours
}

PublishedSummary summary_of(const std::vector<PublishedResult>& results) {
  PublishedSummary summary;
  Results scored;
  std::map<std::string, std::size_t> refusals;
  for (const PublishedResult& r : results) {
    summary.rows += 1;
    summary.scorable += r.row.scorable;
    summary.in_scope += r.in_scope && r.row.scorable;
    if (r.scored()) scored.push_back(&r);
    if (r.row.scorable && !r.refused.empty()) refusals[r.refused] += 1;
  }
  summary.predicted = scored.size();
  summary.refusals.assign(refusals.begin(), refusals.end());
  std::stable_sort(summary.refusals.begin(), summary.refusals.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  add_memory(results, summary);
  add_sources(results, summary);
  if (scored.empty()) return summary;
  judge(summary, scored);
  return summary;
}

}  // namespace stepcast::validate
