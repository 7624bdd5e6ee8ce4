#include "validate/published/ran.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

constexpr double bytes_of_gb = 1e9, bytes_of_gib_in_ran = 1024.0 * 1024.0 * 1024.0;
constexpr std::size_t most_worst = 10;

/// The word of a row's recompute by which rows are grouped.
std::string recompute_group(const PublishedRow& row) {
  if (row.activation_checkpointing.empty()) return "not stated";
  const std::string text = lower(row.activation_checkpointing);
  if (has_word(text, {"full"})) return "full";
  if (has_word(text, {"none"})) return "none";
  if (has_word(text, {"sac", "operator"})) return "per operator";
  return has_word(text, {"select"}) ? "selective" : "modules";
}

std::vector<std::string> features_of(const PublishedRow& row) {
  std::vector<std::string> out;
  const std::string tags = row.tags + ";", mode = lower(row.dp_mode);
  if (row.has_experts() || tags.find("MoE;") != tags.npos) out.emplace_back("MoE");
  if (tags.find("LoRA;") != tags.npos) out.emplace_back("LoRA");
  if (has_word(tags, {"long;", "32k+;"})) out.emplace_back("long");
  if (tags.find("HF;") != tags.npos) out.emplace_back("HF");
  if (has_word(mode, {"fsdp"})) out.emplace_back("FSDP");
  if (has_word(mode, {"zero3"})) out.emplace_back("ZeRO-3");
  if (!row.offload.empty() && row.offload != "none") out.emplace_back("offload");
  if (!row.loss_kernel.empty()) out.emplace_back("loss kernel");
  return out;
}

/// A framework's own word, without what stands in parentheses.
std::string framework_group(const PublishedRow& row) {
  return row.framework.substr(0, std::min(row.framework.find(" ("), row.framework.size()));
}

struct Errors {
  std::vector<double> memory, step;
};

std::optional<ErrorScore> score_of(const std::vector<double>& errors) {
  return errors.empty() ? std::nullopt : std::optional(error_score(errors));
}

/// The row's own peak, where its base is known; 0: none.
double worst_error(const PublishedResult& result) {
  double out = 0;
  for (const PeakError& peak : peaks_of(result))
    if (peak.scored()) out = std::max(out, std::abs(peak.error()));
  return out;
}

/// A run that fits gives cached segments back before its card is full.
double most_on_card(const PublishedResult& result, const std::string& figure) {
  const double forecast = result.memory_of(figure);
  if (p_fits(result) < 0.5) return forecast;
  const double fixed = result.process_gib - result.reserved_gib;
  if (figure == "reserved") return std::min(forecast, result.gpu_memory_gib - fixed);
  return figure == "process" ? std::min(forecast, result.gpu_memory_gib) : forecast;
}

class RanGroups {
 public:
  void add(const char* list, const std::string& name, const PublishedResult& r) {
    const auto at = groups_.try_emplace({list, name}).first;
    RanGroup& group = at->second.first;
    Errors& errors = at->second.second;
    group.rows += 1;
    if (!entered(r)) return;
    group.entered += 1;
    const std::string verdict = verdict_of(r);
    group.refused_ran += verdict == "refused_ran";
    group.foreseen_died += verdict == "foreseen_died";
    group.died += r.row.ran_out_of_memory;
    if (r.row.ran_out_of_memory) return;
    for (const PeakError& peak : peaks_of(r))
      if (peak.scored()) errors.memory.push_back(peak.error());
    if (r.times_a_step()) errors.step.push_back(r.error());
  }

  std::vector<RanGroup> take(const char* list) {
    std::vector<RanGroup> out;
    for (auto& [key, value] : groups_) {
      if (key.first != list) continue;
      RanGroup group = value.first;
      group.list = key.first;
      group.name = key.second;
      group.peaks = value.second.memory.size();
      group.steps = value.second.step.size();
      group.memory = score_of(value.second.memory);
      group.step = score_of(value.second.step);
      out.push_back(std::move(group));
    }
    std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.rows > b.rows; });
    return out;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::pair<RanGroup, Errors>> groups_;
};

void add_groups(const std::vector<PublishedResult>& results, RanSummary& summary) {
  RanGroups groups;
  for (const PublishedResult& r : results) {
    if (r.aside) continue;
    groups.add("framework", framework_group(r.row), r);
    groups.add("recompute", recompute_group(r.row), r);
    for (const std::string& feature : features_of(r.row)) groups.add("feature", feature, r);
  }
  for (const char* list : {"framework", "recompute", "feature"})
    for (RanGroup& group : groups.take(list)) summary.groups.push_back(std::move(group));
}

void add_errors(const std::vector<PublishedResult>& results, RanSummary& summary) {
  std::map<std::string, std::vector<double>> memory;
  std::vector<double> steps, as_gib, as_gb, chosen;
  for (const PublishedResult& r : results) {
    if (!entered(r) || r.row.ran_out_of_memory) continue;
    for (const PeakError& peak : peaks_of(r)) {
      if (peak.chosen) chosen.push_back(peak.error());
      if (peak.scored()) memory[peak.figure].push_back(peak.error());
      if (peak.scored() || peak.chosen) continue;
      as_gib.push_back(peak.error());
      as_gb.push_back((peak.error() + 1.0) * bytes_of_gib_in_ran / bytes_of_gb - 1.0);
    }
    if (r.times_a_step()) steps.push_back(r.error());
  }
  for (const auto& [figure, errors] : memory) {
    summary.memory.emplace_back(figure, error_score(errors));
    summary.memory_rows.push_back(errors.size());
  }
  summary.steps = steps.size();
  summary.step = score_of(steps);
  summary.chosen_peaks = chosen.size();
  summary.chosen = score_of(chosen);
  summary.open_peaks = as_gib.size();
  summary.as_gib = score_of(as_gib);
  summary.as_gb = score_of(as_gb);
}

}  // namespace

bool of_what_ran(const std::vector<PublishedResult>& results) {
  return !results.empty() && results.front().row.columns == ColumnSet::what_ran;
}

std::vector<PeakError> peaks_of(const PublishedResult& result) {
  const PublishedRow& row = result.row;
  std::vector<PeakError> out;
  if (!entered(result) || row.ran_out_of_memory || row.mem_gib_per_gpu.value_or(0) <= 0) return out;
  out.push_back({row.mem_figure, row.mem_gb_as_stated.value_or(*row.mem_gib_per_gpu),
                 most_on_card(result, row.mem_figure), row.mem_base_open, result.tokens_open});
  if (row.further_gib.value_or(0) > 0)
    out.push_back({row.further_figure, *row.further_gib, most_on_card(result, row.further_figure),
                   row.mem_base_open, result.tokens_open});
  return out;
}

bool entered(const PublishedResult& result) {
  return !result.aside && result.predicted_s.has_value();
}

std::string verdict_of(const PublishedResult& result) {
  if (result.aside) return "aside";
  if (!entered(result)) return "not_entered";
  if (result.row.ran_out_of_memory) return p_fits(result) < 0.5 ? "foreseen_died" : "died";
  return p_fits(result) < sim::RunOptions{}.refused_below() ? "refused_ran" : "ran";
}

std::optional<double> RanSummary::memory_median(const std::string& figure) const {
  for (const auto& [name, score] : memory)
    if (name == figure) return score.median;
  return std::nullopt;
}

RanSummary ran_summary(const std::vector<PublishedResult>& results) {
  RanSummary summary;
  std::map<std::string, std::size_t> reasons;
  for (const PublishedResult& r : results) {
    const std::string verdict = verdict_of(r);
    summary.rows += 1;
    summary.aside += verdict == "aside";
    summary.not_entered += verdict == "not_entered";
    summary.ran += verdict == "ran" || verdict == "refused_ran";
    summary.refused_ran += verdict == "refused_ran";
    summary.died += verdict == "died" || verdict == "foreseen_died";
    summary.foreseen_died += verdict == "foreseen_died";
    if (verdict == "not_entered") reasons[r.refused] += 1;
    if (worst_error(r) > 0) summary.worst.push_back(&r);
  }
  summary.reasons.assign(reasons.begin(), reasons.end());
  std::ranges::stable_sort(summary.reasons,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  std::ranges::stable_sort(summary.worst, [](const auto* a, const auto* b) {
    return worst_error(*a) > worst_error(*b);
  });
  summary.worst.resize(std::min(summary.worst.size(), most_worst));
  add_errors(results, summary);
  add_groups(results, summary);
  return summary;
}

}  // namespace stepcast::validate
