#include "validate/published/published.hpp"

#include <mutex>

#include "engine/check.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/parallel.hpp"
#include "sim/program/progress.hpp"
#include "sim/run/memory_figures.hpp"
#include "validate/published/own_kernels.hpp"
#include "validate/published/pattern.hpp"
#include "validate/published/scenario.hpp"

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

void predict(const ScenarioMaker& maker, const OwnKernels& own, PublishedResult& result,
             const std::string& file, sim::Session& session) {
  const std::string where =
      (result.row.file.empty() ? file : result.row.file) + ":" + std::to_string(result.row.line);
  RowScenario made = maker.scenario_of(result.row, where);
  result.assumed = std::move(made.assumed);
  result.refused = std::move(made.refused);
  result.virtual_open = made.virtual_open;
  if (!made.scenario) return;
  if (result.row.has_experts())  // those that a token meets
    result.parameters = workloads::model_flops(made.scenario->model, 1, 1).value / 6.0;
  else if (!(result.parameters > 0))
    result.parameters = static_cast<double>(workloads::parameters(made.scenario->model));
  try {
    sim::StepReport report = session.step(*made.scenario);
    report.figures = sim::memory_figures(report.scenario);
    result.predicted_s = seconds(report.step_time);
    const auto gibibytes = [](Bytes bytes) { return static_cast<double>(bytes.value) / gib; };
    result.memory_gib = gibibytes(report.memory.total());
    result.allocated_gib = gibibytes(report.figures.allocated);
    result.reserved_gib = gibibytes(report.figures.reserved);
    result.process_gib = gibibytes(report.figures.process());
    result.needed_gib = gibibytes(report.figures.needed());
    result.gpu_memory_gib = gibibytes(made.scenario->node.gpu.memory);
    result.own_kernels = own.measured(result.row.url, made.scenario->node.gpu.name);
    result.forecast = sim::case_of(report);
    result.warnings = report.warnings;
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

double PublishedResult::reported_memory_gib() const {
  if (row.mem_figure == "allocated") return allocated_gib;
  if (row.mem_figure == "reserved") return reserved_gib;
  if (row.mem_figure == "process") return process_gib;
  return memory_gib.value_or(0);
}

std::vector<PublishedResult> scored_in(std::vector<PublishedResult> results, Bucket bucket) {
  for (PublishedResult& r : results) r.in_scope = bucket == Bucket::none || r.bucket == bucket;
  return results;
}

std::vector<PublishedResult> predict_published(const std::string& file,
                                               const std::vector<PublishedRow>& rows,
                                               sim::Session& session,
                                               const PublishedOptions& options) {
  const ScenarioMaker maker(session);
  const OwnKernels own(*session.tables({"published"}));
  std::vector<PublishedResult> results;
  for (const PublishedRow& row : rows) {
    if (row.id.rfind(options.only, 0) != 0) continue;
    const RowScope scope = scope_of(row);
    PublishedResult& result = results.emplace_back();
    result.row = row;
    result.gpu_kind = scope.gpu_kind;
    result.kind = scope.kind;
    result.bucket = scope.bucket;
    if (scope.bucket == Bucket::modern)  // a constant for each precision
      result.gpu_kind += scope.kind.substr(scope.kind.find(' '));
    result.measured_s = measured_step(row);
    result.parameters = row.params_b.value_or(0.0) * 1e9;
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
      predict(maker, own, results[i], file, session);
    const std::lock_guard lock(shown);
    progress.show(++done);
  });
  return results;
}

}  // namespace stepcast::validate
