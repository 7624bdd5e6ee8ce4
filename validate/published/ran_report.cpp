// The summary of what ran as text; ran.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/arithmetic.hpp"
#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "validate/published/ran.hpp"

namespace stepcast::validate {
namespace {

using Table = sim::TextTable;

std::string counted_of(std::size_t n) { return sim::grouped(static_cast<std::int64_t>(n)); }

std::string signed_share(double share) {
  return std::abs(share) < 5e-7 ? sim::percent(0.0) : (share > 0 ? "+" : "") + sim::percent(share);
}

/// "allocated", ...; what nothing is said of is what the card must have.
std::string figure_name(const std::string& figure) {
  if (figure == "process") return "nvidia-smi";
  return figure.empty() ? "not said which" : figure;
}

std::vector<std::string> score_cells(const std::optional<ErrorScore>& score) {
  if (!score) return {"-", "-"};
  return {sim::percent(score->median), signed_share(score->bias)};
}

std::string errors_table(const RanSummary& s) {
  Table table;
  table.column("error", "", Table::Align::left);
  for (const char* heading : {"figures", "median", "p90", "bias"}) table.column(heading);
  const auto line = [&](const std::string& what, std::size_t n, const ErrorScore& score) {
    table.row({what, counted_of(n), sim::percent(score.median), sim::percent(score.p90),
               signed_share(score.bias)});
  };
  for (std::size_t i = 0; i < s.memory.size(); ++i)
    line("peak, " + figure_name(s.memory[i].first), s.memory_rows[i], s.memory[i].second);
  if (s.step) line("step", s.steps, *s.step);
  if (s.chosen) line("peak of tokens not stated", s.chosen_peaks, *s.chosen);
  if (s.as_gib) line("peak in GB, base not said, as GiB", s.open_peaks, *s.as_gib);
  if (s.as_gb) line("  the same as 1e9 bytes", s.open_peaks, *s.as_gb);
  return table.num_rows() == 0 ? "" : "\n" + table.text();
}

std::string group_table(const RanSummary& s, const std::string& list) {
  Table table;
  table.column(list, "", Table::Align::left);
  for (const char* heading : {"rows", "entered", "refused", "died", "foreseen", "peaks",
                              "peak median", "peak bias", "steps", "step median", "step bias"})
    table.column(heading);
  for (const RanGroup& group : s.groups) {
    if (group.list != list) continue;
    const auto memory = score_cells(group.memory), step = score_cells(group.step);
    table.row({group.name, counted_of(group.rows), counted_of(group.entered),
               counted_of(group.refused_ran), counted_of(group.died),
               counted_of(group.foreseen_died), counted_of(group.peaks), memory[0], memory[1],
               counted_of(group.steps), step[0], step[1]});
  }
  return "\n" + table.text();
}

std::string without_parentheses(const std::string& text) {
  return text.substr(0, std::min(text.find(" ("), text.size()));
}

/// What a row states of its plan, in its own words.
std::string plan_words(const PublishedRow& row) {
  std::string out = without_parentheses(row.model) + ", " +
                    counted_of(static_cast<std::size_t>(row.gpus.value_or(0))) + " x " + row.gpu;
  if (row.micro_batch_seqs && row.seq_len)
    out += fmt::format(", {} x {}", *row.micro_batch_seqs, *row.seq_len);
  for (const auto& [name, degree] :
       {std::pair{"tp", row.tp}, {"cp", row.cp}, {"pp", row.pp}, {"ep", row.ep}})
    if (degree.value_or(1) > 1) out += fmt::format(", {} {}", name, *degree);
  for (const std::string* words : {&row.dp_mode, &row.activation_checkpointing, &row.fp8_recipe,
                                   &row.loss_kernel, &row.offload})
    if (!words->empty()) out += ", " + without_parentheses(*words);
  return out;
}

std::string worst_table(const RanSummary& s) {
  if (s.worst.empty()) return "";
  Table table;
  for (const char* heading : {"worst peaks", "states"})
    table.column(heading, "", Table::Align::left);
  table.column("figure", "", Table::Align::left);
  for (const char* heading : {"GiB", "forecast", "error"}) table.column(heading);
  for (const PublishedResult* r : s.worst) {
    const std::vector<PeakError> peaks = peaks_of(*r);
    for (const PeakError& peak : peaks) {
      const bool first = &peak == &peaks.front();  // a second figure is one of the same run
      table.row({first ? r->row.id : "", first ? plan_words(r->row) : "", figure_name(peak.figure),
                 fmt::format("{:.1f}", peak.stated_gib), fmt::format("{:.1f}", peak.forecast_gib),
                 signed_share(peak.error())});
    }
  }
  return "\n" + table.text();
}

/// GPUs that no error bar rests on: their times all the same.
std::string aside_table(const std::vector<PublishedResult>& results) {
  Table table;
  table.column("aside", "", Table::Align::left);
  table.column("states", "", Table::Align::left);
  for (const char* heading : {"measured", "forecast", "error"}) table.column(heading);
  std::vector<double> errors;
  for (const PublishedResult& r : results) {
    if (!r.aside || !r.predicted_s || !(r.measured_s > 0)) continue;
    errors.push_back(std::abs(r.error()));
    table.row({r.row.id, plan_words(r.row), stepcast::to_text(to_duration(r.measured_s)),
               stepcast::to_text(to_duration(*r.predicted_s)), signed_share(r.error())});
  }
  if (errors.empty()) return "";
  return "\n" + table.text() +
         fmt::format("median of their times: {}\n", sim::percent(median(std::move(errors))));
}

}  // namespace

std::string ran_text(const std::string& name, const std::vector<PublishedResult>& results) {
  const RanSummary s = ran_summary(results);
  std::string out = fmt::format(
      "{}\n"
      "{} rows: {} ran, {} of them forecast not to fit; {} died, {} of them foreseen;\n"
      "{} not entered, {} aside (other makers' GPUs, GeForce, RTX)\n",
      name, counted_of(s.rows), counted_of(s.ran), counted_of(s.refused_ran), counted_of(s.died),
      counted_of(s.foreseen_died), counted_of(s.not_entered), counted_of(s.aside));
  out += errors_table(s);
  for (const char* list : {"framework", "recompute", "feature"}) out += group_table(s, list);
  out += worst_table(s) + aside_table(results);
  if (!s.reasons.empty()) out += "\nnot entered:\n";
  for (const auto& [reason, rows] : s.reasons) out += fmt::format("  {:>5}  {}\n", rows, reason);
  return out;
}

}  // namespace stepcast::validate
