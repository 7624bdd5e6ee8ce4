#include "validate/trace/command.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/command/handout_options.hpp"
#include "sim/program/answer_forms.hpp"
#include "validate/trace/inputs.hpp"
#include "validate/trace/report.hpp"
#include "validate/trace/simulated.hpp"
#include "validate/trace/verdict.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option options[] = {
    run_scenario_option,
    run_set_option,
    run_out_option,
    run_skip_option,
    {"fail-above", "PERCENT", "", "exit code 5 when the error of the step time is larger"},
    sim::json_option,
    sim::rows_option,
    sim::report_option,
    sim::svg_option,
};

TraceInputs read_inputs(const std::vector<std::string>& files, const sim::Catalogue& catalogue) {
  TraceInputs out;
  for (const std::string& path : files) read_run_file(path, catalogue, out);
  check_one_run(out, files[0]);
  count_updates(out);
  return out;
}

TraceComparison compare(const TraceInputs& inputs, const sim::Arguments& arguments,
                        sim::Session& session) {
  std::optional<std::int64_t> skip;
  if (arguments.has("skip")) skip = arguments.count("skip", 0, 0);
  MeasuredStep measured = measured_step(inputs, skip);
  RunScenario run = scenario_of(inputs, trace_verb, arguments, session.catalogue());
  SimulatedStep simulated =
      simulate_breakdown(std::move(run.scenario), session, !measured.mean.kernels.empty());
  const sim::Scenario& s = simulated.report.scenario;
  complete(measured.mean, tokens_per_gpu(inputs.facts, s));
  TraceComparison out{arguments.positional(),
                      run.from,
                      fmt::format("{} on {} x {}", s.model.name, s.gpus, s.node.gpu.name),
                      contradictions(inputs.facts, s, session.catalogue().gpus()),
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
  const bool printed = sim::print_answer(
      arguments, forms_of(told, "validate-trace", {"quantities", "kernels", "collectives"}));
  const sim::HandoutFiles files = sim::handout_files(arguments);
  const bool handed = !files.any() || sim::handed_out(files, [&] {
    return trace_page(comparison, sim::origin_of(trace_verb, arguments));
  });
  if (!printed || !handed) return sim::exit_unwritten;
  const auto error = step_error(comparison);
  return limit && !(error && std::abs(*error) <= *limit) ? sim::exit_too_inaccurate : sim::exit_ok;
}

}  // namespace stepcast::validate
