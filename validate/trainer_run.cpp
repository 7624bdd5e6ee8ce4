#include "validate/trainer_run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/check.hpp"
#include "sim/names.hpp"
#include "validate/trainer_checkpoint.hpp"
#include "validate/trainer_plan.hpp"
#include "validate/trainer_rank_report.hpp"
#include "validate/trainer_step.hpp"
#include "validate/trainer_text.hpp"

namespace stepcast::validate {
namespace {

using Clock = OperationLog::Clock;

constexpr std::int64_t generated_bytes = 200000;
constexpr std::size_t most_counted = 1000;  // steps whose times are kept: training may be long

Text text_for(const sim::Scenario& scenario, const RunSettings& settings) {
  if (!settings.text.empty()) return read_text(settings.text, scenario.model.vocab);
  return text_of(generated_text(generated_bytes), scenario.model.vocab);
}

/// What a checkpoint must agree in: model, plan, and what shapes the batch.
std::string text_of_job(const TrainerJob& job) {
  const workloads::TransformerShape& m = job.model;
  const workloads::ParallelPlan& p = job.plan;
  return fmt::format(
      "layers {} hidden {} heads {}/{}x{} ffn {} vocab {} tied {}, data {} x{} tensor {} sp {} "
      "pipeline {}, batch {}x{} sequence {}, rate {} seed {}",
      m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.ffn_hidden, m.vocab, m.tied_embeddings,
      sim::word_for(sim::data_parallel_names, p.data), p.data_degree, p.tensor, p.sequence_parallel,
      p.pipeline, job.batch.micro_batch, job.batch.micro_batches, job.batch.sequence,
      job.learning.rate, job.learning.seed);
}

/// An instant of the clock that all ranks of a machine share, the same on every rank; in double,
/// nanoseconds are exact for 100 days.
Clock::time_point common_origin(Communicator& world) {
  std::vector<double> now{static_cast<double>(Clock::now().time_since_epoch().count())};
  world.broadcast(now, 0);
  return Clock::time_point(Clock::duration(static_cast<Clock::rep>(now[0])));
}

Bytes largest_resident() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Bytes(usage.ru_maxrss * 1024);  // Linux counts KiB
}

/// One rank's training from its first step to its last.
class RankRun {
 public:
  RankRun(const sim::Scenario& scenario, const RunSettings& settings,
          std::unique_ptr<Communicator> world)
      : settings_(settings),
        job_(job_of(scenario)),
        job_text_(text_of_job(job_)),
        text_(text_for(scenario, settings)),
        trainer_(job_, make_groups(std::move(world), job_.plan),
                 make_host_kernels<float>(job_.batch.sequence, job_.model.head_dim)) {}

  Communicator& world() { return *trainer_.groups().world; }

  RankReport run(const OnStep& on_step) {
    load();
    RankReport report;
    report.rank = world().rank();
    report.first_step = trainer_.state().steps;
    world().barrier();
    origin_ = common_origin(world());
    Clock::time_point last = Clock::now();
    for (std::int64_t s = 0; s < settings_.steps; ++s) {
      const bool counts = s >= settings_.warm_up && report.step_times.size() < most_counted;
      const std::optional<double> loss = step(report, counts);
      const Clock::time_point now = Clock::now();
      if (counts) report.step_times.push_back(now - last);
      report.losses.push_back(loss);
      if (on_step && report.rank == 0) on_step(s, now - last, loss);
      save_if_due(s + 1);
      last = Clock::now();
    }
    report.buffers = trainer_.allocated();
    report.resident = largest_resident();
    return report;
  }

 private:
  KeptState kept() {
    const TrainerState<float> state = trainer_.state();
    return {state.weights, state.first_moments, state.second_moments};
  }

  void load() {
    if (!settings_.resume) return;
    trainer_.state().steps = load_checkpoint(settings_.checkpoint, job_text_, kept(), world());
  }

  std::optional<double> step(RankReport& report, bool counts) {
    const auto data = [&, at = trainer_.state().steps](std::int64_t micro_batch) {
      return samples_of(text_, job_.batch, at, trainer_.share().at.data, micro_batch);
    };
    const Clock::time_point begin = Clock::now();
    const StepResult result = trainer_.step(data, &log_);
    if (counts) report.add_step(log_.operations(), begin - origin_);
    return result.loss;
  }

  void save_if_due(std::int64_t done) {
    if (settings_.checkpoint.empty()) return;
    const bool last = done == settings_.steps;
    if (last || (settings_.save_every > 0 && done % settings_.save_every == 0))
      save_checkpoint(settings_.checkpoint, job_text_, trainer_.state().steps, kept(), world());
  }

  const RunSettings settings_;
  const TrainerJob job_;
  const std::string job_text_;
  const Text text_;
  Trainer<float> trainer_;
  OperationLog log_;
  Clock::time_point origin_;
};

}  // namespace

void check_trainable(const sim::Scenario& scenario) {
  if (scenario.collective)
    throw InputError(scenario.origin, "is a collective, not a model to train");
  if (scenario.node.gpu.architecture != topology::Architecture::host)
    throw InputError(scenario.origin,
                     "is for " + scenario.node.gpu.name +
                         ": the trainer of this build runs on the cores of this machine",
                     "take node = \"host\"");
  workloads::check(scenario.model, scenario.plan, scenario.batch, scenario.plan_origin);
  check(job_of(scenario), scenario.origin);
}

std::optional<TrainerResults> run_trainer(const sim::Scenario& scenario,
                                          const RunSettings& settings,
                                          std::unique_ptr<Communicator> world,
                                          const OnStep& on_step) {
  check_trainable(scenario);
  expects(settings.steps > settings.warm_up && settings.warm_up >= 0, "steps after the warm-up");
  RankRun run(scenario, settings, std::move(world));
  RankReport mine = run.run(on_step);
  const std::size_t typical = typical_step(mine, run.world());
  const std::vector<std::string> all = gather_texts(run.world(), to_text(mine, typical));
  if (run.world().rank() != 0) return std::nullopt;
  TrainerResults results = combined(all, scenario.plan);
  results.warm_up = settings.warm_up;
  return results;
}

}  // namespace stepcast::validate
