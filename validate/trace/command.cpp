#include "validate/trace/command.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "validate/trace/facts.hpp"
#include "validate/trace/log.hpp"
#include "validate/trace/measure.hpp"
#include "validate/trace/records/nsight.hpp"
#include "validate/trace/records/numbers.hpp"
#include "validate/trace/report.hpp"
#include "validate/trace/simulated.hpp"
#include "validate/trace/timeline.hpp"
#include "validate/trace/verdict.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option options[] = {
    {"scenario", "FILE.toml", "",
     "what was run, as for stepcast run; one point, no sweep (default: read from the files)"},
    {"set", "KEY=VALUE", "", "set any key (stepcast show keys); may be repeated"},
    {"out", "FILE.toml", "", "where the scenario that was read goes (default: run.toml beside)"},
    {"skip", "N", "", "steps to leave out at the start (default: 1 of a trace, 10 % of a log)"},
    {"fail-above", "PERCENT", "", "exit code 5 when the error of the step time is larger"},
    sim::json_option,
    sim::rows_option,
    sim::report_option,
    sim::svg_option,
};

struct Inputs {
  std::vector<RankTrace> traces;
  std::vector<std::pair<std::string, sim::Timeline>> timelines;  // by file
  std::vector<StepLog> logs;
  Facts facts;
};

void read_input(const std::string& path, const sim::Catalogue& catalogue, Inputs& out) {
  TraceFile file(path);
  if (file.ahead().empty()) throw InputError(path, "is empty");
  if (path.ends_with(".nsys-rep"))
    throw InputError(path, "is a report of Nsight Systems, not its export",
                     "nsys export --type sqlite " + path);
  if (is_timeline(file)) {
    out.timelines.emplace_back(path, read_timeline(path));
  } else if (is_sqlite(file)) {
    if (file.packed())
      throw InputError(path, "is packed, and SQLite reads no packed files", "gunzip " + path);
    for (RankTrace& trace : read_nsight(path)) {
      add_facts(out.facts, trace, catalogue);
      out.traces.push_back(std::move(trace));
    }
  } else if (is_trace(file) && !is_configuration(file.ahead())) {
    out.traces.push_back(read_trace(path, file));
    add_facts(out.facts, out.traces.back(), catalogue);
  } else {
    StepLog log = read_log(path, file);
    add_facts(out.facts, log.settings, catalogue, path);
    if (!log.framework.empty()) out.logs.push_back(std::move(log));
  }
}

Inputs read_inputs(const std::vector<std::string>& files, const sim::Catalogue& catalogue) {
  Inputs out;
  for (const std::string& path : files) read_input(path, catalogue, out);
  if (out.logs.size() > 1)
    throw InputError(out.logs[1].file, "is a second log beside " + out.logs[0].file,
                     "one run has one log; traces may be several");
  if (out.timelines.size() > 1 || (!out.timelines.empty() && !out.traces.empty()))
    throw InputError(out.timelines.back().first, "is a timeline of stepcast beside other traces",
                     "a timeline shows all ranks: give it alone");
  if (out.traces.empty() && out.timelines.empty() && out.logs.empty()) throw no_steps_in(files[0]);
  return out;
}

sim::TomlValue document_in(const std::string& path) {
  const sim::Study study = sim::read_study(sim::read_toml_file(path));
  if (study.num_points() != 1)
    throw InputError(path, fmt::format("is a sweep of {} points", study.num_points()),
                     "a trace is of one run: write its scenario");
  return study.document_of(study.point(0));
}

struct Run {
  sim::Scenario scenario;
  std::string from;  // its file
  std::vector<std::string> notes{};
};

/// Writes what was read beside what it was read from, unless a file of the user's stands there.
void keep_document(const sim::TomlValue& document, const sim::Arguments& arguments, Run& out) {
  namespace fs = std::filesystem;
  const std::vector<std::string>& files = arguments.positional();
  const std::string path =
      arguments.get("out", (fs::path(files[0]).parent_path() / "run.toml").string());
  std::string text = "# Read by stepcast validate trace from:";
  for (const std::string& file : files) text += " " + fs::path(file).filename().string();
  text += "\n" + sim::write_toml(document);
  const auto not_kept = [&](const InputError& why) {
    out.notes.push_back(fmt::format("The scenario that was read is in no file: {}.", why.what()));
  };
  if (fs::exists(path) && sim::read_packed(path) != text) {
    const InputError other(path, "says something else than what was read",
                           "it is left as it is: --out FILE.toml writes another");
    if (arguments.has("out")) throw other;
    return not_kept(other);
  }
  try {
    if (!fs::exists(path)) sim::write_whole(path, text);
    out.from = path;
  } catch (const sim::OutputError& error) {
    if (arguments.has("out")) throw;
    not_kept(error);
  }
}

Run run_of(const Inputs& inputs, const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const auto settings = sim::settings_of(trace_verb, arguments);
  if (arguments.has("scenario")) {
    if (arguments.has("out"))
      throw sim::UsageError("--out keeps a scenario that is read, --scenario gives one");
    sim::TomlValue document = document_in(arguments.get("scenario"));
    for (const auto& [key, value] : settings) sim::set_path(document, key, value);
    return {sim::read_scenario(document, catalogue), arguments.get("scenario")};
  }
  const sim::TomlValue document = document_of(inputs.facts, settings, catalogue);
  Run out{sim::read_scenario(document, catalogue), "as read"};
  if (const std::string open = left_open(document, out.scenario); !open.empty())
    out.notes.push_back(open);
  keep_document(document, arguments, out);
  return out;
}

/// The log's step counts: the profiler slows the steps that it records.
void add_log(MeasuredStep& measured, MeasuredStep log) {
  if (measured.mean.step)
    measured.notes.push_back(fmt::format("Step time of the log; {:.1f} ms under the profiler.",
                                         1e3 * seconds(*measured.mean.step)));
  measured.mean.step = log.mean.step;
  measured.mean.tokens_per_second_per_gpu = log.mean.tokens_per_second_per_gpu;
  measured.mean.flops_per_second_per_gpu = log.mean.flops_per_second_per_gpu;
  measured.mean.mfu = log.mean.mfu;
  measured.mean.memory = log.mean.memory;
  measured.notes.insert(measured.notes.begin(), log.notes.begin(), log.notes.end());
}

/// Tokens of a step and GPU as the files say, else as the scenario does.
double tokens_per_gpu(const Facts& facts, const sim::Scenario& s) {
  const auto batch = facts.integer("batch.global"), sequence = facts.integer("model.sequence");
  if (batch && sequence && facts.ranks)
    return static_cast<double>(*batch * *sequence) / static_cast<double>(*facts.ranks);
  return static_cast<double>(s.global_batch * s.batch.sequence) / static_cast<double>(s.gpus);
}

/// Step time and tokens per second say the same.
void complete(StepBreakdown& step, double tokens) {
  if (!step.step && step.tokens_per_second_per_gpu)
    step.step = to_duration(tokens / *step.tokens_per_second_per_gpu);
  else if (step.step && !step.tokens_per_second_per_gpu)
    step.tokens_per_second_per_gpu = tokens / seconds(*step.step);
}

MeasuredStep measure(const Inputs& inputs, std::optional<std::int64_t> skip) {
  MeasuredStep out;
  if (!inputs.traces.empty()) out = measure_traces(inputs.traces, skip);
  for (const auto& [file, timeline] : inputs.timelines) {
    if (skip.value_or(0) > 0)
      throw InputError(file, fmt::format("has 1 whole step, {} to be left out", *skip),
                       "leave --skip out");
    out = measure_timeline(timeline, file);
  }
  for (const StepLog& log : inputs.logs) add_log(out, measure_log(log, skip));
  return out;
}

TraceComparison compare(const Inputs& inputs, const sim::Arguments& arguments,
                        sim::Session& session) {
  std::optional<std::int64_t> skip;
  if (arguments.has("skip")) skip = arguments.count("skip", 0, 0);
  MeasuredStep measured = measure(inputs, skip);
  Run run = run_of(inputs, arguments, session.catalogue());
  SimulatedStep simulated =
      simulate_breakdown(std::move(run.scenario), session, !measured.mean.kernels.empty());
  const sim::Scenario& s = simulated.report.scenario;
  complete(measured.mean, tokens_per_gpu(inputs.facts, s));
  TraceComparison out{arguments.positional(),
                      run.from,
                      fmt::format("{} on {} x {}", s.model.name, s.gpus, s.node.gpu.name),
                      contradictions(inputs.facts, s),
                      measured.mean,
                      simulated.mean,
                      verdict_of(measured.mean, simulated)};
  for (std::string& note : run.notes) out.notes.push_back(std::move(note));
  for (const std::string& note : inputs.facts.notes) out.notes.push_back(note);
  for (std::string& note : measured.notes) out.notes.push_back(std::move(note));
  for (const std::string& warning : simulated.report.warnings)
    out.notes.push_back("Simulation: " + warning);
  return out;
}

}  // namespace

const sim::Verb trace_verb{
    "stepcast validate trace",
    "FILE...",
    1 << 20,
    "A run of your own beside its simulation: PyTorch profiler traces (.json, .json.gz; one per "
    "rank), or Nsight Systems' exports (.sqlite), or the log of Megatron-LM, torchtitan, NeMo, "
    "llm-foundry or DeepSpeed, or both; or a "
    "timeline of stepcast. What the log lacks of its configuration may stand beside it: .toml, "
    ".yaml, "
    ".json, launch arguments.",
    options,
    "stepcast validate trace rank0.json.gz rank1.json.gz --scenario run.toml"};

int run_trace(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  arguments.first("which files?");
  sim::check_forms(arguments);
  const auto limit = arguments.share("fail-above");
  sim::Session session(catalogue);
  const TraceComparison comparison =
      compare(read_inputs(arguments.positional(), catalogue), arguments, session);
  const sim::ToldSection told = told_of(comparison);
  const bool printed =
      sim::print_answer(arguments, forms_of(told, {"quantities", "kernels", "collectives"}));
  const sim::HandoutFiles files = sim::handout_files(arguments);
  const bool handed = !files.any() || sim::handed_out(files, [&] {
    return trace_page(comparison, sim::origin_of(trace_verb, arguments));
  });
  if (!printed || !handed) return sim::exit_unwritten;
  const auto error = step_error(comparison);
  return limit && !(error && std::abs(*error) <= *limit) ? sim::exit_too_inaccurate : sim::exit_ok;
}

}  // namespace stepcast::validate
