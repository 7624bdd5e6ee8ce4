// stepcast-validate: measured beside predicted.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "engine/check.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/command_line.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/report/json.hpp"
#include "validate/command/run.hpp"
#include "validate/command/study.hpp"
#include "validate/compare/collectives.hpp"
#include "validate/compare/kernels.hpp"
#include "validate/compare/report.hpp"
#include "validate/published/command.hpp"
#include "validate/study/trends.hpp"
#include "validate/trace/command.hpp"

namespace {

using namespace stepcast;
using sim::Arguments;
using sim::UsageError;
using Words = std::vector<std::string>;

constexpr sim::Option collective_options[] = {
    {"nccl", "VERSION", "", "NCCL of rows that state none (default 2.20)"},
    {"with-curves", "", "", "circular: also use the curves of the row's own source"},
    {"model-only", "", "", "use no measured curve at all"},
    {"fail-above", "PERCENT", "", "exit code 5 when the median error is larger"},
    {"json", "", "", "print JSON"},
};
constexpr sim::Option kernel_options[] = {
    {"leave-out", "WHAT", "", "source (default) or shape: what a prediction does not see"},
    {"fail-above", "PERCENT", "", "exit code 5 when the median error is larger"},
    {"json", "", "", "print JSON"},
};
constexpr sim::Option study_options[] = {
    {"threads", "N", "", "points to run at once (default: all cores)"},
    {"trends", "", "", "every statement as a number, by NCCL's own choice and by Simple"},
    {"quiet", "", "", "no progress"},
};

const sim::Verb collectives_verb{
    "validate collectives",
    "FILE.csv",
    1,
    "Measured collectives beside the network model, without the curves of the row's own source.",
    collective_options,
    "stepcast validate collectives calibrate/published/collectives.csv"};
const sim::Verb kernels_verb{
    "validate kernels",
    "FILE.csv",
    1,
    "Measured products and attention kernels beside the kernel model, the row's own source left "
    "out.",
    kernel_options,
    "stepcast validate kernels calibrate/published/kernels.csv"};
const sim::Verb study_verb{"validate study",
                           "",
                           0,
                           "The study's published figures beside the simulated ones.",
                           study_options,
                           "stepcast validate study"};

template <class Number>
Number number_of(const std::string& option, const std::string& text, Number least) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least))
    throw UsageError("'--" + option + " " + text + "' is no such number");
  return value;
}

std::string file_of(const Arguments& arguments, const sim::Verb& verb) {
  if (arguments.positional().empty()) throw UsageError("which file?", verb.example);
  return arguments.positional()[0];
}

/// The shipped table.
sim::CalibrationTable published() {
  const std::vector<std::string> tables = {"published"};
  return sim::read_calibrations(tables);
}

int print(const validate::Comparison& comparison, const Arguments& arguments) {
  const std::string text = arguments.has("json") ? validate::report_json(comparison) + "\n"
                                                 : validate::report_text(comparison);
  const std::string limit = arguments.get("fail-above");
  const double share = limit.empty() ? 0.0 : number_of("fail-above", limit, 0.0) / 100;
  std::fputs(text.c_str(), stdout);
  if (limit.empty()) return sim::exit_ok;
  const auto score = validate::summary_of(comparison).all;
  return score && score->median_ape <= share ? sim::exit_ok : sim::exit_too_inaccurate;
}

int collectives(const Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::string file = file_of(arguments, collectives_verb);
  const auto rows = validate::measured_rows(sim::read_csv(file));
  validate::CollectiveOptions options;
  options.nccl = arguments.get("nccl", options.nccl);
  if (arguments.has("with-curves") && arguments.has("model-only"))
    throw UsageError("--with-curves and --model-only exclude each other");
  if (arguments.has("with-curves")) options.curves = validate::Curves::all;
  if (arguments.has("model-only")) options.curves = validate::Curves::none;
  return print(validate::compare_collectives(file, rows, published(), catalogue, options),
               arguments);
}

int kernels(const Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::string file = file_of(arguments, kernels_verb);
  const std::string what = arguments.get("leave-out", "source");
  if (what != "source" && what != "shape")
    throw UsageError("'--leave-out " + what + "' is neither source nor shape");
  const auto rows = validate::measured_rows(sim::read_csv(file));
  const auto leave_out = what == "source" ? validate::LeaveOut::source : validate::LeaveOut::shape;
  return print(validate::compare_kernels(file, rows, published(), catalogue, leave_out), arguments);
}

int trends(const sim::Catalogue& catalogue, unsigned threads) {
  sim::Session session(catalogue);
  try {
    std::fputs(validate::trends_text(session, threads).c_str(), stdout);
  } catch (const validate::Interrupted&) {
    return sim::stop_code();
  }
  return sim::exit_ok;
}

int study(const Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::string text = arguments.get("threads");
  const unsigned threads = text.empty() ? std::max(1U, std::thread::hardware_concurrency())
                                        : number_of("threads", text, 1U);
  if (arguments.has("trends")) return trends(catalogue, threads);
  for (const std::string& file : validate::study_files(catalogue)) {
    const sim::Results results =
        validate::run_study(file, catalogue, threads, arguments.has("quiet"));
    std::fputs((validate::study_text(results) + "\n").c_str(), stdout);
    if (results.interrupted) return sim::stop_code();
  }
  std::fputs("`measured` figures are circular; validate collectives leaves their own curves out.\n",
             stdout);
  return sim::exit_ok;
}

struct Command {
  const char* name;
  const sim::Verb& verb;
  int (*run)(const Arguments&, const sim::Catalogue&);
};

const Command commands[] = {{"collectives", collectives_verb, collectives},
                            {"kernels", kernels_verb, kernels},
                            {"published", validate::published_verb, validate::run_published},
                            {"run", validate::run_verb, validate::command_run},
                            {"study", study_verb, study},
                            {"trace", validate::trace_verb, validate::run_trace}};

std::string usage() {
  std::string out = "usage: stepcast-validate VERB [arguments]\n\n";
  for (const Command& command : commands) {
    std::string name = command.name;
    name.resize(12, ' ');
    out += "  " + name + command.verb.summary + "\n";
  }
  return out + "\nstepcast-validate VERB --help says more\n" + sim::exit_codes_text();
}

int dispatch(const Words& words) {
  if (words.empty()) return std::fputs(usage().c_str(), stderr), sim::exit_usage;
  const std::string& verb = words.front();
  if (verb == "--help" || verb == "-h" || verb == "help")
    return std::fputs(usage().c_str(), stdout), sim::exit_ok;
  std::vector<std::string> known;
  for (const Command& command : commands) {
    known.emplace_back(command.name);
    if (verb != command.name) continue;
    const Arguments arguments = parse_arguments(command.verb, {words.begin() + 1, words.end()});
    if (arguments.has("help"))
      return std::fputs(sim::help_text(command.verb).c_str(), stdout), sim::exit_ok;
    return command.run(arguments, sim::Catalogue::standard());
  }
  throw UsageError("unknown command '" + verb + "'", sim::suggestion(verb, known));
}

/// One message on standard error; with --json also an object on standard output.
int report_error(const Words& words, int code, const std::string& where, const std::string& what,
                 const std::string& hint) {
  const std::string line =
      (where.empty() ? "stepcast-validate: " : where + ": ") + what + (hint.empty() ? "" : ", ");
  std::fprintf(stderr, "%s%s\n", line.c_str(), hint.c_str());
  if (std::find(words.begin(), words.end(), "--json") != words.end())
    std::fprintf(stdout, "%s\n", sim::error_json(code, where, what, hint).c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const Words words(argv + 1, argv + argc);
  try {
    const int code = dispatch(words);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return report_error({}, sim::exit_unwritten, "", "standard output cannot be written", "");
    return code;
  } catch (const UsageError& error) {
    return report_error(words, sim::exit_usage, "", error.problem(), error.hint());
  } catch (const sim::OutputError& error) {
    return report_error(words, sim::exit_unwritten, error.where(), error.problem(), error.hint());
  } catch (const InputError& error) {
    return report_error(words, sim::exit_bad_input, error.where(), error.problem(), error.hint());
  } catch (const std::exception& error) {
    return report_error(words, sim::exit_internal, "",
                        std::string("internal error: ") + error.what(), "please report it");
  }
}
