// The files of one run, each told by its content, and the scenario that they or the user say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/program/command_line.hpp"
#include "sim/run/timeline.hpp"
#include "sim/scenario/catalogue.hpp"
#include "validate/trace/facts.hpp"
#include "validate/trace/log.hpp"
#include "validate/trace/measure.hpp"

namespace stepcast::validate {

/// Options of verbs that take the files of a run.
inline constexpr sim::Option run_scenario_option{
    "scenario", "FILE.toml", "",
    "what was run, as for stepcast run; one point, no sweep (default: read from the files)"};
inline constexpr sim::Option run_set_option{"set", "KEY=VALUE", "",
                                            "set any key (stepcast show keys); may be repeated"};
inline constexpr sim::Option run_out_option{
    "out", "FILE.toml", "", "where the scenario that was read goes (default: run.toml beside)"};
inline constexpr sim::Option run_skip_option{
    "skip", "N", "", "steps to leave out at the start (default: 1 of a trace, 10 % of a log)"};

struct TraceInputs {
  std::vector<RankTrace> traces;
  std::vector<std::pair<std::string, sim::Timeline>> timelines;  // by file
  std::vector<StepLog> logs;
  Facts facts;
};

/// Adds what the file shows. Throws InputError for what cannot be read.
void read_run_file(const std::string& path, const sim::Catalogue& catalogue, TraceInputs& out);
/// Of a framework whose step is several updates of the weights, an update is the step from here on.
/// Once, when all files are read.
void count_updates(TraceInputs& inputs);
/// Throws InputError where files are of several runs, and where none shows a step.
void check_one_run(const TraceInputs& inputs, const std::string& first_file);

/// The one scenario of a file. Throws InputError for a sweep.
sim::TomlValue one_document(const std::string& path);

struct RunScenario {
  sim::Scenario scenario;
  std::string from;  // its file
  std::vector<std::string> notes{};
};

/// The scenario of --scenario, else what the files say, with --set on top; that one is kept in the
/// file of --out, or beside the first file. Throws InputError naming every key that nobody said.
RunScenario scenario_of(const TraceInputs& inputs, const sim::Verb& verb,
                        const sim::Arguments& arguments, const sim::Catalogue& catalogue);

/// Tokens of a step and GPU as the files say, else as the scenario does.
double tokens_per_gpu(const Facts& facts, const sim::Scenario& scenario);
/// Fills in of step time and tokens per second what the other says.
void complete(StepBreakdown& step, double tokens);

/// The first `skip` steps left out; unless given, as measure_traces() and measure_log() do.
MeasuredStep measured_step(const TraceInputs& inputs, std::optional<std::int64_t> skip);

}  // namespace stepcast::validate
