#include "validate/trace/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "engine/check.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "sim/tables/gpu_names.hpp"
#include "validate/trace/log.hpp"
#include "validate/trace/measure.hpp"
#include "validate/trace/numbers.hpp"
#include "validate/trace/report.hpp"
#include "validate/trace/simulated.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option options[] = {
    {"scenario", "FILE.toml", "", "what was run, as for stepcast run; one point, no sweep"},
    {"skip", "N", "", "steps to leave out at the start (default: 1 of a trace, 10 % of a log)"},
    {"fail-above", "PERCENT", "", "exit code 5 when the error of the step time is larger"},
    {"json", "", "", "print JSON"},
};

struct Inputs {
  std::vector<RankTrace> traces;
  std::vector<StepLog> logs;
};

Inputs read_inputs(const std::vector<std::string>& files) {
  Inputs out;
  for (const std::string& path : files) {
    TraceFile file(path);
    if (file.ahead().empty()) throw InputError(path, "is empty");
    if (is_trace(file))
      out.traces.push_back(read_trace(path, file));
    else
      out.logs.push_back(read_log(path, file));
  }
  if (out.logs.size() > 1)
    throw InputError(out.logs[1].file, "is a second log beside " + out.logs[0].file,
                     "one run has one log; traces may be several");
  return out;
}

sim::Scenario scenario_of(const std::string& path, const sim::Catalogue& catalogue) {
  const sim::Study study = sim::read_study(sim::read_toml_file(path));
  if (study.num_points() != 1)
    throw InputError(path, fmt::format("is a sweep of {} points", study.num_points()),
                     "a trace is of one run: write its scenario");
  return sim::read_scenario(study.document_of(study.point(0)), catalogue);
}

/// "NVIDIA H100 80GB HBM3" as "NVIDIA-H100-80GB-HBM3": names of the catalogue have words too.
bool other_gpu(const std::string& measured, const std::string& catalogue) {
  std::string name = measured.starts_with("NVIDIA ") ? measured.substr(7) : measured;
  std::ranges::replace(name, ' ', '-');
  const std::string chip = name.substr(0, name.find('-'));
  return sim::kinship(chip, catalogue) != sim::Kinship::same;
}

/// Where the files contradict the scenario.
std::vector<std::string> contradictions(const Inputs& inputs, const sim::Scenario& s) {
  std::set<std::string> out;
  for (const RankTrace& trace : inputs.traces) {
    if (trace.world_size && *trace.world_size != s.gpus)
      out.insert(fmt::format("Warning: the trace is of {} ranks, the scenario of {} GPUs.",
                             *trace.world_size, s.gpus));
    if (!trace.gpu.empty() && other_gpu(trace.gpu, s.node.gpu.name))
      out.insert(fmt::format("Warning: the trace is of {}, the scenario of {}.",
                             printable(trace.gpu), s.node.gpu.name));
  }
  for (const StepLog& log : inputs.logs)
    if (log.global_batch && *log.global_batch != s.global_batch)
      out.insert(fmt::format("Warning: the log has a global batch of {}, the scenario of {}.",
                             *log.global_batch, s.global_batch));
  return {out.begin(), out.end()};
}

/// The log's step counts: the profiler slows the steps that it records.
void add_log(MeasuredStep& measured, MeasuredStep log) {
  if (measured.mean.step)
    measured.notes.push_back(fmt::format("Step time of the log; {:.1f} ms under the profiler.",
                                         1e3 * seconds(*measured.mean.step)));
  measured.mean.step = log.mean.step;
  measured.mean.tokens_per_second_per_gpu = log.mean.tokens_per_second_per_gpu;
  measured.mean.memory = log.mean.memory;
  measured.notes.insert(measured.notes.begin(), log.notes.begin(), log.notes.end());
}

/// Step time and tokens per second say the same.
void complete(StepBreakdown& step, double tokens_per_gpu) {
  if (!step.step && step.tokens_per_second_per_gpu)
    step.step = to_duration(tokens_per_gpu / *step.tokens_per_second_per_gpu);
  else if (step.step)
    step.tokens_per_second_per_gpu = tokens_per_gpu / seconds(*step.step);
}

TraceComparison compare(const Inputs& inputs, const sim::Arguments& arguments,
                        sim::Session& session) {
  std::optional<std::int64_t> skip;
  if (arguments.has("skip")) skip = arguments.count("skip", 0, 0);
  MeasuredStep measured;
  if (!inputs.traces.empty()) measured = measure_traces(inputs.traces, skip);
  for (const StepLog& log : inputs.logs) add_log(measured, measure_log(log, skip));

  const std::string file = arguments.get("scenario");
  SimulatedStep simulated = simulate_breakdown(scenario_of(file, session.catalogue()), session);
  const sim::Scenario& s = simulated.report.scenario;
  complete(measured.mean,
           static_cast<double>(s.global_batch * s.batch.sequence) / static_cast<double>(s.gpus));
  TraceComparison out{arguments.positional(),
                      file,
                      fmt::format("{} on {} x {}", s.model.name, s.gpus, s.node.gpu.name),
                      contradictions(inputs, s),
                      std::move(measured.mean),
                      std::move(simulated.mean)};
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
    "rank) or the log of Megatron-LM, torchtitan, NeMo, llm-foundry or DeepSpeed, or both.",
    options,
    "stepcast validate trace rank0.json.gz rank1.json.gz --scenario run.toml"};

int run_trace(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  arguments.first("which files?");
  if (!arguments.has("scenario"))
    throw sim::UsageError("which scenario was run? --scenario FILE.toml", trace_verb.example);
  const auto limit = arguments.share("fail-above");
  sim::Session session(catalogue);
  const TraceComparison comparison =
      compare(read_inputs(arguments.positional()), arguments, session);
  std::fputs(
      (arguments.has("json") ? trace_json(comparison) + "\n" : trace_text(comparison)).c_str(),
      stdout);
  const auto error = step_error(comparison);
  return limit && !(error && std::abs(*error) <= *limit) ? sim::exit_too_inaccurate : sim::exit_ok;
}

}  // namespace stepcast::validate
