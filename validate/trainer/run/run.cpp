#include "validate/trainer/run/run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/output_place.hpp"
#include "validate/trainer/device/plan.hpp"
#include "validate/trainer/model/step.hpp"
#include "validate/trainer/ranks/text.hpp"
#include "validate/trainer/run/checkpoint.hpp"
#include "validate/trainer/run/rank_report.hpp"

namespace stepcast::validate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t generated_bytes = 200000;
constexpr std::size_t most_counted = 1000;  // steps whose times are kept: training may be long

Text text_for(const sim::Scenario& scenario, const RunSettings& settings) {
  if (!settings.text.empty()) return read_text(settings.text, scenario.model.vocab);
  return text_of(generated_text(generated_bytes), scenario.model.vocab);
}

/// Nothing for a dense model.
std::string experts_text(const workloads::ExpertShape& m, const workloads::ExpertPlan& p) {
  if (m.count == 0) return "";
  return fmt::format(
      ", experts {} of {} ffn {} from {} every {} score {}, degree {} capacity {} padded {}",
      m.per_token, m.count, m.ffn, m.dense_layers, m.every, static_cast<int>(m.score), p.degree,
      p.capacity_factor, p.pad_to_capacity);
}

/// What a checkpoint must agree in: model, plan, and what shapes the batch.
std::string text_of_job(const TrainerJob& job) {
  const workloads::TransformerShape& m = job.model;
  const workloads::ParallelPlan& p = job.plan;
  return fmt::format(
             "layers {} hidden {} heads {}/{}x{} ffn {} vocab {} tied {}, data {} x{} tensor {} sp "
             "{} "
             "pipeline {}x{} layers {}, shards {}, buckets {}, batch {}x{} sequence {}, rate {} "
             "seed {}",
             m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.ffn_hidden, m.vocab,
             m.tied_embeddings, sim::word_for(sim::data_parallel_names, p.data), p.data_degree,
             p.tensor, p.sequence_parallel, p.pipeline, p.virtual_stages,
             fmt::join(p.stage_layers, "/"), p.shards(),
             job.software.data.gradient_overlap ? job.software.data.bucket_bytes : 0,
             job.batch.micro_batch, job.batch.micro_batches, job.batch.sequence, job.learning.rate,
             job.learning.seed) +
         experts_text(m.experts, p.expert);
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

/// How much longer this rank's kernels take, as [noise] says.
double slowness_of(const sim::Scenario& scenario, std::int64_t rank) {
  double slowness = 1.0;
  for (const sim::Straggler& s : scenario.noise.stragglers)
    if (s.index == (s.node ? rank / scenario.node.gpus : rank)) slowness *= s.slowdown;
  return slowness;
}

/// One rank's training from its first step to its last.
template <class Real>
class RankRun {
 public:
  RankRun(const sim::Scenario& scenario, const RunSettings& settings, Communicator& world,
          RankDevice<Real> device)
      : settings_(settings),
        job_(job_of(scenario)),
        kept_job_{text_of_job(job_), job_id(scenario)},
        text_(text_for(scenario, settings)),
        world_(world),
        log_every_(device.lanes->timing_costs() ? 10 : 1),
        trainer_(job_, std::move(device)) {
    if (!settings.kernel_time) return;
    const double slowness = slowness_of(scenario, world.rank());
    waits_.emplace([slowness, &length = settings_.kernel_time](const workloads::Kernel& kernel) {
      return to_duration(seconds(length(kernel)) * slowness);
    });
    log_.wait_for_kernels(&*waits_);
  }

  RankReport run(const OnStep& on_step) {
    std::optional<CheckpointFolder> folder;  // ours until the run ends
    if (!settings_.checkpoint.empty() && world_.rank() == 0) folder.emplace(settings_.checkpoint);
    load();
    RankReport report;
    report.rank = world_.rank();
    report.first_step = trainer_.state().steps;
    report.device = trainer_.device().name;
    world_.barrier();
    origin_ = common_origin(world_);
    for (std::int64_t s = 0; s < settings_.steps; ++s) {
      const Clock::time_point begin = Clock::now();
      const std::optional<double> loss = step(report, s - settings_.warm_up);
      if (!waits_) report.losses.push_back(loss);
      if (on_step && report.rank == 0) on_step(s, Clock::now() - begin, loss);
      save_if_due(s + 1);
    }
    report.buffers = trainer_.allocated();
    report.resident = trainer_.device().in_use ? trainer_.device().in_use() : largest_resident();
    return report;
  }

 private:
  /// Timed from outside, from inside, or both where that costs nothing. `counted`: from 0 after the
  /// warm-up.
  std::optional<double> step(RankReport& report, std::int64_t counted) {
    const auto data = [&, at = steps_done_++](std::int64_t micro_batch) {
      return samples_of(text_, job_.batch, at, trainer_.share().at.data, micro_batch);
    };
    const bool logged = counted >= 0 && counted % log_every_ == 0;
    const Clock::time_point begin = Clock::now();
    if (waits_) waits_->interrupt();
    const StepResult result = trainer_.step(data, logged || waits_ ? &log_ : nullptr);
    const Duration time = Clock::now() - begin;
    if (logged && report.logged_times.size() < most_counted)
      report.add_log(log_.operations(), begin - origin_, time);
    const bool only_logged = logged && log_every_ > 1 && settings_.steps - settings_.warm_up > 1;
    if (counted >= 0 && !only_logged && report.step_times.size() < most_counted)
      report.step_times.push_back(time);
    if (waits_) return std::nullopt;
    if (result.loss && !std::isfinite(*result.loss))
      throw Diverged(
          fmt::format("the loss of step {} is {}: training has diverged, try a lower "
                      "learning rate or wider floats",
                      steps_done_ - 1, *result.loss));
    return result.loss;
  }

  /// The rank's state on its way between device and files.
  struct Kept {
    std::vector<Wide<Real>> weights, first_moments, second_moments;
  };
  Kept kept() {
    Kept out;
    const TrainerState<Real> state = trainer_.state();
    const auto fetch = [&](std::vector<Wide<Real>>& to, std::span<const Wide<Real>> from) {
      to.resize(from.size());
      trainer_.kernels().download(to, from);
    };
    fetch(out.weights, state.weights);
    fetch(out.first_moments, state.first_moments);
    fetch(out.second_moments, state.second_moments);
    return out;
  }
  KeptState in_host_memory(Kept& kept) {
    return {kept.weights, kept.first_moments, kept.second_moments,
            job_.precision.loss_scaling ? &trainer_.state().scale : nullptr};
  }

  void load() {
    if (!settings_.resume) return;
    Kept from = kept();
    TrainerState<Real> state = trainer_.state();
    steps_done_ = load_checkpoint(settings_.checkpoint, kept_job_, in_host_memory(from), world_);
    state.steps = steps_done_;
    Kernels<Real>& kernels = trainer_.kernels();
    kernels.upload(state.weights, from.weights);
    kernels.upload(state.first_moments, from.first_moments);
    kernels.upload(state.second_moments, from.second_moments);
    trainer_.after_load();
  }

  void save_if_due(std::int64_t done) {
    if (settings_.checkpoint.empty()) return;
    const bool last = done == settings_.steps;
    if (!last && (settings_.save_every <= 0 || done % settings_.save_every != 0)) return;
    Kept to = kept();
    save_checkpoint(settings_.checkpoint, kept_job_, steps_done_, in_host_memory(to), world_);
  }

  const RunSettings settings_;
  const TrainerJob job_;
  const KeptJob kept_job_;
  const Text text_;
  Communicator& world_;
  const std::int64_t log_every_;
  Trainer<Real> trainer_;
  OperationLog log_;
  std::optional<KernelWaits> waits_;
  Clock::time_point origin_;
  std::int64_t steps_done_ = 0;
};

template <class Real>
RankReport report_of_run(const sim::Scenario& scenario, const RunSettings& settings,
                         Communicator& world, RankDevice<Real> device, const OnStep& on_step) {
  return RankRun<Real>(scenario, settings, world, std::move(device)).run(on_step);
}

template <class Real>
RankReport report_on_gpu(const sim::Scenario& scenario, const RunSettings& settings,
                         Communicator& world, const MakeGpu<Real>& make_gpu,
                         const OnStep& on_step) {
  if (!make_gpu)
    throw InputError(
        scenario.origin,
        "is for " + scenario.node.gpu.name + ": this program was built without CUDA or NCCL",
        "build it where nvcc and nccl.h are, or take node = \"host\"");
  return report_of_run(scenario, settings, world,
                       make_gpu(job_of(scenario), world, settings.patience), on_step);
}

}  // namespace

std::string job_id(const sim::Scenario& scenario) {
  return sim::id_of_text(sim::write_toml(sim::resolved_document(scenario)));
}

bool trains_on_gpus(const sim::Scenario& scenario) { return !scenario.node.gpu.architecture.host; }

void check_trainable(const sim::Scenario& scenario) {
  if (scenario.collective)
    throw InputError(scenario.origin, "is a collective, not a model to train");
  workloads::check(scenario.model, scenario.plan, scenario.batch, scenario.plan_origin);
  check(job_of(scenario), scenario.origin);
  const bool on_gpus = trains_on_gpus(scenario);
  if (on_gpus && scenario.model.experts.count > 0)
    throw InputError(scenario.origin, "has layers of experts, which are trained on the host alone",
                     "node = \"host\", framework = \"stepcast-trainer\"");
  if (on_gpus != (scenario.precision.compute != workloads::Dtype::fp32))
    throw InputError(scenario.origin,
                     on_gpus ? "computes in 16 bits on a GPU" : "computes in fp32 on the host",
                     on_gpus ? "compute = \"bf16\", or \"fp16\" on V100" : "compute = \"fp32\"");
  if (on_gpus && scenario.software.host.collectives_hold_core)
    throw InputError(scenario.origin, "says that collectives hold their core, on a GPU",
                     "framework = \"stepcast-trainer-cuda\"");
  if (!on_gpus && scenario.software.attention.kernel != workloads::AttentionKernel::host)
    throw InputError(
        scenario.origin, "says that attention is a GPU's kernel, on the host",
        "framework = \"stepcast-trainer\", or \"stepcast-trainer-lanes\": collectives beside "
        "compute");
}

void check_waits(const sim::Scenario& scenario) {
  if (scenario.model.experts.count > 0 && !scenario.plan.expert.pad_to_capacity)
    throw InputError(scenario.origin,
                     "sends tokens where a router says, and --compute waits computes nothing",
                     "--compute kernels, or pad_to_capacity: all experts take as many");
}

std::optional<TrainerResults> run_trainer(const sim::Scenario& scenario,
                                          const RunSettings& settings,
                                          std::unique_ptr<Communicator> world,
                                          const GpuMakers& gpus, const OnStep& on_step) {
  check_trainable(scenario);
  expects(settings.steps > settings.warm_up && settings.warm_up >= 0, "steps after the warm-up");
  const TrainerJob job = job_of(scenario);
  const RankReport mine = [&] {
    if (!trains_on_gpus(scenario))
      return report_of_run(scenario, settings, *world, make_host_device<float>(job, *world),
                           on_step);
    return job.precision.compute == workloads::Dtype::bf16
               ? report_on_gpu(scenario, settings, *world, gpus.bfloat16, on_step)
               : report_on_gpu(scenario, settings, *world, gpus.half, on_step);
  }();
  const std::size_t typical = typical_step(mine, *world);
  const std::vector<std::string> all = gather_texts(*world, to_text(mine, typical));
  if (world->rank() != 0) return std::nullopt;
  TrainerResults results = combined(all, scenario.plan);
  results.warm_up = settings.warm_up;
  return results;
}

}  // namespace stepcast::validate
