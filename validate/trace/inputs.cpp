#include "validate/trace/inputs.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/inputs/launch_file.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "validate/trace/records/nsight.hpp"
#include "validate/trace/timeline.hpp"

namespace stepcast::validate {
namespace {

/// Writes what was read beside what it was read from, unless a file of the user's stands there.
void keep_document(const sim::TomlValue& document, const std::string& verb,
                   const sim::Arguments& arguments, RunScenario& out) {
  namespace fs = std::filesystem;
  const std::vector<std::string>& files = arguments.positional();
  const std::string path =
      arguments.get("out", (fs::path(files[0]).parent_path() / "run.toml").string());
  std::string text = "# Read by " + verb + " from:";
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

/// A launch file beside the log; false: none that is understood.
bool read_launch(const std::string& path, const sim::Catalogue& catalogue, Facts& out) {
  std::optional<sim::LaunchInput> input;
  try {
    const sim::NamedText file{path, sim::read_toml_text(path)};
    input = sim::read_launch_files({&file, 1}, catalogue);
  } catch (const InputError&) {
  }
  if (!input) return false;
  add_facts(out, input->facts, path);
  const std::vector<std::string> said = sim::sentences_on(*input);
  out.notes.insert(out.notes.end(), said.begin(), said.end());
  return true;
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

}  // namespace

sim::TomlValue one_document(const std::string& path) {
  const sim::Study study = sim::read_study(sim::read_toml_file(path));
  if (study.num_points() != 1)
    throw InputError(path, fmt::format("is a sweep of {} points", study.num_points()),
                     "a trace is of one run: write its scenario");
  return study.document_of(study.point(0));
}

void read_run_file(const std::string& path, const sim::Catalogue& catalogue, TraceInputs& out) {
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
  } else if (file.ahead().starts_with("#!") && read_launch(path, catalogue, out.facts)) {
    // A script is no log.
  } else {
    try {
      StepLog log = read_log(path, file);
      add_facts(out.facts, log.settings, catalogue, path);
      if (!log.framework.empty()) out.logs.push_back(std::move(log));
    } catch (const InputError&) {
      if (!read_launch(path, catalogue, out.facts)) throw;
    }
  }
}

void count_updates(TraceInputs& in) {
  const auto updates = static_cast<double>(in.facts.updates);
  for (StepLog& log : in.logs) {
    if (log.framework != "verl" || updates <= 1) continue;
    for (double& step : log.step_s) step /= updates;
    in.facts.notes.push_back(fmt::format(
        "{}: a step of verl is {} updates of the policy; timing_s/update_actor is shared by them.",
        log.file, in.facts.updates));
  }
}

void check_one_run(const TraceInputs& in, const std::string& first_file) {
  if (in.logs.size() > 1)
    throw InputError(in.logs[1].file, "is a second log beside " + in.logs[0].file,
                     "one run has one log; traces may be several");
  if (in.timelines.size() > 1 || (!in.timelines.empty() && !in.traces.empty()))
    throw InputError(in.timelines.back().first, "is a timeline of stepcast beside other traces",
                     "a timeline shows all ranks: give it alone");
  if (in.traces.empty() && in.timelines.empty() && in.logs.empty()) throw no_steps_in(first_file);
}

RunScenario scenario_of(const TraceInputs& inputs, const sim::Verb& verb,
                        const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const auto settings = sim::settings_of(verb, arguments);
  if (arguments.has("scenario")) {
    if (arguments.has("out"))
      throw sim::UsageError("--out keeps a scenario that is read, --scenario gives one");
    sim::TomlValue document = one_document(arguments.get("scenario"));
    for (const auto& [key, value] : settings) sim::set_path(document, key, value);
    return {sim::read_scenario(document, catalogue), arguments.get("scenario")};
  }
  const sim::TomlValue document = document_of(inputs.facts, settings, catalogue);
  RunScenario out{sim::read_scenario(document, catalogue), "as read"};
  if (const std::string open = sim::left_open(document, out.scenario); !open.empty())
    out.notes.push_back(open);
  keep_document(document, verb.name, arguments, out);
  return out;
}

double tokens_per_gpu(const Facts& facts, const sim::Scenario& s) {
  const auto batch = facts.integer("batch.global"), sequence = facts.integer("model.sequence");
  if (batch && sequence && facts.ranks)
    return static_cast<double>(*batch * *sequence) / static_cast<double>(*facts.ranks);
  return static_cast<double>(s.global_batch * s.batch.sequence) / static_cast<double>(s.gpus);
}

void complete(StepBreakdown& step, double tokens) {
  if (!step.step && step.tokens_per_second_per_gpu)
    step.step = to_duration(tokens / *step.tokens_per_second_per_gpu);
  else if (step.step && !step.tokens_per_second_per_gpu)
    step.tokens_per_second_per_gpu = tokens / seconds(*step.step);
}

MeasuredStep measured_step(const TraceInputs& inputs, std::optional<std::int64_t> skip) {
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

}  // namespace stepcast::validate
