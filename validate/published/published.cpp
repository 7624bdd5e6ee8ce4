#include "validate/published/published.hpp"

#include <mutex>

#include "engine/check.hpp"
#include "sim/program/cache.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/parallel.hpp"
#include "sim/program/progress.hpp"
#include "sim/run/memory_figures.hpp"
#include "validate/published/own_kernels.hpp"
#include "validate/published/scenario.hpp"
#include "validate/rows/pattern.hpp"

namespace stepcast::validate {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

double measured_step(const PublishedRow& row) {
  if (row.step_time_s && *row.step_time_s > 0) return *row.step_time_s;
  if (!row.tokens_per_s_per_gpu || !(*row.tokens_per_s_per_gpu > 0)) return 0.0;
  const double tokens = static_cast<double>(row.global_batch_seqs.value_or(0)) *
                        static_cast<double>(row.seq_len.value_or(0));
  return tokens / (static_cast<double>(row.gpus.value_or(1)) * *row.tokens_per_s_per_gpu);
}

/// What is taken of an answer: of equal scenarios, as tables of several releases have them, once.
struct Answer {
  double step_s = 0, mfu = 0;
  double memory_gib = 0, allocated_gib = 0, reserved_gib = 0, process_gib = 0, needed_gib = 0;
  Bytes needed;
  sim::Case forecast;
  std::vector<std::string> warnings;
};
using Answers = sim::Cache<std::string, Answer>;
constexpr std::size_t most_answers = 512;  // of some 10 KiB

/// All that an answer depends on.
std::string key_of(const RowScenario& made) {
  sim::TomlValue document = made.document;
  document.set("title", sim::toml_text("", document.where));
  std::string key = sim::write_toml(document);
  for (const std::string& changed : made.scenario->changed) key += changed + "\n";
  return key;
}

double gibibytes(Bytes bytes) { return static_cast<double>(bytes.value) / gib; }

Answer answer_of(const sim::Scenario& scenario, sim::Session& session) {
  sim::StepReport report = session.step(scenario);
  replay(report.memory, report.scenario);
  const workloads::MemoryFigures& figures = report.memory;
  return {seconds(report.step_time),
          report.mfu,
          gibibytes(report.memory.total()),
          gibibytes(figures.allocated),
          gibibytes(figures.reserved),
          gibibytes(figures.process()),
          gibibytes(figures.needed()),
          figures.needed(),
          sim::case_of(report),
          report.warnings};
}

/// What rows share.
struct Predictor {
  Predictor(sim::Session& of, const std::string& table)
      : session(of), maker(of), own(*of.tables({"published"})), file(table) {}

  sim::Session& session;
  const ScenarioMaker maker;
  const OwnKernels own;
  const std::string& file;
  Answers answers{most_answers};
};

/// What of a result follows from its row alone.
void describe(PublishedResult& result) {
  const RowScope scope = scope_of(result.row);
  result.gpu_kind = scope.gpu_kind;
  result.kind = scope.kind;
  result.bucket = scope.bucket;
  if (scope.bucket == Bucket::modern)  // a constant for each precision
    result.gpu_kind += scope.kind.substr(scope.kind.find(' '));
  result.measured_s = measured_step(result.row);
  result.parameters = result.row.params_b.value_or(0.0) * 1e9;
}

void predict(Predictor& by, PublishedResult& result) {
  const std::string where =
      (result.row.file.empty() ? by.file : result.row.file) + ":" + std::to_string(result.row.line);
  RowScenario made = by.maker.scenario_of(result.row, where);
  result.assumed = std::move(made.assumed);
  result.refused = std::move(made.refused);
  result.virtual_open = made.virtual_open;
  result.tokens_open = made.tokens_open;
  result.batch_open = made.batch_open;
  result.aside = by.maker.aside(result.row);
  result.row = std::move(made.row);
  describe(result);
  if (!made.scenario) return;
  const sim::Scenario& scenario = *made.scenario;
  if (result.row.has_experts())  // those that a token meets
    result.parameters = workloads::model_flops(scenario.model, 1, 1).value / 6.0;
  else if (!(result.parameters > 0))
    result.parameters = static_cast<double>(workloads::parameters(scenario.model));
  try {
    const auto answer =
        by.answers.get(key_of(made), [&] { return answer_of(scenario, by.session); });
    result.predicted_s = answer->step_s;
    result.memory_gib = answer->memory_gib;
    result.allocated_gib = answer->allocated_gib;
    result.reserved_gib = answer->reserved_gib;
    result.process_gib = answer->process_gib;
    result.needed_gib = answer->needed_gib;
    result.forecast = answer->forecast;
    result.warnings = answer->warnings;
    result.above_peak = result.measured_s > 0 && answer->mfu * answer->step_s > result.measured_s;
    if (result.above_peak)
      result.assumed.emplace_back(
          "its time is not compared: as it stands it takes more than the peak of its tensor cores");
    result.gpu_memory_gib = gibibytes(scenario.node.gpu.memory);
    result.p_fits = by.session.memory_odds()
                        .without(result.row.source_key())
                        .fits(answer->forecast.kind, answer->needed, scenario.node.gpu.memory);
    result.own_kernels = by.own.measured(result.row.url, scenario.node.gpu.name);
  } catch (const InputError& error) {
    result.refused = error.problem();
  } catch (const std::exception& error) {  // ours; the other rows are not lost to it
    const std::string what = error.what();
    result.refused = "internal error: " + what.substr(0, what.find('\n'));
  }
}

}  // namespace

bool PublishedResult::whole_run() const {
  static const Pattern words("GPU.hours|whole.run", "whole_run");
  return words.found_in(row.notes);
}

bool PublishedResult::times_a_step() const {
  static const Pattern words("mixed length", "times_a_step");
  return measured_s > 0 && !tokens_open && !batch_open && !above_peak && row.confidence != "low" &&
         !words.found_in(row.notes);
}

double PublishedResult::memory_of(const std::string& figure) const {
  if (figure == "allocated") return allocated_gib;
  if (figure == "reserved") return reserved_gib;
  if (figure == "process") return process_gib;
  return memory_gib.value_or(0);
}

double p_fits(const PublishedResult& result) { return result.p_fits; }

std::vector<PublishedResult> scored_in(std::vector<PublishedResult> results, Bucket bucket) {
  for (PublishedResult& r : results) r.in_scope = bucket == Bucket::none || r.bucket == bucket;
  return results;
}

std::vector<PublishedResult> predict_published(const std::string& file,
                                               const std::vector<PublishedRow>& rows,
                                               sim::Session& session,
                                               const PublishedOptions& options) {
  Predictor predictor(session, file);
  std::vector<PublishedResult> results;
  for (const PublishedRow& row : rows) {
    if (row.id.rfind(options.only, 0) != 0) continue;
    PublishedResult& result = results.emplace_back();
    result.row = row;
    describe(result);
  }
  results = scored_in(std::move(results), options.bucket);
  for (PublishedResult& result : results) result.refused = "interrupted";  // until it is predicted
  const bool dense = options.bucket == Bucket::dense;
  sim::Progress progress(results.size(), sim::Progress::style_for(options.quiet), "rows");
  std::mutex shown;
  std::size_t done = 0;
  sim::for_each_index(results.size(), options.threads, sim::stop_requested(), [&](std::size_t i) {
    if (dense && results[i].bucket == Bucket::modern)
      results[i].refused =
          "experts, low precision or Blackwell: stepcast validate published modern";
    else
      predict(predictor, results[i]);
    const std::lock_guard lock(shown);
    progress.show(++done);
  });
  return results;
}

}  // namespace stepcast::validate
