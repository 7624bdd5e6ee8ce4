#include "sim/run/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/fold.hpp"
#include "engine/run.hpp"
#include "engine/units_text.hpp"
#include "sim/files/budget.hpp"
#include "sim/files/text_table.hpp"
#include "sim/network/ablation.hpp"
#include "sim/network/links/fabric_bound.hpp"
#include "sim/run/folded_step.hpp"
#include "sim/run/memory_advice.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/run/power.hpp"
#include "sim/run/recorded_ranks.hpp"
#include "sim/run/step_system.hpp"
#include "sim/scenario/without_effect.hpp"

namespace stepcast::sim {
namespace {

/// What a plan needs, above what its card has, part by part.
std::string shortage_text(const StepReport& report) {
  const Scenario& s = report.scenario;
  std::string out =
      fmt::format("the plan needs {} per GPU, {} has {}:", to_text(report.memory.needed()),
                  s.node.gpu.name, to_text(s.node.gpu.memory));
  for (const workloads::MemoryPart& part : report.memory.parts)
    if (part.bytes.value > 0) out += fmt::format(" {} {},", part.name, to_text(part.bytes));
  out.pop_back();
  return out;
}

std::string odds_text(double share) { return "; P(fits) " + percent(share); }

/// From this on nothing is said.
constexpr double likely = 0.9;

void check_memory(StepReport& report, const std::function<const MemoryOdds&()>& evidence) {
  const Scenario& s = report.scenario;
  const Bytes card = s.node.gpu.memory;
  std::vector<std::string>& warnings = report.warnings;
  report.memory = fullest_memory(s);
  if (s.run.memory_is_known || fit_in(card, s, report.memory) == workloads::Fit::surely) return;
  replay(report.memory, s);
  const Bytes needed = report.memory.needed();
  if (s.run.ignore_memory) {
    if (!fits(s, report.memory)) warnings.push_back(shortage_text(report) + " (ignored)");
    return;
  }
  static const MemoryOdds none;
  const MemoryOdds& odds = evidence ? evidence() : none;
  const double share = odds.fits(s, needed);
  report.p_fits = share;
  if (share < s.run.refused_below())
    throw OutOfMemory(shortage_text(report) + odds_text(share) + memory_advice(s, odds),
                      std::max(Bytes{}, needed - card));
  if (share < likely)
    warnings.push_back("it may not fit: " + shortage_text(report) + odds_text(share) +
                       memory_advice(s, odds));
  if (!fits(s, report.memory)) return;
  if (const std::string warning = reserve_warning(s, report.memory); !warning.empty())
    warnings.push_back(warning);
}

/// Times that rest on a measured curve hold for every NCCL; only the model asks for its version.
void warn_of_measured_curves(const Scenario& s, double of_model,
                             std::vector<std::string>& warnings) {
  if (of_model == 0.0 && std::ranges::count(s.changed, "cluster.nccl") > 0)
    warnings.emplace_back(
        "cluster.nccl moves no collective's time here: measured curves give them, whatever the "
        "version");
}

/// Standard deviation of single steps; zero where there are fewer than two.
Duration deviation_of(const std::vector<Duration>& steps) {
  if (steps.size() < 2) return {};
  const auto n = static_cast<double>(steps.size());
  double mean = 0.0, squares = 0.0;
  for (const Duration step : steps) mean += seconds(step) / n;
  for (const Duration step : steps) squares += std::pow(seconds(step) - mean, 2.0);
  return to_duration(std::sqrt(squares / (n - 1)));
}

/// Means over ranks; the parts of a rank add up to the step exactly, their means to a picosecond.
void fill_times(StepReport& report, const engine::RunResult& result,
                const std::vector<std::int64_t>& multiplicity) {
  double n = 0.0;
  const auto mean = [&](auto part) {
    double sum = 0.0;
    for (std::size_t r = 0; r < result.ranks.size(); ++r)
      sum += static_cast<double>(multiplicity[r]) * seconds(part(result.ranks[r]));
    return to_duration(sum / n);
  };
  for (const std::int64_t m : multiplicity) n += static_cast<double>(m);
  const auto traffic = [&](engine::Traffic t) {
    return mean(
        [&](const engine::RankAccount& a) { return a.exposed[static_cast<std::size_t>(t)]; });
  };
  report.step_time = result.step;
  report.step_deviation = deviation_of(result.measured);
  report.compute = mean([](const auto& a) { return a.compute; });
  report.interference = mean([](const auto& a) { return a.interference; });
  report.exposed = {traffic(engine::Traffic::tensor), traffic(engine::Traffic::pipeline),
                    traffic(engine::Traffic::data), traffic(engine::Traffic::expert),
                    traffic(engine::Traffic::offload)};
  report.bubble = mean([](const auto& a) { return a.bubble; });
  report.wait = mean([](const auto& a) { return a.wait; });
  report.host = report.step_time - report.compute - report.exposed.total() - report.bubble -
                report.wait;     // the rest, so that the means add up
  if (report.host < Duration{})  // each mean was rounded
    report.compute += std::exchange(report.host, Duration{});
  report.communication = mean([](const engine::RankAccount& a) {
    return std::accumulate(a.communication.begin(), a.communication.end(), Duration{});
  });
}

ProvenanceShares shares(const std::vector<RoleLoad>& loads,
                        std::vector<double> RoleLoad::*seconds_by_origin) {
  ProvenanceShares out{};
  double total = 0.0;
  for (const RoleLoad& load : loads)
    for (std::size_t p = 0; p < out.size(); ++p) {
      out[p] += (load.*seconds_by_origin)[p];
      total += (load.*seconds_by_origin)[p];
    }
  if (total > 0.0)
    for (double& share : out) share /= total;
  return out;
}

void fill_rates(StepReport& report, const StepSystem& bound) {
  const Scenario& s = report.scenario;
  const double step = seconds(report.step_time);
  const auto gpus = static_cast<double>(s.gpus);
  const std::int64_t tokens = s.global_batch * s.batch.sequence;
  report.tokens_per_second = static_cast<double>(tokens) / step;
  report.model_flops_per_gpu =
      workloads::model_flops(s.model, tokens, s.batch.sequence) / report.step_time / gpus;
  report.mfu = report.model_flops_per_gpu / s.node.gpu.tensor_peak;
  report.kernel_provenance = shares(bound.loads, &RoleLoad::compute_seconds);
  report.network_provenance = shares(bound.loads, &RoleLoad::network_seconds);
  Utilization utilization;
  for (const RoleLoad& load : bound.loads) {
    const double share = 1.0 / static_cast<double>(bound.loads.size()) / step;
    utilization.tensor += load.tensor_seconds * share;
    utilization.memory += load.memory_seconds * share;
  }
  utilization.communication = std::min(1.0, seconds(report.communication) / step);
  report.power_per_gpu = mean_power(s.node.gpu, utilization);
  report.energy = report.power_per_gpu * report.step_time * gpus;
  report.tokens_per_joule = static_cast<double>(tokens) / report.energy.value;
}

void warn_of_measured_curves(StepReport& report) {
  const ProvenanceShares& network = report.network_provenance;
  warn_of_measured_curves(report.scenario, network[static_cast<std::size_t>(Provenance::model)],
                          report.warnings);
}

/// All but the timeline.
void fill(StepReport& report, const engine::RunResult& result,
          const std::vector<std::int64_t>& multiplicity, StepSystem& step) {
  if (!result.steady)
    report.warnings.push_back(fmt::format(
        "the step does not repeat within {} steps: the last one is shown", result.steps));
  report.simulated_ranks = static_cast<std::int64_t>(result.ranks.size());
  report.events = result.works + result.joins + result.transfers;
  fill_times(report, result, multiplicity);
  fill_rates(report, step);
  report.nccl_choices = std::move(step.choices);
}

/// Throws where the clock or the budget would not hold what the ranks of `system` do.
void check_length(const Scenario& s, const StepSystem& bound, const engine::System& system,
                  const engine::RunOptions& options) {
  const int steps = options.cold ? 1 : std::max(options.max_steps, 1 + options.measured);
  double longest = 0.0;
  for (const RoleLoad& load : bound.loads)
    longest = std::max(
        longest,
        std::accumulate(load.compute_seconds.begin(), load.compute_seconds.end(), 0.0) +
            std::accumulate(load.network_seconds.begin(), load.network_seconds.end(), 0.0));
  to_duration(longest * steps * 2.0);  // or beyond the clock; half of it is left to the host
  if (s.run.no_limit) return;
  std::vector<double> calls;
  for (const engine::Program& role : system.roles) {
    calls.push_back(0.0);
    engine::each_call(role, [&](const engine::Instruction&, std::int64_t times) {
      calls.back() += static_cast<double>(times);
    });
  }
  double all = 0.0;
  for (const auto role : system.role_of_rank) all += calls[role];
  stay_within(budget.calls, all * (1 + options.measured), "calls of all ranks and steps", s.origin);
}

/// A run whose every rank is simulated.
engine::RunResult run_whole(const engine::System& system, const engine::RunOptions& options,
                            std::vector<std::int64_t>& multiplicity, RecordedRanks* recorded) {
  multiplicity.assign(system.num_ranks(), 1);
  if (recorded == nullptr) return engine::run(system, options);
  if (recorded->asks_for_slowest()) recorded->know_slowest(engine::run(system, options));
  return engine::run(system, options, recorded->of_all());
}

engine::RunResult run_folded(const Scenario& s, const StepSystem& bound, StepReport& report,
                             std::vector<std::int64_t>& multiplicity, RecordedRanks* recorded) {
  const engine::System& system = bound.system;
  const bool jitter = system.jitter.on();
  const engine::RunOptions options{.cold = s.run.steps == Steps::cold,
                                   .measured = jitter ? static_cast<int>(s.noise.steps) : 0};
  if (jitter && s.run.check_fold)
    report.warnings.emplace_back("nothing to check: noise of kernels makes every rank different");
  if (!s.run.fold || jitter || s.run.check_fold) check_length(s, bound, system, options);
  if (!s.run.fold || jitter) return run_whole(system, options, multiplicity, recorded);
  const engine::Fold fold = engine::fold(system, *bound.layout->classes_of(system));
  check_length(s, bound, fold.system, options);
  engine::TimelineSink* sink = recorded == nullptr ? nullptr : recorded->of_folded(fold);
  engine::RunResult folded = engine::run(fold.system, options, sink);
  if (recorded != nullptr) recorded->name(fold, folded);
  multiplicity = fold.multiplicity;
  if (s.run.check_fold) {
    const engine::RunResult whole = engine::run(system, options);
    ensures(whole.step == folded.step, "folded and unfolded runs take the same time");
    for (std::size_t r = 0; r < whole.ranks.size(); ++r)
      ensures(whole.ranks[r] == folded.ranks[fold.representative[r]],
              "a folded rank does what its representative does");
    report.warnings.push_back(fmt::format("fold checked: {} ranks stand for {}, same picosecond",
                                          fold.system.num_ranks(), system.num_ranks()));
  }
  return folded;
}

}  // namespace

StepReport::StepReport() = default;
StepReport::StepReport(const StepReport&) = default;
StepReport::StepReport(StepReport&&) noexcept = default;
StepReport& StepReport::operator=(const StepReport&) = default;
StepReport& StepReport::operator=(StepReport&&) noexcept = default;
StepReport::~StepReport() = default;

void check_budget(const Scenario& s) {
  if (!s.run.no_limit)
    stay_within(budget.micro_batches, static_cast<double>(s.batch.micro_batches), "micro-batches",
                s.batch_origin);
}

StepReport admitted(const Scenario& scenario, const std::function<const MemoryOdds&()>& odds) {
  StepReport report;
  report.scenario = scenario;
  const Scenario& s = report.scenario;
  workloads::check(s.model, s.plan, s.batch, s.plan_origin);
  workloads::check(s.model, s.plan, s.software, s.plan_origin);
  workloads::check(s.precision, s.origin);
  check_power(s.node.gpu, s.origin);
  check_budget(s);
  check_memory(report, odds);
  for (const std::string& note : s.model_notes)
    report.warnings.push_back("model " + s.model.name + ": " + note);
  for (const std::string& warning : memory_warnings(s)) report.warnings.push_back(warning);
  for (const std::string& warning : power_warnings(s.node.gpu)) report.warnings.push_back(warning);
  for (const std::string& warning : without_effect(s)) report.warnings.push_back(warning);
  return report;
}

BoundStep bind_step(const Scenario& s, workloads::StepProgram program,
                    std::shared_ptr<const Network> network, const KernelModel& kernels) {
  BoundStep out{std::move(network), std::move(program), {}};
  const AblatedNetwork ablated(*out.network->model, s.run.without);
  out.step =
      make_step_system(s, out.program, out.network->layouts_of(s.run.without), kernels, ablated);
  return out;
}

void simulate(StepReport& report, BoundStep bound, Timeline* timeline,
              const TimelineApproval& approval) {
  const Scenario& s = report.scenario;
  engine::System& system = bound.step.system;
  std::optional<RecordedRanks> recorded;
  if (timeline != nullptr) recorded.emplace(bound.program, bound.step, *timeline, approval);
  if (!s.run.without.jitter) add_noise(s.noise, s.run.seed, s.node.gpus, system);

  std::vector<std::int64_t> multiplicity;
  const engine::RunResult result =
      run_folded(s, bound.step, report, multiplicity, recorded ? &*recorded : nullptr);
  fill(report, result, multiplicity, bound.step);
  if (timeline != nullptr) {
    settle(*timeline);
    timeline->step = report.step_time;
  }
  warn_of_measured_curves(report);
}

void simulate_folded(StepReport& report, FoldedStep folded) {
  const Scenario& s = report.scenario;
  const engine::RunOptions options{.cold = s.run.steps == Steps::cold};
  check_length(s, folded.step, folded.step.system, options);
  fill(report, engine::run(folded.step.system, options), folded.multiplicity, folded.step);
  warn_of_measured_curves(report);
}

CollectiveReport simulate_collective(const Scenario& s, const Network& network) {
  expects(s.collective.has_value(), "a scenario with a [collective] table");
  const topology::Cluster& cluster = network.cluster();
  const AblatedNetwork ablated(*network.model, s.run.without);
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(s.gpus));
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r] = static_cast<std::int64_t>(r);
  const workloads::CollectiveKind kind = s.collective->kind;
  const Bytes bytes = s.collective->bytes;
  const workloads::Dtype dtype = s.collective->dtype;
  CollectiveTime time =
      ablated.time_of(plain_collective(kind, bytes, dtype), shape_of(cluster, ranks));
  const bool shares_links = !s.run.without.sharing && !s.run.without.bandwidth;
  if (ranks.size() > 1 && kind != workloads::CollectiveKind::send_receive && shares_links) {
    const auto load = network.fabric_loads->get({kind, time.algorithm, s.gpus}, [&] {
      return fabric_load(network.model->loads_of({kind, time.algorithm}, ranks), cluster);
    });
    time = bound_by_fabric(time, *load, bytes, bus_factor(kind, s.gpus));
  }
  CollectiveReport report{s, time, without_effect(s)};
  warn_of_measured_curves(s, time.provenance < Provenance::model ? 0.0 : 1.0, report.warnings);
  report.warnings.insert(report.warnings.end(), network.warnings.begin(), network.warnings.end());
  if (s.run.explain) report.explanation = explain_collective(s, network, report.time, ranks);
  if (s.run.stepped)
    report.stepped = step_collective(cluster, network.router(), ablated, kind, bytes, dtype, ranks);
  return report;
}

}  // namespace stepcast::sim
