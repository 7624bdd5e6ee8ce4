#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "validate/published/ran.hpp"
#include "validate/published/report.hpp"

namespace stepcast::validate {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json score_json(const std::optional<ErrorScore>& score) {
  if (!score) return nullptr;
  return {
      {"median", score->median}, {"mean", score->mape}, {"p90", score->p90}, {"bias", score->bias}};
}

Json memory_json(const PublishedSummary& s) {
  Json out = Json::array();
  for (const MemoryScore& score : s.memory_by_figure)
    out.push_back({{"figure", score.figure},
                   {"scored", score.scored},
                   {"rows", score.rows},
                   {"error", score_json(score.errors)}});
  return out;
}

Json ranking_json(const Ranking& r) {
  if (r.groups == 0) return nullptr;
  return {{"groups", r.groups},
          {"plans", r.plans},
          {"correlation", number(r.correlation)},
          {"pairs_in_order", number(r.pairs_in_order)},
          {"regret_mean", r.regret},
          {"regret_worst", r.worst_regret},
          {"regret_worst_row", r.worst},
          {"regret_of_three_mean", r.regret_of_three}};
}

Json ran_json(const RanSummary& s) {
  Json reasons = Json::array(), groups = Json::array();
  for (const auto& [reason, rows] : s.reasons) reasons.push_back({{"why", reason}, {"rows", rows}});
  for (const RanGroup& g : s.groups)
    groups.push_back({{"list", g.list},
                      {"name", g.name},
                      {"rows", g.rows},
                      {"entered", g.entered},
                      {"refused_ran", g.refused_ran},
                      {"died", g.died},
                      {"foreseen_died", g.foreseen_died},
                      {"peaks", g.peaks},
                      {"memory_error", score_json(g.memory)},
                      {"steps", g.steps},
                      {"step_error", score_json(g.step)}});
  return {
      {"rows", s.rows},
      {"ran", s.ran},
      {"refused_ran", s.refused_ran},
      {"died", s.died},
      {"foreseen_died", s.foreseen_died},
      {"not_entered", s.not_entered},
      {"aside", s.aside},
      {"allocated_median", number(s.memory_median("allocated"))},
      {"reserved_median", number(s.memory_median("reserved"))},
      {"smi_median", number(s.memory_median("process"))},
      {"step_median", s.step ? Json(s.step->median) : Json(nullptr)},
      {"steps", s.steps},
      {"chosen_tokens", {{"peaks", s.chosen_peaks}, {"error", score_json(s.chosen)}}},
      {"open_base",
       {{"peaks", s.open_peaks}, {"as_gib", score_json(s.as_gib)}, {"as_gb", score_json(s.as_gb)}}},
      {"by", groups},
      {"reasons", reasons}};
}

/// What a row of what_ran.csv has beside the others.
void add_ran(const PublishedResult& r, Json& out) {
  Json peaks = Json::array();
  for (const PeakError& peak : peaks_of(r))
    peaks.push_back({{"figure", peak.figure},
                     {"stated_gib", peak.stated_gib},
                     {"forecast_gib", peak.forecast_gib},
                     {"base_open", peak.base_open},
                     {"chosen", peak.chosen},
                     {"error", peak.error()}});
  out["verdict"] = verdict_of(r);
  out["p_fits"] = entered(r) ? Json(p_fits(r)) : Json(nullptr);
  out["needed_gib"] = entered(r) ? Json(r.needed_gib) : Json(nullptr);
  out["gpu_memory_gib"] = entered(r) ? Json(r.gpu_memory_gib) : Json(nullptr);
  out["peaks"] = peaks;
  out["times_a_step"] = r.times_a_step();
}

Json row_json(const PublishedResult& r) {
  const bool compared = r.predicted_s && r.measured_s > 0;
  const double tokens = static_cast<double>(r.row.global_batch_seqs.value_or(0)) *
                        static_cast<double>(r.row.seq_len.value_or(0)) /
                        static_cast<double>(std::max<std::int64_t>(1, r.row.gpus.value_or(1)));
  return {{"id", r.row.id},
          {"measured_step_time_s", r.measured_s > 0 ? Json(r.measured_s) : Json(nullptr)},
          {"predicted_step_time_s", number(r.predicted_s)},
          {"error", compared ? Json(r.error()) : Json(nullptr)},
          {"memory_gib_per_gpu", number(r.memory_gib)},
          {"memory_allocated_gib", r.allocated_gib},
          {"memory_reserved_gib", r.reserved_gib},
          {"memory_process_gib", r.process_gib},
          {"mem_figure", r.row.mem_figure},
          {"refused", r.refused.empty() ? Json(nullptr) : Json(r.refused)},
          {"predicted_tokens_per_s_per_gpu",
           r.predicted_s ? Json(tokens / *r.predicted_s) : Json(nullptr)},
          {"constant_mfu_step_time_s", number(r.baseline_s)},
          {"measured_memory_gib_per_gpu", number(r.row.mem_gib_per_gpu)},
          {"own_kernels", r.own_kernels},
          {"scored", r.scored()},
          {"provenance", r.row.confidence},
          {"assumed", r.assumed},
          {"warnings", r.warnings}};
}

Json source_json(const SourceScore& s) {
  return {{"id", s.key},
          {"source", s.source},
          {"rows", s.rows},
          {"in_scope", s.in_scope},
          {"predicted", s.predicted},
          {"whole_runs", s.whole_runs},
          {"own_kernels", s.own_kernels},
          {"error", score_json(s.ours)},
          {"constant_mfu_error", score_json(s.baseline)},
          {"rank_correlation", number(s.ranking.correlation)},
          {"groups", s.ranking.groups},
          {"ranking", ranking_json(s.ranking)},
          {"worst", s.worst}};
}

Json summary_json(const std::string& file, const PublishedSummary& s) {
  Json refusals = Json::array();
  for (const auto& [reason, rows] : s.refusals)
    refusals.push_back({{"why", reason}, {"rows", rows}});
  return {{"file", file},
          {"rows", s.rows},
          {"scorable", s.scorable},
          {"in_scope", s.in_scope},
          {"predicted", s.predicted},
          {"error", score_json(s.ours)},
          {"constant_mfu_error", score_json(s.baseline)},
          {"sources", s.sources},
          {"mean_source_median", s.mean_source_median},
          {"constant_mfu_mean_source_median", s.baseline_mean_source_median},
          {"sources_unmarked", s.unmarked},
          {"mean_unmarked_median", s.mean_unmarked_median},
          {"virtual_stages_open_rows", s.virtual_open_rows},
          {"virtual_stages_open_error", score_json(s.virtual_open)},
          {"others_error", score_json(s.others)},
          {"rank_correlation", number(s.ranking.correlation)},
          {"constant_mfu_rank_correlation", number(s.baseline_ranking.correlation)},
          {"groups", s.ranking.groups},
          {"ranking", ranking_json(s.ranking)},
          {"constant_mfu_ranking", ranking_json(s.baseline_ranking)},
          {"memory_rows", s.memory_rows},
          {"memory_error", score_json(s.memory)},
          {"memory_by_figure", memory_json(s)},
          {"predicted_out_of_memory", s.too_large},
          {"ran", s.ran},
          {"ran_out_of_memory", s.ran_out},
          {"ran_out_of_memory_foreseen", s.foreseen},
          {"refused", refusals}};
}

}  // namespace

std::string published_json(const std::string& file, const std::vector<PublishedResult>& results) {
  const PublishedSummary summary = summary_of(results);
  Json out;
  out["summary"] = summary_json(file, summary);
  const bool ran = of_what_ran(results);
  if (ran) out["summary"]["what_ran"] = ran_json(ran_summary(results));
  out["sources"] = Json::array();
  for (const SourceScore& source : summary.by_source) out["sources"].push_back(source_json(source));
  out["by_degree"] = Json::array();
  for (const DegreeScore& score : degree_scores(results))
    out["by_degree"].push_back({{"knob", score.knob},
                                {"degree", score.degree},
                                {"rows", score.rows},
                                {"error", score_json(score.errors)}});
  out["rows"] = Json::array();
  for (const PublishedResult& result : results) {
    out["rows"].push_back(row_json(result));
    if (ran) add_ran(result, out["rows"].back());
  }
  return sim::json_text(out, 1);
}

}  // namespace stepcast::validate
