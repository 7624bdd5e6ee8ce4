#include "validate/diagnose/command.hpp"

#include <fmt/format.h>

#include <cmath>

#include "engine/check.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/program/answer_forms.hpp"
#include "validate/diagnose/attribution.hpp"
#include "validate/diagnose/clues.hpp"
#include "validate/diagnose/files.hpp"
#include "validate/diagnose/logs.hpp"
#include "validate/diagnose/network_tests.hpp"
#include "validate/diagnose/node_reports.hpp"
#include "validate/diagnose/percentile.hpp"
#include "validate/diagnose/report.hpp"
#include "validate/diagnose/score.hpp"
#include "validate/trace/inputs.hpp"
#include "validate/trace/simulated.hpp"
#include "validate/trace/timeline.hpp"
#include "validate/trace/verdict.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option diagnose_options[] = {
    run_scenario_option,
    run_set_option,
    run_out_option,
    run_skip_option,
    {"faults", "N", "", "without files: runs of each fault (default 13)"},
    {"healthy", "N", "", "without files: runs without one (default 50)"},
    {"seed", "N", "", "without files: of the faults"},
    {"threads", "N", "", "without files: runs at once (default: all cores)"},
    {"no-alternatives", "", "", "no search for other plans"},
    sim::json_option,
    sim::rows_option,
    sim::report_option,
    sim::svg_option,
};

int score(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const auto outcomes =
      diagnose_faults(catalogue, arguments.count("faults", 13, 0),
                      arguments.count("healthy", 50, 0), arguments.seed(), arguments.threads());
  const sim::ToldSection told = told_of(outcomes);
  if (!sim::print_answer(arguments, sim::forms_of(told, "diagnose-score", {"faults", "runs"})))
    return sim::exit_unwritten;
  return good_enough(outcomes) ? sim::exit_ok : sim::exit_too_inaccurate;
}

/// All ranks' parts, whatever the files are; none of a log alone.
std::vector<RankParts> rank_parts(const TraceInputs& in, std::optional<std::int64_t> skip) {
  if (!in.traces.empty()) return parts_of(in.traces, skip);
  for (const auto& [file, timeline] : in.timelines) return parts_of(traces_of(timeline, file), 1);
  return {};
}

/// Of a log alone: the gap, and nothing that divides it.
Attribution without_parts(const StepBreakdown& measured, const ExpectedStep& expected) {
  Attribution out;
  out.measured = seconds(*measured.step);
  out.expected = seconds(expected.report.step_time);
  out.causes.push_back({CauseKind::not_explained, out.measured - out.expected});
  return out;
}

/// A log's FLOP/s against its own step time: frameworks count FLOPs by up to a third apart.
void hold_against_itself(const StepBreakdown& m, const sim::StepReport& expected,
                         std::vector<std::string>& out) {
  constexpr double counted_apart = 0.35;
  if (!m.flops_per_second_per_gpu || !m.step) return;
  const double by_time =
      expected.model_flops_per_gpu.value * seconds(expected.step_time) / seconds(*m.step);
  if (std::abs(*m.flops_per_second_per_gpu / by_time - 1) < counted_apart) return;
  out.push_back(fmt::format(
      "Warning: the log says {:.0f} TFLOP/s per GPU, its step time {:.0f} of this model.",
      *m.flops_per_second_per_gpu / 1e12, by_time / 1e12));
}

/// Logs alone, of which there are several: no one run.
bool are_logs(const DiagnoseInputs& in) {
  return in.logs.size() > 1 && in.run.traces.empty() && in.run.timelines.empty();
}

int compare(const DiagnoseInputs& in, const sim::Arguments& arguments, sim::Session& session) {
  for (const char* name : {"out", "report", "svg"})
    if (arguments.has(name))
      throw sim::UsageError(fmt::format("--{} is of one run", name), "give one log");
  std::optional<std::int64_t> skip;
  if (arguments.has("skip")) skip = arguments.count("skip", 0, 0);
  std::optional<sim::TomlValue> given;
  if (arguments.has("scenario")) given = one_document(arguments.get("scenario"));
  LogComparison found = compare_logs(in, skip, sim::settings_of(diagnose_verb, arguments),
                                     given ? &*given : nullptr, session);
  for (const Sign& sign : in.around.signs)
    found.notes.push_back(fmt::format("{}: {}: a sign of \"{}\".", sign.where, sign.evidence,
                                      words_of(sign.kind).title));
  const sim::ToldSection told = told_of(found);
  if (!sim::print_answer(arguments, forms_of(told, "diagnose", {"runs", "changes"})))
    return sim::exit_unwritten;
  return is_slower(found) ? sim::exit_slower : sim::exit_ok;
}

/// Of files that say what is run and show no step of it: the forecast, and what would fit.
Diagnosis without_steps(Diagnosis out, DiagnoseInputs& in, const RunScenario& run,
                        sim::Session& session) {
  const sim::Scenario& s = out.expected.scenario;
  out.found.expected = seconds(out.expected.step_time);
  out.contradictions = contradictions(in.run.facts, s, session.catalogue().gpus());
  for (const std::vector<std::string>& notes : {run.notes, in.run.facts.notes})
    out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  for (const std::string& path : in.network_tests)
    add_network_test(path, s, session, in.around, out.notes);
  for (const std::string& path : in.topologies) add_topology(path, s, in.around, out.notes);
  add_signs(out.found, in.around, s, false, session, out.notes);
  constexpr double any = 1e300;
  if (!out.fits()) out.faster = faster_ways(s, any, session);
  return out;
}

Diagnosis diagnose(DiagnoseInputs in, const sim::Arguments& arguments, sim::Session& session) {
  std::optional<std::int64_t> skip;
  if (arguments.has("skip")) skip = arguments.count("skip", 0, 0);
  MeasuredStep measured = measured_step(in.run, skip);
  const RunScenario run = scenario_of(in.run, diagnose_verb, arguments, session.catalogue());
  const std::vector<RankParts> parts = rank_parts(in.run, skip);
  const ExpectedStep expected = expected_step(run.scenario, session, !parts.empty());
  const sim::Scenario& s = expected.report.scenario;
  const double tokens = tokens_per_gpu(in.run.facts, s);
  complete(measured.mean, tokens);
  Diagnosis out{arguments.positional(), run.from, expected.report, measured.mean, {}};
  if (!measured.mean.step && parts.empty()) return without_steps(std::move(out), in, run, session);
  if (!measured.mean.kernels.empty())
    out.mismatch = verdict_of(measured.mean, simulate_breakdown(s, session));
  const auto under = [&](const std::string& name, const std::string& value) {
    return exchanges_under(s, session, name, value);
  };
  out.found =
      parts.empty() ? without_parts(measured.mean, expected) : attribute(parts, expected, under);
  out.contradictions = contradictions(in.run.facts, s, session.catalogue().gpus());
  hold_against_itself(measured.mean, expected.report, out.contradictions);
  for (const std::vector<std::string>& notes : {run.notes, in.run.facts.notes, measured.notes})
    out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  for (const StepLog& log : in.run.logs)
    if (const auto series = series_of(log, tokens)) {
      add_series(out.found, *series);
      for (std::string& note : notes_of(*series)) out.notes.push_back(std::move(note));
    }
  for (const std::string& path : in.network_tests)
    add_network_test(path, s, session, in.around, out.notes);
  for (const std::string& path : in.topologies) add_topology(path, s, in.around, out.notes);
  if (parts.empty() && out.found.causes.back().seconds > noise_share * out.found.expected)
    out.notes.emplace_back(
        "A log alone does not say where the time goes. What would: traces of some steps (PyTorch "
        "profiler or Nsight Systems), best of all ranks of two nodes; the launch script's "
        "environment; NCCL_DEBUG=INFO of the start; nvidia-smi -q during the run.");
  add_signs(out.found, in.around, s, !parts.empty(), session, out.notes);
  out.slower_than = slower_than_share(expected.report, out.found.measured, session);
  if (!arguments.has("no-alternatives") && out.mismatch.empty())
    out.faster = faster_ways(s, out.found.expected, session);
  return out;
}

}  // namespace

const sim::Verb diagnose_verb{
    "stepcast diagnose",
    "[FILE...]",
    1 << 20,
    "Why a run of your own is slower than expected, and what to do: training logs, traces of one "
    "or "
    "many ranks, configurations, NCCL's and nvidia-smi's output, a pasted text with several of "
    "them, "
    "in any mix. Without a file (stepcast-validate diagnose): how often that is right on runs with "
    "a "
    "known fault.",
    diagnose_options,
    "stepcast diagnose train.log rank*.json.gz --set cluster.node=dgx-h100"};

int run_diagnose(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::check_forms(arguments);
  if (arguments.positional().empty()) return score(arguments, catalogue);
  for (const char* name : {"faults", "healthy", "seed", "threads"})
    if (arguments.has(name))
      throw sim::UsageError(fmt::format("--{} is of runs with a known fault", name),
                            "stepcast-validate diagnose, without files");
  sim::Session session(catalogue);
  const std::vector<std::string>& files = arguments.positional();
  DiagnoseInputs inputs = read_diagnose_files(files, catalogue);
  if (are_logs(inputs)) return compare(inputs, arguments, session);
  const bool said = !inputs.run.facts.all.empty() || arguments.has("scenario");
  if (inputs.shows_steps() || !said) check_one_run(inputs.run, files[0]);
  const Diagnosis diagnosis = diagnose(std::move(inputs), arguments, session);
  const sim::ToldSection told = told_of(diagnosis);
  const bool printed =
      sim::print_answer(arguments, forms_of(told, "diagnose", {"causes", "ranks", "faster"}));
  const sim::HandoutFiles handout = sim::handout_files(arguments);
  const bool handed = !handout.any() || sim::handed_out(handout, [&] {
    return diagnosis_page(diagnosis, sim::origin_of(diagnose_verb, arguments));
  });
  if (!printed || !handed) return sim::exit_unwritten;
  if (diagnosis.without_steps() && !diagnosis.fits()) return sim::exit_no_feasible_plan;
  return is_slower(diagnosis) ? sim::exit_slower : sim::exit_ok;
}

}  // namespace stepcast::validate
