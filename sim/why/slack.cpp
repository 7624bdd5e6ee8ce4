#include "sim/why/slack.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "engine/run.hpp"
#include "sim/kernels/power_law.hpp"
#include "sim/run/power.hpp"

namespace stepcast::sim {
namespace {

constexpr int halvings = 6;  // of the range of clocks: to 0.3 % of it

/// Steps with the tensor cores of each stage at a pace of its own between its first and its last
/// micro-batch. A role is a stage's program.
class PacedSteps {
 public:
  PacedSteps(const LoggedStep& step, const KernelModel& kernels)
      : step_(step), system_(step.system()), num_works_(system_.works.size()) {
    for (const workloads::Kernel& kernel : step.bound().program.kernels)
      on_tensor_cores_.push_back(kernels.time_of(kernel).tensor_fraction > 0.0);
    const std::vector<engine::Work> works = system_.works;
    for (std::size_t r = 0; r < system_.roles.size(); ++r) {
      system_.works.insert(system_.works.end(), works.begin(), works.end());
      system_.roles[r] = engine::unrolled(system_.roles[r]);
      pace_apart(r);
    }
  }

  std::size_t stages() const { return system_.roles.size(); }
  /// Of the stage's time on tensor cores, what its pace is for.
  double share(std::size_t role) const { return shares_[role]; }

  Duration step(const std::vector<double>& paces) {
    const std::vector<engine::Work>& works = step_.system().works;
    for (std::size_t r = 0; r < paces.size(); ++r)
      for (std::size_t w = 0; w < num_works_; ++w)
        if (on_tensor_cores_[w])
          system_.works[(r + 1) * num_works_ + w].duration =
              to_duration(seconds(works[w].duration) / paces[r]);
    return engine::run(system_, {.cold = step_.scenario().run.steps == Steps::cold}).step;
  }

 private:
  /// Gives the role's calls on tensor cores works of its own, but for those of a micro-batch's
  /// number at either end.
  void pace_apart(std::size_t role) {
    std::vector<engine::Instruction*> calls;
    for (engine::Instruction& call : system_.roles[role].instructions)
      if (call.op == engine::Op::work && on_tensor_cores_[call.arg]) calls.push_back(&call);
    const auto micro_batches = static_cast<std::size_t>(step_.scenario().batch.micro_batches);
    const std::size_t end = calls.size() / std::max<std::size_t>(1, micro_batches);
    double all = 0.0, paced = 0.0;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const double time = seconds(system_.works[calls[c]->arg].duration);
      all += time;
      if (c < end || c + end >= calls.size()) continue;
      paced += time;
      calls[c]->arg += static_cast<std::uint32_t>((role + 1) * num_works_);
    }
    shares_.push_back(all > 0.0 ? paced / all : 0.0);
  }

  const LoggedStep& step_;
  engine::System system_;
  std::size_t num_works_;
  std::vector<bool> on_tensor_cores_;
  std::vector<double> shares_;
};

/// The lowest pace of [least, 1] that `keeps` the step; 1 where none does.
template <typename Keeps>
double lowest(double least, const Keeps& keeps) {
  if (keeps(least)) return least;
  double low = least, high = 1.0;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (keeps(middle) ? high : low) = middle;
  }
  return high;
}

/// A GPU's mean over the step, with a share of its tensor cores' work at a pace.
Watts power_at(const Scenario& s, const RoleLoad& load, double communication, Duration step,
               double share, double pace, Hertz clock) {
  const double of_step = 1 / seconds(step);
  const double tensor = load.tensor_seconds * of_step;
  const Watts rest = mean_power(s.node.gpu, {.tensor = tensor * (1 - share),
                                             .memory = load.memory_seconds * of_step,
                                             .communication = communication});
  topology::GpuSpec gpu = s.node.gpu;
  if (pace < 1.0) gpu.clock = clock;
  const Watts slowed = mean_power(gpu, {.tensor = tensor * share / pace});
  return rest + slowed - mean_power(gpu, {});
}

/// Share of the step that a rank of the stage communicates, as simulate.cpp counts it.
double communication_of(const LoggedStep& step, std::size_t role) {
  Duration sum{};
  std::int64_t ranks = 0;
  for (std::size_t r = 0; r < step.result().ranks.size(); ++r) {
    if (step.system().role_of_rank[r] != role) continue;
    const std::int64_t alike = step.fold().multiplicity[r];
    for (const Duration part : step.result().ranks[r].communication) sum += alike * part;
    ranks += alike;
  }
  if (ranks == 0) return 0.0;
  const double mean = seconds(sum) / static_cast<double>(ranks);
  return std::min(1.0, mean / seconds(step.result().step));
}

}  // namespace

PipelineSlack pipeline_slack(const LoggedStep& step, Session& session) {
  PipelineSlack out;
  const Scenario& s = step.scenario();
  const ClockRange clocks = clock_range(s.node.gpu);
  if (s.plan.pipeline < 2 || step.system().roles.size() < 2 || clocks.least_pace >= 1) return out;
  PacedSteps paced(step, *session.kernels(s));
  out.step = step.result().step;
  const Duration limit = to_duration(seconds(out.step) * (1 + same_step));
  std::vector<double> alone(paced.stages(), 1.0);
  for (std::size_t r = 0; r < alone.size(); ++r)
    alone[r] = lowest(clocks.least_pace, [&](double pace) {
      std::vector<double> paces(alone.size(), 1.0);
      paces[r] = pace;
      return paced.step(paces) <= limit;
    });
  const auto moved_back = [&](double by) {
    std::vector<double> paces = alone;
    for (double& pace : paces) pace = std::lerp(pace, 1.0, by);
    return paces;
  };
  const double by = lowest(0.0, [&](double back) { return paced.step(moved_back(back)) <= limit; });
  const std::vector<double> paces = moved_back(by);
  out.slowed = paced.step(paces);
  double now = 0.0, then = 0.0;
  for (std::size_t r = 0; r < paces.size(); ++r) {
    const RoleLoad& load = step.bound().step.loads[r];
    const double communication = communication_of(step, r);
    StageSlack& stage = out.stages.emplace_back();
    stage.stage = static_cast<std::int64_t>(r);
    stage.slack = to_duration(load.tensor_seconds * paced.share(r) * (1 / alone[r] - 1));
    stage.at_least = alone[r] == clocks.least_pace;
    stage.pace = paces[r];
    stage.clock = clocks.usual * paces[r];
    stage.now = power_at(s, load, communication, out.step, paced.share(r), 1.0, {});
    stage.then =
        power_at(s, load, communication, out.slowed, paced.share(r), paces[r], stage.clock);
    now += stage.now.value * seconds(out.step);
    then += stage.then.value * seconds(out.slowed);
  }
  out.saved = 1 - then / now;
  return out;
}

PipelineSlack pipeline_slack(const Scenario& scenario, Session& session) {
  if (scenario.plan.pipeline < 2) return {};
  return pipeline_slack(LoggedStep(scenario, session), session);
}

}  // namespace stepcast::sim
