#include "sim/goodput/goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/budget.hpp"
#include "sim/goodput/daly.hpp"
#include "sim/goodput/traffic.hpp"

namespace stepcast::sim {
namespace {

constexpr double day_s = 86400.0;

/// Events per second of the whole cluster; rates are of nodes of so many GPUs.
double per_second(const Scenario& s, double per_1000_node_days) {
  const double nodes =
      static_cast<double>(s.gpus) / static_cast<double>(s.failures.rates.gpus_per_node);
  return per_1000_node_days / 1000.0 * nodes / day_s;
}

/// Causes that cost the same, together.
std::vector<Interruption> interruptions_of(const Scenario& s) {
  const Failures& f = s.failures;
  const double scale = f.rate() / f.rates.per_1000_node_days();
  std::array<Interruption, 4> kinds{};
  for (const FailureCause& cause : f.rates.causes) {
    Interruption& kind = kinds[(cause.hangs ? 1U : 0U) + (cause.takes_node ? 2U : 0U)];
    kind.per_second += per_second(s, cause.per_1000_node_days * scale);
    kind.down_s = seconds((cause.hangs ? f.watchdog : f.detection) + f.restart);
    kind.takes_node = cause.takes_node;
  }
  std::vector<Interruption> out(kinds.begin(), kinds.end());
  std::erase_if(out, [](const Interruption& kind) { return kind.per_second == 0.0; });
  return out;
}

void add_tiers(const Scenario& s, Duration step, FailureProcess& process, Goodput& out) {
  const workloads::CheckpointSize size =
      workloads::checkpoint_size(s.model, s.plan, s.batch, s.precision, s.software);
  for (const CheckpointTier& tier : s.failures.tiers) {
    process.tiers.push_back(checkpoint_cost(s, tier, size));
    CheckpointCost& cost = process.tiers.back();
    if (cost.every_s > 0.0 && cost.every_s < cost.behind_s) {
      out.warnings.push_back(
          fmt::format("checkpoints to {} take {} to write: they cannot come every {}", tier.to,
                      to_text(to_duration(cost.behind_s)), to_text(to_duration(cost.every_s))));
      cost.every_s = cost.behind_s;
    }
  }
  choose_periods(process, seconds(step));
  for (std::size_t i = 0; i < process.tiers.size(); ++i) {
    const CheckpointCost& cost = process.tiers[i];
    out.tiers.push_back({s.failures.tiers[i].to, size.rank, size.total, cost.blocking_s,
                         cost.behind_s, cost.load_s, cost.every_s,
                         best_period(process, i, seconds(step))});
    out.checkpoints_per_step_s += seconds(step) * cost.blocking_s / cost.every_s;
  }
}

void add_slow_nodes(const Scenario& s, Duration step, const StepOf& step_of,
                    FailureProcess& process, Goodput& out) {
  const SlowNodes& slow = s.failures.slow;
  if (slow.per_1000_node_days == 0.0 || slow.slowdown == 1.0 || s.run.without.jitter) return;
  out.slow_speed = std::min(1.0, seconds(step) / seconds(step_of(with_slow_node(s))));
  const CheckpointCost& tier = process.tiers.front();
  process.slow = {.per_second = per_second(s, slow.per_1000_node_days),
                  .noticed_s = seconds(slow.noticed_after),
                  .speed = *out.slow_speed,
                  .restart_s = tier.blocking_s + seconds(s.failures.restart) + tier.load_s};
}

void add_pool(const Scenario& s, Duration step, const StepOf& step_of, FailureProcess& process,
              Goodput& out) {
  const Failures& f = s.failures;
  if (!f.spares) return;
  process.pool = SparePool{.spares = *f.spares,
                           .repair_s = seconds(f.repair),
                           .restart_s = seconds(f.restart) + process.tiers.front().load_s};
  double leaving = process.slow.per_second;
  for (const Interruption& kind : process.interruptions)
    if (kind.takes_node) leaving += kind.per_second;
  if (f.empty == EmptyPool::wait) {
    out.empty_share = empty_share(leaving, process.pool->repair_s, *f.spares);
    return;
  }
  const Scenario shrunk = without_copy(s);
  const double sequences =
      static_cast<double>(shrunk.global_batch) / static_cast<double>(s.global_batch);
  out.shrunk_speed = sequences * seconds(step) / seconds(step_of(shrunk));
  process.pool->lost_speed = 1.0 - *out.shrunk_speed;
  process.pool->nodes_per_loss = s.nodes - shrunk.nodes;
}

/// What every interruption costs more.
FailureProcess with_longer_restart(FailureProcess process, double by_s) {
  for (Interruption& kind : process.interruptions) kind.down_s += by_s;
  process.slow.restart_s += by_s;
  if (process.pool) process.pool->restart_s += by_s;
  return process;
}

/// Failures that are drawn: once for the mean, once for the band, once for a minute of restart.
void check_budget(const Scenario& s, const FailureProcess& process, const FailureStudy& study) {
  if (s.run.no_limit) return;
  const double drawn_rates = std::exp(study.rate_sigma * study.rate_sigma / 2);  // their mean
  const double rate = process.interruptions_per_second() * (2 + drawn_rates) +
                      3 * (process.slow.per_second + process.flaps_per_second);
  stay_within(budget.failures, rate * study.wall_s * static_cast<double>(study.runs),
              "failures of all simulated runs", s.origin);
}

void warn_of_size(const Scenario& s, Goodput& out) {
  const Failures& f = s.failures;
  // 1,024-GPU jobs on RSC failed 3.7 times as often per node as its 16,000 GPUs (arXiv 2410.21680);
  // rates of such jobs already say so.
  constexpr std::int64_t small_job = 1024;
  if (f.per_1000_node_days || f.rates.gpus < 4 * small_job || 4 * s.gpus > f.rates.gpus) return;
  out.warnings.push_back(
      fmt::format("failures: rates of {} are of {} GPUs; small jobs were measured to fail 3 to 4 "
                  "times as often per node (rates = \"rsc-1024\")",
                  f.rates.name, f.rates.gpus));
}

}  // namespace

Scenario with_slow_node(Scenario s) {
  s.noise.stragglers.push_back({.node = true, .index = 0, .slowdown = s.failures.slow.slowdown});
  return s;
}

Scenario without_copy(Scenario s) {
  const std::int64_t copy = s.plan.tensor * s.plan.context * s.plan.pipeline;
  const std::int64_t lost = std::max<std::int64_t>(1, (copy + s.node.gpus - 1) / s.node.gpus);
  const std::int64_t copies = lost * s.node.gpus / copy;
  if (s.nodes <= lost || lost * s.node.gpus % copy != 0 || s.global_batch % s.plan.data_degree != 0)
    throw InputError(
        s.plan_origin,
        fmt::format("the run cannot shrink: of {} nodes {} hold {} copies of the model", s.nodes,
                    lost, copies),
        "failures.empty = \"wait\"");
  s.global_batch -= s.global_batch / s.plan.data_degree * copies;
  s.nodes -= lost;
  s.gpus = s.nodes * s.node.gpus;
  const auto [tensor, pipeline] = std::pair(s.plan.tensor, s.plan.pipeline);
  return with_degrees(std::move(s), tensor, pipeline);
}

FailureProcess failure_process(const Scenario& s, Duration step, const StepOf& step_of,
                               Goodput& out) {
  FailureProcess process;
  process.interruptions = interruptions_of(s);
  add_tiers(s, step, process, out);
  add_slow_nodes(s, step, step_of, process, out);
  add_pool(s, step, step_of, process, out);
  process.flaps_per_second = per_second(s, s.failures.flap.per_1000_node_days);
  process.flap_s = seconds(s.failures.flap.lasts);
  return process;
}

Goodput goodput_of(const Scenario& s, Duration step, const StepOf& step_of) {
  expects(s.failures.on, "a scenario with [failures]");
  Goodput out;
  const FailureProcess process = failure_process(s, step, step_of, out);
  FailureStudy study{.wall_s = s.failures.days * day_s,
                     .runs = s.failures.runs,
                     .seed = s.run.seed,
                     .rate_sigma = s.failures.rate_sigma(),
                     .level = s.run.confidence};
  check_budget(s, process, study);
  const FailureBand band = simulate_failures(process, study);
  out.shares = band.shares;
  out.mean = band.shares.training;
  out.low = band.low;
  out.high = band.high;
  out.level = study.level;
  out.days = s.failures.days;
  out.interruptions = band.interruptions;
  out.between_s = 1.0 / process.interruptions_per_second();
  out.daly = daly(process);
  study.rate_sigma = 0.0;
  out.minute =
      out.mean - simulate_failures(with_longer_restart(process, 60.0), study).shares.training;
  warn_of_size(s, out);
  return out;
}

}  // namespace stepcast::sim
