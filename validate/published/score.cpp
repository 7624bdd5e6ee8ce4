#include "validate/published/score.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "validate/compare/score.hpp"

namespace stepcast::validate {
namespace {

using Results = std::vector<const PublishedResult*>;
using Error = double (PublishedResult::*)() const;

std::optional<ErrorScore> errors_of(const std::vector<double>& errors) {
  return errors.empty() ? std::nullopt : std::optional(error_score(errors));
}

std::optional<ErrorScore> errors_of(const Results& rows, Error error) {
  std::vector<double> errors;
  for (const PublishedResult* row : rows) errors.push_back((row->*error)());
  return errors_of(errors);
}

Ranking ranking_of_ours(const Results& rows) {
  return ranking_of(rows, [](const PublishedResult& r) { return *r.predicted_s; });
}
Ranking ranking_of_baseline(const Results& rows) {
  return ranking_of(rows, [](const PublishedResult& r) { return *r.baseline_s; });
}

/// Errors and ranking of a source's rows, or of all.
template <class Score>
void judge(Score& score, const Results& scored) {
  score.ours = errors_of(scored, &PublishedResult::error);
  score.baseline = errors_of(scored, &PublishedResult::baseline_error);
  score.ranking = ranking_of_ours(scored);
}

SourceScore score_of_source(const std::string& key, const Results& rows) {
  SourceScore score;
  score.key = key;
  score.source = rows.front()->row.source;
  Results scored;
  for (const PublishedResult* row : rows) {
    score.rows += 1;
    score.in_scope += row->in_scope && row->row.scorable;
    score.own_kernels += row->scored() && row->own_kernels;
    if (row->scored()) scored.push_back(row);
  }
  score.predicted = scored.size();
  if (scored.empty()) return score;
  judge(score, scored);
  score.whole_runs = std::all_of(scored.begin(), scored.end(),
                                 [](const PublishedResult* r) { return r->whole_run(); });
  std::sort(scored.begin(), scored.end(), [](const auto* a, const auto* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  for (std::size_t i = 0; i < std::min<std::size_t>(3, scored.size()); ++i)
    score.worst.push_back(scored[i]->row.id);
  return score;
}

/// Of rows whose peak is stated and whose plan can be modelled.
void add_memory_by_figure(const std::vector<PublishedResult>& results, PublishedSummary& summary) {
  std::map<std::pair<bool, std::string>, std::vector<double>> errors;  // those beside come first
  for (const PublishedResult& r : results)
    if (r.memory_gib && r.in_scope && !r.row.ran_out_of_memory && r.row.mem_gib_per_gpu &&
        *r.row.mem_gib_per_gpu > 0)
      errors[{r.row.scorable, r.row.mem_figure}].push_back(r.memory_error());
  for (const auto& [key, of_figure] : errors)
    summary.memory_by_figure.push_back(
        {key.second, key.first, of_figure.size(), *errors_of(of_figure)});
}

void add_memory(const std::vector<PublishedResult>& results, PublishedSummary& summary) {
  std::vector<double> errors;
  for (const PublishedResult& r : results) {
    if (!r.memory_gib || !r.in_scope) continue;
    if (r.row.ran_out_of_memory) {
      summary.ran_out += 1;
      summary.foreseen += r.needed_gib > r.gpu_memory_gib;
      continue;
    }
    if (!r.row.scorable) continue;
    summary.ran += 1;
    summary.too_large += r.needed_gib > r.gpu_memory_gib;
    if (r.row.mem_gib_per_gpu && *r.row.mem_gib_per_gpu > 0) errors.push_back(r.memory_error());
  }
  summary.memory_rows = errors.size();
  summary.memory = errors_of(errors);
  add_memory_by_figure(results, summary);
}

void add_sources(const std::vector<PublishedResult>& results, PublishedSummary& summary) {
  std::map<std::string, Results> sources;
  for (const PublishedResult& r : results) sources[r.row.source_key()].push_back(&r);
  double ours = 0, baseline = 0, unmarked = 0, baseline_unmarked = 0;
  for (const auto& [key, rows] : sources) {
    summary.by_source.push_back(score_of_source(key, rows));
    const SourceScore& score = summary.by_source.back();
    if (score.predicted < least_rows_of_source) continue;
    summary.sources += 1;
    ours += score.ours->median;
    baseline += score.baseline->median;
    if (score.whole_runs) continue;
    summary.unmarked += 1;
    unmarked += score.ours->median;
    baseline_unmarked += score.baseline->median;
  }
  if (summary.unmarked > 0) {
    summary.mean_unmarked_median = unmarked / static_cast<double>(summary.unmarked);
    summary.baseline_mean_unmarked_median =
        baseline_unmarked / static_cast<double>(summary.unmarked);
  }
  if (summary.sources == 0) return;
  summary.mean_source_median = ours / static_cast<double>(summary.sources);
  summary.baseline_mean_source_median = baseline / static_cast<double>(summary.sources);
}

/// Model FLOPs of a row by the baseline's formula.
double baseline_flops(const PublishedResult& r) {
  const PublishedRow& row = r.row;
  const auto seq = static_cast<double>(*row.seq_len);
  const double tokens = static_cast<double>(*row.global_batch_seqs) * seq;
  const double attention =
      12.0 * static_cast<double>(*row.layers) * static_cast<double>(*row.hidden) * seq;
  const double recompute = row.activation_checkpointing == "full" ? 4.0 / 3.0 : 1.0;
  return tokens * (6.0 * r.parameters + attention) * recompute / static_cast<double>(*row.gpus);
}

}  // namespace

ErrorScore error_score(const std::vector<double>& errors) {
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
    if (r.scored()) rates[r.gpu_kind].push_back(std::log(baseline_flops(r) / r.measured_s));
  for (PublishedResult& r : results)
    if (r.scored()) r.baseline_s = baseline_flops(r) / std::exp(median(rates[r.gpu_kind]));
}

std::vector<DegreeScore> degree_scores(const std::vector<PublishedResult>& results) {
  using Degree = std::optional<std::int64_t> PublishedRow::*;
  constexpr std::pair<const char*, Degree> knobs[] = {
      {"tensor", &PublishedRow::tp},
      {"pipeline", &PublishedRow::pp},
      {"micro-batch", &PublishedRow::micro_batch_seqs},
      {"GPUs", &PublishedRow::gpus}};
  std::vector<DegreeScore> out;
  for (const auto& [knob, degree] : knobs) {
    std::map<std::int64_t, Results> by_degree;
    for (const PublishedResult& r : results)
      if (r.scored() && r.row.*degree) by_degree[*(r.row.*degree)].push_back(&r);
    for (const auto& [value, rows] : by_degree)
      out.push_back({knob, static_cast<std::size_t>(value), rows.size(),
                     *errors_of(rows, &PublishedResult::error)});
  }
  return out;
}

std::vector<KindScore> kind_scores(const std::vector<PublishedResult>& results) {
  std::map<std::string, Results> kinds;
  for (const PublishedResult& r : results)
    if (r.in_scope && r.row.scorable) kinds[r.kind].push_back(&r);
  std::vector<KindScore> out;
  for (const auto& [kind, rows] : kinds) {
    KindScore& score = out.emplace_back(KindScore{kind, rows.size(), 0, {}, {}});
    Results scored;
    for (const PublishedResult* r : rows)
      if (r->scored()) scored.push_back(r);
    score.predicted = scored.size();
    score.ours = errors_of(scored, &PublishedResult::error);
    score.baseline = errors_of(scored, &PublishedResult::baseline_error);
  }
  return out;
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
  summary.baseline_ranking = ranking_of_baseline(scored);
  const auto open = std::stable_partition(scored.begin(), scored.end(),
                                          [](const auto* r) { return r->virtual_open; });
  const Results open_rows(scored.begin(), open), others(open, scored.end());
  summary.virtual_open_rows = open_rows.size();
  summary.virtual_open = errors_of(open_rows, &PublishedResult::error);
  summary.others = errors_of(others, &PublishedResult::error);
  return summary;
}

}  // namespace stepcast::validate
