#include "validate/published/confidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/confidence/evidence.hpp"
#include "sim/confidence/order.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/text_table.hpp"
#include "sim/program/answer_forms.hpp"
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
    sim::json_option,
    sim::rows_option,
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
  const auto what_ran = results_of("what_ran", session, arguments);
  if (sim::stop_requested()) return false;
  sim::Evidence evidence =
      evidence_of(training, sweep, modern, what_ran, root + "/calibrate/published", catalogue);
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

}  // namespace

std::vector<Covered> covered_memory(const sim::Evidence& evidence, double level) {
  const std::vector<sim::Residual>& peaks = evidence.memory;
  if (std::ranges::none_of(peaks,
                           [&](const sim::Residual& row) { return row.source != peaks[0].source; }))
    return {};
  return {{"memory", peaks.size(), coverage_of_memory(peaks, level)}};
}

namespace {

std::vector<Covered> covered_by(const sim::Evidence& evidence, double level) {
  const std::pair<const char*, std::vector<sim::Residual>> all[] = {
      {"steps", side_of(evidence.steps, true)},
      {"steps with experts or in low precision", side_of(evidence.steps, false)},
      {"collectives", evidence.collectives}};
  std::vector<Covered> out = covered_memory(evidence, level);
  for (const auto& [what, residuals] : all) {
    const auto other = [&](const sim::Residual& row) { return row.source != residuals[0].source; };
    if (std::ranges::any_of(residuals, other))  // else none can be left out
      out.push_back({what, residuals.size(),
                     coverage_of(residuals, level, {evidence.shift, evidence.unmeasured_gpu})});
  }
  return out;
}

}  // namespace

std::string coverage_text(const Covered& covered) {
  const auto& [what, num_rows, coverage] = covered;
  std::string out = fmt::format(
      "{}: without its own rows a source is covered to {} (mean of {}), {} to {} at worst;\n"
      "{} rows, of them {}; median bar as shown {} to {}\n",
      what, sim::percent(coverage.mean), coverage.by_source.size(), coverage.worst.source,
      sim::percent(coverage.worst.covered), sim::grouped(static_cast<std::int64_t>(num_rows)),
      sim::percent(coverage.rows), change(coverage.low), change(coverage.high));
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

std::string coverage_json(const std::vector<Covered>& all, double level) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [what, num_rows, coverage] : all) {
    for (const SourceCoverage& s : coverage.by_source)
      rows.push_back({{"bars_of", what},
                      {"source", s.source},
                      {"rows", s.rows},
                      {"covered", s.covered},
                      {"low", s.low},
                      {"high", s.high}});
    for (const KindCoverage& k : coverage.by_kind)
      rows.push_back(
          {{"bars_of", what}, {"kind", k.kind}, {"rows", k.rows}, {"covered", k.covered}});
  }
  return sim::json_text(nlohmann::ordered_json{{"level", level}, {"coverage", std::move(rows)}}, 2);
}

namespace {

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

double level_of(const sim::Arguments& arguments) {
  const auto level = sim::number_in<double>(arguments.get("confidence", "0.8"));
  if (!level || !(*level > 0 && *level < 1))
    throw sim::UsageError("--confidence is no share of cases", "0.8: bars that hold in 80 %");
  return *level;
}

int run_confidence(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::check_forms(arguments);
  std::string folder = catalogue.directory() + "/confidence";
  if (arguments.has("write")) {
    folder = arguments.get("write");
    if (!write(folder, arguments, catalogue)) return sim::stop_code();
  }
  const sim::Evidence evidence = sim::read_evidence(folder);
  const double level = level_of(arguments);
  const std::vector<Covered> covered = covered_by(evidence, level);
  const auto text = [&] {
    std::string out = fmt::format(
        "bars of {:g} % from the errors of {}, {}\nshift {:.2f}: by so much errors of kernels grow "
        "when their source is left out, not their shape alone\n"
        "unmeasured_gpu {:.2f}: the same of a GPU all of whose rows are left out\n\n",
        100 * level, evidence.version, evidence.date, evidence.shift, evidence.unmeasured_gpu);
    for (const Covered& one : covered) out += coverage_text(one);
    return out + order_text(evidence.pairs) + own_runs_text(side_of(evidence.steps, true));
  };
  const sim::AnswerForms forms{text, [&] { return coverage_json(covered, level); }, {"coverage"}};
  return sim::print_answer(arguments, forms) ? sim::exit_ok : sim::exit_unwritten;
}

}  // namespace stepcast::validate
