#include "validate/published/report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/files/csv.hpp"
#include "sim/files/markdown.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::validate {
namespace {

using sim::percent;
using Align = sim::TextTable::Align;

std::string signed_percent(double share) {
  if (std::abs(share) < 5e-7) return percent(0.0);  // a median's own rounding
  return (share > 0 ? "+" : "") + percent(share);
}
std::string count(std::size_t n) { return sim::grouped(static_cast<std::int64_t>(n)); }
sim::TableCell counted(std::size_t n) { return sim::counted(static_cast<std::int64_t>(n)); }
std::string correlation(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}
std::string share(const std::optional<double>& value) { return value ? percent(*value) : "-"; }
std::string regret(const Ranking& ranking) {
  return ranking.groups == 0 ? "-" : percent(ranking.regret);
}
std::string share_text(std::size_t part, std::size_t whole) {
  return whole == 0 ? "-" : percent(static_cast<double>(part) / static_cast<double>(whole));
}

sim::TextTable sources_table(const PublishedSummary& summary) {
  sim::TextTable table;
  table.column("source", "", Align::left);
  for (const char* heading :
       {"rows", "predicted", "own", "median", "p90", "bias", "plans", "regret"})
    table.column(heading);
  table.column("const. MFU", "", Align::right, "constant_mfu_median");
  table.column("worst rows", "", Align::left);
  for (const SourceScore& s : summary.by_source) {
    if (s.in_scope == 0) continue;
    using Cell = sim::TableCell;
    sim::TableCells cells = {
        s.key + (s.whole_runs ? " *" : ""),
        counted(s.in_scope),
        counted(s.predicted),
        {share_text(s.own_kernels, s.predicted),
         static_cast<double>(s.own_kernels) / static_cast<double>(s.predicted)}};
    if (!s.ours) {
      cells.insert(cells.end(), 6, Cell("-"));
    } else {
      const auto& order = s.ranking.correlation;
      for (const Cell& cell :
           {Cell(percent(s.ours->median), s.ours->median), Cell(percent(s.ours->p90), s.ours->p90),
            Cell(signed_percent(s.ours->bias), s.ours->bias),
            order ? Cell(correlation(order), *order) : Cell("-"),
            s.ranking.groups > 0 ? Cell(regret(s.ranking), s.ranking.regret) : Cell("-"),
            Cell(percent(s.baseline->median), s.baseline->median)})
        cells.push_back(cell);
    }
    cells.push_back(fmt::format("{}", fmt::join(s.worst, " ")));
    table.row(std::move(cells));
  }
  return table;
}

std::string totals_text(const PublishedSummary& s, const std::string& scope) {
  std::string out = fmt::format(
      "{} rows, {} scorable, {} of them {};\n"
      "{} of these predicted ({})\n\n",
      count(s.rows), count(s.scorable), count(s.in_scope), scope, count(s.predicted),
      share_text(s.predicted, s.in_scope));
  if (!s.ours) return out;
  sim::TextTable table;
  table.column("step-time error", "", Align::left);
  table.column("stepcast");
  table.column("constant MFU");
  const auto line = [&](std::string what, std::string ours, std::string baseline) {
    table.row({std::move(what), std::move(ours), std::move(baseline)});
  };
  line(fmt::format("median per source, mean of {}", s.sources), percent(s.mean_source_median),
       percent(s.baseline_mean_source_median));
  if (s.unmarked < s.sources && s.unmarked > 0)
    line(fmt::format("  without those marked *, mean of {}", s.unmarked),
         percent(s.mean_unmarked_median), percent(s.baseline_mean_unmarked_median));
  line("median over rows", percent(s.ours->median), percent(s.baseline->median));
  line("mean over rows", percent(s.ours->mape), percent(s.baseline->mape));
  line("p90 over rows", percent(s.ours->p90), percent(s.baseline->p90));
  line("bias (median)", signed_percent(s.ours->bias), signed_percent(s.baseline->bias));
  const Ranking &ours = s.ranking, &constant = s.baseline_ranking;
  if (ours.groups == 0) return out + table.text();
  line(fmt::format("plans, {} in {} groups: rank correlation", count(ours.plans),
                   count(ours.groups)),
       correlation(ours.correlation), correlation(constant.correlation));
  line("  pairs over 5 % apart, in order", share(ours.pairs_in_order),
       share(constant.pairs_in_order));
  line("  regret of the first choice, mean", percent(ours.regret), percent(constant.regret));
  line("  worst", percent(ours.worst_regret), percent(constant.worst_regret));
  line("  regret of the best of three", percent(ours.regret_of_three),
       percent(constant.regret_of_three));
  return out + table.text();
}

std::string marks_text(const PublishedSummary& s) {
  std::string out;
  if (s.unmarked < s.sources)
    out += "* GPU hours of whole runs: a bar, with all that stopped them\n";
  if (s.virtual_open)
    out += fmt::format(
        "{} rows of four stages or more do not say whether they interleave: median {}, bias {};\n"
        "all others: median {}, bias {}\n",
        count(s.virtual_open_rows), percent(s.virtual_open->median),
        signed_percent(s.virtual_open->bias), s.others ? percent(s.others->median) : "-",
        s.others ? signed_percent(s.others->bias) : "-");
  return out;
}

std::string memory_text(const PublishedSummary& s) {
  std::string out = fmt::format("\nmemory: {} of {} rows that ran are predicted not to fit\n",
                                count(s.too_large), count(s.ran));
  if (s.ran_out > 0)
    out += fmt::format("{} of {} rows that ran out of memory are predicted not to fit ({})\n",
                       count(s.foreseen), count(s.ran_out), share_text(s.foreseen, s.ran_out));
  if (s.memory)
    out +=
        fmt::format("memory against {} reported peaks: median {}, bias {}\n", count(s.memory_rows),
                    percent(s.memory->median), signed_percent(s.memory->bias));
  for (const MemoryScore& score : s.memory_by_figure)
    out += fmt::format("  {:<12}{:>4} {}: median {}, bias {}\n",
                       score.figure.empty() ? "not said" : score.figure, count(score.rows),
                       score.scored ? "scored" : "beside", percent(score.errors.median),
                       signed_percent(score.errors.bias));
  return out;
}

/// A positive number that reads well and loses nothing that matters; 0: not known.
std::string number_text(double value) { return value > 0 ? fmt::format("{:.6g}", value) : ""; }

}  // namespace

sim::TextTable published_sources(const std::vector<PublishedResult>& results) {
  return sources_table(summary_of(results));
}

/// What the rows in scope are, where only some are.
std::string scope_of_results(const std::vector<PublishedResult>& results) {
  bool dense = false, modern = false;
  for (const PublishedResult& r : results) {
    dense |= r.in_scope && r.bucket == Bucket::dense;
    modern |= r.in_scope && r.bucket == Bucket::modern;
  }
  if (modern && dense) return "scored";
  if (modern) return "with experts, in low precision or on Blackwell";
  return "dense fp16 or bf16 on V100, A100, H100, H200";
}

std::string published_text(const std::string& file, const std::vector<PublishedResult>& results,
                           const sim::TableView& view) {
  const PublishedSummary summary = summary_of(results);
  std::string out =
      file + ": published training runs beside the simulation\n" +
      totals_text(summary, scope_of_results(results)) + "\n" +
      view.arranged(sources_table(summary)).text() +
      "own: of the predicted rows, those with kernels of their GPU measured by the same source;\n"
      "plans: within groups of one shape, GPU, count, sequence and batch, three or more;\n"
      "regret: measured time of the plan predicted fastest over the least measured\n" +
      marks_text(summary);
  if (!summary.refusals.empty()) out += "\nrefused:\n";
  for (const auto& [reason, rows] : summary.refusals)
    out += fmt::format("  {:>5}  {}\n", rows, reason);
  return out + memory_text(summary);
}

std::string degrees_text(const std::vector<PublishedResult>& results) {
  sim::TextTable table;
  table.column("knob", "", Align::left);
  for (const char* heading : {"degree", "rows", "median", "p90", "bias"}) table.column(heading);
  for (const DegreeScore& score : degree_scores(results))
    table.row({score.knob, count(score.degree), count(score.rows), percent(score.errors.median),
               percent(score.errors.p90), signed_percent(score.errors.bias)});
  return "\nby degree, where a row states it\n" + table.text();
}

std::string kinds_text(const std::vector<PublishedResult>& results) {
  sim::TextTable table;
  table.column("kind", "", Align::left);
  for (const char* heading : {"rows", "predicted", "median", "p90", "bias", "const. MFU"})
    table.column(heading);
  const auto absolute = [](const auto& score, double ErrorScore::*member) {
    return score ? percent((*score).*member) : std::string("-");
  };
  for (const KindScore& s : kind_scores(results))
    table.row({s.kind, count(s.in_scope), count(s.predicted), absolute(s.ours, &ErrorScore::median),
               absolute(s.ours, &ErrorScore::p90), s.ours ? signed_percent(s.ours->bias) : "-",
               absolute(s.baseline, &ErrorScore::median)});
  return "\nby kind\n" + table.text();
}

std::string published_csv(const std::vector<PublishedResult>& results) {
  std::string out =
      "id,gpu,gpus,model,measured_step_time_s,predicted_step_time_s,error,"
      "measured_tokens_per_s_per_gpu,predicted_tokens_per_s_per_gpu,memory_gib_per_gpu,"
      "mem_figure,memory_allocated_gib,memory_reserved_gib,memory_process_gib,in_scope,"
      "refused,assumed,warnings\n";
  for (const PublishedResult& r : results) {
    const auto cell = [](const auto& text) { return sim::csv_cell(text); };
    const double tokens = static_cast<double>(r.row.global_batch_seqs.value_or(0)) *
                          static_cast<double>(r.row.seq_len.value_or(0)) /
                          static_cast<double>(r.row.gpus.value_or(1));
    const auto rate = [&](double time) {
      return time > 0 ? fmt::format("{:.6g}", tokens / time) : std::string();
    };
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", cell(r.row.id),
                       cell(r.row.gpu), r.row.gpus.value_or(0), cell(r.row.model),
                       number_text(r.measured_s), number_text(r.predicted_s.value_or(0)),
                       r.predicted_s && r.measured_s > 0 ? fmt::format("{:.4f}", r.error()) : "",
                       rate(r.measured_s), rate(r.predicted_s.value_or(0)),
                       number_text(r.memory_gib.value_or(0)), r.row.mem_figure,
                       number_text(r.allocated_gib), number_text(r.reserved_gib),
                       number_text(r.process_gib), r.in_scope ? "yes" : "no", cell(r.refused),
                       cell(fmt::format("{}", fmt::join(r.assumed, "; "))),
                       cell(fmt::format("{}", fmt::join(r.warnings, "; "))));
  }
  return out;
}

std::string published_markdown(const std::vector<PublishedResult>& results) {
  const PublishedSummary s = summary_of(results);
  std::string out =
      "| source | rows | own kernels | median | p90 | bias | plans | constant MFU |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const SourceScore& source : s.by_source)
    if (source.ours)
      out += fmt::format("| {} ({}) | {} | {} | {} | {} | {} | {} | {} |\n",
                         sim::markdown_text(source.source), sim::markdown_text(source.key),
                         source.predicted, share_text(source.own_kernels, source.predicted),
                         percent(source.ours->median), percent(source.ours->p90),
                         signed_percent(source.ours->bias), correlation(source.ranking.correlation),
                         percent(source.baseline->median));
  if (s.ours)
    out +=
        fmt::format("| **all** (mean of {} source medians) | {} | | **{}** | {} | {} | {} | {} |\n",
                    s.sources, s.predicted, percent(s.mean_source_median), percent(s.ours->p90),
                    signed_percent(s.ours->bias), correlation(s.ranking.correlation),
                    percent(s.baseline_mean_source_median));
  return out;
}

}  // namespace stepcast::validate
