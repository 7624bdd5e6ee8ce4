// stepcast-validate: measured beside predicted.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "engine/arithmetic.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/command/program.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/text_table.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/program/interrupt.hpp"
#include "validate/cluster/command.hpp"
#include "validate/command/run.hpp"
#include "validate/command/study.hpp"
#include "validate/compare/collectives.hpp"
#include "validate/compare/crossovers.hpp"
#include "validate/compare/kernels.hpp"
#include "validate/compare/page.hpp"
#include "validate/compare/report.hpp"
#include "validate/diagnose/command.hpp"
#include "validate/diagnose/report.hpp"
#include "validate/goodput/command.hpp"
#include "validate/layers/command.hpp"
#include "validate/memory/command.hpp"
#include "validate/published/command.hpp"
#include "validate/published/confidence.hpp"
#include "validate/study/trends.hpp"
#include "validate/trace/command.hpp"

namespace {

using namespace stepcast;
using sim::Arguments;
using sim::UsageError;

constexpr sim::Option collective_options[] = {
    {"nccl", "VERSION", "", "NCCL of rows that state none (default 2.20)"},
    {"with-curves", "", "", "circular: also use the curves of the row's own source"},
    {"model-only", "", "", "use no measured curve at all"},
    {"fail-above", "PERCENT", "", "exit code 5 when the median error is larger"},
    sim::json_option,
    sim::rows_option,
    sim::report_option,
    sim::svg_option,
};
constexpr sim::Option kernel_options[] = {
    {"leave-out", "source|shape|gpu", "", "what a prediction does not see (default: source)"},
    {"fail-above", "PERCENT", "", "exit code 5 when the median error is larger"},
    sim::json_option,
    sim::rows_option,
    sim::report_option,
    sim::svg_option,
};
constexpr sim::Option study_options[] = {
    {"threads", "N", "", "points to run at once (default: all cores)"},
    {"trends", "", "", "every statement as a number, under sets of what the study leaves open"},
    {"sets", "FILE.toml", "", "with --trends: other sets (default: scenarios/study/sets.toml)"},
    {"set", "KEY=VALUE", "", "with --trends: a key on top of every set; may be repeated"},
    {"quiet", "", "", "no progress"},
};

const sim::Verb collectives_verb{
    "stepcast validate collectives",
    "FILE.csv",
    1,
    "Measured collectives beside the network model, without the curves of the row's own source; or "
    "where a tuner leaves one protocol of NCCL for the next.",
    collective_options,
    "stepcast validate collectives calibrate/published/collectives.csv"};
const sim::Verb kernels_verb{
    "stepcast validate kernels",
    "FILE.csv ...",
    16,
    "Measured products and attention kernels beside the kernel model, the row's own source left "
    "out; or all rows of its card, as of one that nobody has measured.",
    kernel_options,
    "stepcast validate kernels calibrate/published/kernels.csv"};
const sim::Verb study_verb{"stepcast validate study",
                           "",
                           0,
                           "The study's published figures beside the simulated ones.",
                           study_options,
                           "stepcast validate study"};

/// The shipped table.
sim::CalibrationTable published() {
  const std::vector<std::string> tables = {"published"};
  return sim::read_calibrations(tables);
}

int print(const validate::Comparison& comparison, const sim::Verb& verb, const Arguments& arguments,
          const std::string& more = {}) {
  const auto limit = arguments.share("fail-above");
  const bool printed =
      sim::print_answer(arguments, {[&] { return validate::report_text(comparison) + more; },
                                    [&] { return validate::report_json(comparison); },
                                    {"rows"}});
  const sim::HandoutFiles files = sim::handout_files(arguments);
  const bool handed = !files.any() || sim::handed_out(files, [&] {
    return validate::comparison_page(comparison, sim::origin_of(verb, arguments));
  });
  if (!printed || !handed) return sim::exit_unwritten;
  if (!limit) return sim::exit_ok;
  const auto score = validate::summary_of(comparison).all;
  return score && score->median_ape <= *limit ? sim::exit_ok : sim::exit_too_inaccurate;
}

/// How far off a card is that nobody has measured.
std::string coverage_text(const validate::Comparison& comparison) {
  constexpr double level = 0.8;
  sim::TextTable table;
  table.column("left out", "", sim::TextTable::Align::left);
  for (const char* heading : {"rows", "median", "in the 80 % bar of the others"})
    table.column(heading);
  std::vector<double> medians;
  double covered = 0;
  for (const validate::CardCoverage& card : validate::coverage_of_cards(comparison, level)) {
    table.row({card.gpu, sim::grouped(static_cast<std::int64_t>(card.rows)),
               sim::percent(card.median), sim::percent(card.covered)});
    if (card.rows < validate::rows_of_a_card) continue;
    medians.push_back(card.median);
    covered += card.covered;
  }
  if (medians.empty()) return "\n" + table.text();
  const auto cards = medians.size();
  return "\n" + table.text() +
         fmt::format(
             "products of {} cards of {} rows or more: median card {}, covered {} in the "
             "mean\n",
             cards, validate::rows_of_a_card, sim::percent(median(std::move(medians))),
             sim::percent(covered / static_cast<double>(cards)));
}

/// Where a tuner changes protocols: no times, so no page and no curves.
int crossovers(const sim::CsvFile& file, const Arguments& arguments,
               const sim::Catalogue& catalogue) {
  for (const char* name : {"with-curves", "model-only", "report", "svg"})
    if (arguments.has(name))
      throw UsageError(std::string("--") + name + " is about times, " + file.path +
                       " holds crossovers");
  const auto results = validate::compare_crossovers(calibrate::read_crossovers(file, catalogue),
                                                    catalogue, arguments.get("nccl", "2.23"));
  const sim::ToldSection told = validate::told(file.path, results);
  if (!sim::print_answer(arguments, sim::forms_of(told, "validate-collectives", {"rows"})))
    return sim::exit_unwritten;
  const auto limit = arguments.share("fail-above");
  const auto median = validate::median_error(results);
  return !limit || (median && *median <= *limit) ? sim::exit_ok : sim::exit_too_inaccurate;
}

int collectives(const Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::string file = arguments.first("which file?");
  const sim::CsvFile read = sim::read_csv(file);
  if (calibrate::holds_crossovers(read)) return crossovers(read, arguments, catalogue);
  const auto rows = validate::measured_rows(read);
  validate::CollectiveOptions options;
  options.nccl = arguments.get("nccl", options.nccl);
  if (arguments.has("with-curves") && arguments.has("model-only"))
    throw UsageError("--with-curves and --model-only exclude each other");
  if (arguments.has("with-curves")) options.curves = validate::Curves::all;
  if (arguments.has("model-only")) options.curves = validate::Curves::none;
  return print(validate::compare_collectives(file, rows, published(), catalogue, options),
               collectives_verb, arguments);
}

int kernels(const Arguments& arguments, const sim::Catalogue& catalogue) {
  arguments.first("which file?");
  const std::string word = arguments.choice("leave-out");
  const auto leave_out = word == "gpu"     ? validate::LeaveOut::gpu
                         : word == "shape" ? validate::LeaveOut::shape
                                           : validate::LeaveOut::source;
  std::string files;
  std::vector<validate::MeasuredRow> rows;
  for (const std::string& file : arguments.positional()) {
    files += (files.empty() ? "" : ", ") + file;
    for (validate::MeasuredRow& row : validate::measured_rows(sim::read_csv(file)))
      rows.push_back(std::move(row));
  }
  const auto compared = validate::compare_kernels(files, rows, published(), catalogue, leave_out);
  const bool cards = leave_out == validate::LeaveOut::gpu;
  return print(compared, kernels_verb, arguments, cards ? coverage_text(compared) : "");
}

int trends(const Arguments& arguments, const sim::Catalogue& catalogue, unsigned threads) {
  std::vector<std::pair<std::string, sim::TomlValue>> more;
  for (const std::string& setting : arguments.all("set")) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("--set " + setting + " is no KEY=VALUE");
    const std::string key = setting.substr(0, equals);
    more.emplace_back(key, sim::read_setting(setting.substr(equals + 1), "--set " + key));
  }
  const std::string file = arguments.get("sets", catalogue.directory() + "/study/sets.toml");
  const auto sets = validate::read_study_sets(file, more);
  sim::Session session(catalogue);
  try {
    sim::tell(stdout, validate::trends_text(session, sets, threads, arguments.has("quiet")));
  } catch (const validate::Interrupted&) {
    return sim::stop_code();
  }
  return sim::exit_ok;
}

int study(const Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::stop_requested();  // before anything is read
  const unsigned threads = arguments.threads();
  if (arguments.has("trends")) return trends(arguments, catalogue, threads);
  for (const char* name : {"set", "sets"})
    if (arguments.has(name)) throw UsageError(std::string("--") + name + " goes with --trends");
  for (const std::string& file : validate::study_files(catalogue)) {
    const sim::Results results =
        validate::run_study(file, catalogue, threads, arguments.has("quiet"));
    sim::tell(stdout, validate::study_text(results) + "\n");
    if (results.interrupted) return sim::stop_code();
  }
  std::fputs("`measured` figures are circular; validate collectives leaves their own curves out.\n",
             stdout);
  return sim::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  const sim::Command commands[] = {{collectives_verb, collectives},
                                   {kernels_verb, kernels},
                                   {validate::published_verb, validate::run_published},
                                   {validate::layers_verb, validate::run_layers},
                                   {validate::confidence_verb, validate::run_confidence},
                                   {validate::goodput_verb, validate::run_goodput},
                                   {validate::memory_verb, validate::run_memory},
                                   {validate::run_verb, validate::command_run},
                                   {validate::cluster_verb, validate::command_cluster},
                                   {study_verb, study},
                                   {validate::trace_verb, validate::run_trace},
                                   {.verb = validate::diagnose_verb,
                                    .run = validate::run_diagnose,
                                    .schema = validate::diagnosis_schema}};
  return sim::program_main(
      {"stepcast-validate", "shows what was measured beside what is simulated", commands}, argc,
      argv);
}
