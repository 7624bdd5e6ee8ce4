#include "validate/published/confidence.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "sim/confidence/evidence.hpp"
#include "sim/confidence/order.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/text_table.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/today.hpp"
#include "validate/published/coverage.hpp"
#include "validate/published/residuals.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option confidence_options[] = {
    {"write", "DIR", "", "predict every shipped table anew and write what comes of it there first"},
    {"confidence", "SHARE", "", "of the bars (default 0.8)"},
    {"threads", "N", "", "rows to run at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

std::vector<PublishedResult> results_of(const std::string& file, sim::Session& session,
                                        const sim::Arguments& arguments) {
  PublishedOptions wanted;
  wanted.threads = arguments.threads();
  wanted.quiet = arguments.has("quiet");
  return predict_published(file, published_rows(sim::read_csv(file)), session, wanted);
}

/// False when it was interrupted.
bool write(const std::string& folder, const sim::Arguments& arguments,
           const sim::Catalogue& catalogue) {
  const std::filesystem::path data(catalogue.directory());
  const std::string root = data.parent_path().string();
  sim::Session session(catalogue);
  const auto predicted = [&](const char* name) {
    return results_of(root + "/validate/published/" + name, session, arguments);
  };
  const auto training = predicted("training.csv"), sweep = predicted("sweep.csv");
  if (sim::stop_requested()) return false;
  sim::Evidence evidence = evidence_of(training, sweep, root + "/calibrate/published", catalogue);
  evidence.date = sim::today();
  evidence.version = sim::version_text();
  evidence.version.pop_back();  // the end of its line
  sim::write_evidence(folder, evidence);
  return true;
}

std::string change(double share) {
  return (share < 0 ? "-" : "+") + sim::percent(share < 0 ? -share : share);
}

std::string coverage_text(const std::string& what, std::span<const sim::Residual> residuals,
                          double level, double shift) {
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
  return out + table.text() + "\n";
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
  out += coverage_text("steps", evidence.steps, *level, evidence.shift) +
         coverage_text("memory", evidence.memory, *level, evidence.shift) +
         coverage_text("collectives", evidence.collectives, *level, evidence.shift) +
         order_text(evidence.pairs) + own_runs_text(evidence.steps);
  std::fputs(out.c_str(), stdout);
  return sim::exit_ok;
}

}  // namespace stepcast::validate
