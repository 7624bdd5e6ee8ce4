#include "validate/published/confidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "sim/confidence/evidence.hpp"
#include "sim/confidence/order.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/text_table.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/today.hpp"
#include "validate/published/coverage.hpp"
#include "validate/published/residuals.hpp"
#include "validate/published/shipped.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option confidence_options[] = {
    {"write", "DIR", "", "predict every shipped table anew and write what comes of it there first"},
    {"confidence", "SHARE", "", "of the bars (default 0.8)"},
    {"threads", "N", "", "rows to run at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

std::vector<PublishedResult> results_of(const char* name, sim::Session& session,
                                        const sim::Arguments& arguments) {
  const ShippedTable& table = *shipped_table(name);
  PublishedOptions wanted;
  wanted.threads = arguments.threads();
  wanted.quiet = arguments.has("quiet");
  wanted.bucket = table.bucket;
  return predict_published(path_of(table, session.catalogue()), rows_of(table, session.catalogue()),
                           session, wanted);
}

/// False when it was interrupted.
bool write(const std::string& folder, const sim::Arguments& arguments,
           const sim::Catalogue& catalogue) {
  const std::filesystem::path data(catalogue.directory());
  const std::string root = data.parent_path().string();
  sim::Session session(catalogue);
  const auto training = results_of("training", session, arguments);
  const auto sweep = results_of("sweep", session, arguments);
  const auto modern = results_of("modern", session, arguments);
  if (sim::stop_requested()) return false;
  sim::Evidence evidence =
      evidence_of(training, sweep, modern, root + "/calibrate/published", catalogue);
  evidence.date = sim::today();
  evidence.version = sim::version_text();
  evidence.version.pop_back();  // the end of its line
  sim::write_evidence(folder, evidence);
  return true;
}

std::string change(double share) {
  return (share < 0 ? "-" : "+") + sim::percent(share < 0 ? -share : share);
}

/// Of dense 16-bit models, or of all others.
std::vector<sim::Residual> side_of(const std::vector<sim::Residual>& residuals, bool dense) {
  std::vector<sim::Residual> out;
  for (const sim::Residual& row : residuals)
    if ((row.of.kind == sim::dense_16_bit) == dense) out.push_back(row);
  return out;
}

std::string coverage_text(const std::string& what, const std::vector<sim::Residual>& residuals,
                          double level, double shift) {
  const auto other = [&](const sim::Residual& row) { return row.source != residuals[0].source; };
  if (std::ranges::none_of(residuals, other)) return "";  // none can be left out
  const Coverage coverage = coverage_of(residuals, level, shift);
  std::string out = fmt::format(
      "{}: without its own rows a source is covered to {} (mean of {}), {} to {} at worst;\n"
      "{} rows, of them {}; median bar as shown {} to {}\n",
      what, sim::percent(coverage.mean), coverage.by_source.size(), coverage.worst.source,
      sim::percent(coverage.worst.covered),
      sim::grouped(static_cast<std::int64_t>(residuals.size())), sim::percent(coverage.rows),
      change(coverage.low), change(coverage.high));
  sim::TextTable table;
  table.column("source", "", sim::TextTable::Align::left);
  for (const char* heading : {"rows", "covered", "bar from", "to"}) table.column(heading);
  for (const SourceCoverage& s : coverage.by_source)
    table.row({s.source, sim::grouped(static_cast<std::int64_t>(s.rows)), sim::percent(s.covered),
               change(s.low), change(s.high)});
  out += table.text() + "\n";
  if (coverage.by_kind.size() < 2) return out;
  sim::TextTable kinds;
  kinds.column("kind", "", sim::TextTable::Align::left);
  for (const char* heading : {"rows", "covered"}) kinds.column(heading);
  for (const KindCoverage& k : coverage.by_kind)
    kinds.row({k.kind, sim::grouped(static_cast<std::int64_t>(k.rows)), sim::percent(k.covered)});
  return out + kinds.text() + "\n";
}

std::string order_text(std::span<const sim::PairCount> pairs) {
  const sim::Order order(pairs);
  sim::TextTable table;
  table.column("forecast slower by", "", sim::TextTable::Align::left);
  table.column("P(slower)");
  for (const double gap : {0.01, 0.03, 0.07, 0.15, 0.3, 0.7})
    table.row({sim::percent(gap), fmt::format("{:.2f}", order.probability(1, 1 + gap))});
  return "two plans, from " + order.origin() + "\n" + table.text() + "\n";
}

std::string own_runs_text(std::span<const sim::Residual> steps) {
  std::string out;
  for (const std::size_t runs : {1u, 3u, 10u}) {
    const OwnRunsGain gain = gain_of_own_runs(steps, runs);
    out += fmt::format("{} of a source's own runs: median error {} -> {} (mean of {} sources)\n",
                       runs, sim::percent(gain.before), sim::percent(gain.after), gain.sources);
  }
  return out;
}

}  // namespace

const sim::Verb confidence_verb{
    "stepcast validate confidence",
    "",
    0,
    "How often the error bars hold: each source of measurements left out in turn.",
    confidence_options,
    "stepcast validate confidence"};

int run_confidence(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  std::string folder = catalogue.directory() + "/confidence";
  if (arguments.has("write")) {
    folder = arguments.get("write");
    if (!write(folder, arguments, catalogue)) return sim::stop_code();
  }
  const sim::Evidence evidence = sim::read_evidence(folder);
  const auto level = sim::number_in<double>(arguments.get("confidence", "0.8"));
  if (!level || !(*level > 0 && *level < 1))
    throw sim::UsageError("--confidence is no share of cases", "0.8: bars that hold in 80 %");
  std::string out = fmt::format(
      "bars of {:g} % from the errors of {}, {}\nshift {:.2f}: by so much errors of kernels grow "
      "when "
      "their source is left out, not their shape alone\n\n",
      100 * *level, evidence.version, evidence.date, evidence.shift);
  const std::vector<sim::Residual> dense = side_of(evidence.steps, true);
  out += coverage_text("steps", dense, *level, evidence.shift) +
         coverage_text("steps with experts or in low precision", side_of(evidence.steps, false),
                       *level, evidence.shift) +
         coverage_text("memory", side_of(evidence.memory, true), *level, evidence.shift) +
         coverage_text("memory with experts or in low precision", side_of(evidence.memory, false),
                       *level, evidence.shift) +
         coverage_text("collectives", evidence.collectives, *level, evidence.shift) +
         order_text(evidence.pairs) + own_runs_text(dense);
  sim::tell(stdout, out);
  return sim::exit_ok;
}

}  // namespace stepcast::validate
