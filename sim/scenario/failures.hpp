// What interrupts a run and what is done about it: rates of failures by cause, restarts, tiers of
// checkpoints, spare nodes, slow nodes, flapping links. Off by default; knows no times of steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::sim {

/// One kind of interruption.
struct FailureCause {
  std::string name;
  double per_1000_node_days = 0.0;
  bool hangs = false;       // ranks wait until a watchdog ends them; else the job ends at once
  bool takes_node = false;  // the node leaves for repair

  friend bool operator==(const FailureCause&, const FailureCause&) = default;
};

/// Interruptions of one cluster or run, as its source counts them (scenarios/failures).
struct FailureRates {
  std::string name;
  std::int64_t gpus = 0;           // of the cluster or run that they were counted on; 0: unknown
  std::int64_t gpus_per_node = 8;  // of the nodes that rates are per
  double sigma = 0.0;              // between clusters: standard deviation of ln(rate)
  std::vector<FailureCause> causes;

  double per_1000_node_days() const {
    double sum = 0.0;
    for (const FailureCause& cause : causes) sum += cause.per_1000_node_days;
    return sum;
  }
  friend bool operator==(const FailureRates&, const FailureRates&) = default;
};

/// A place that checkpoints go to.
struct CheckpointTier {
  std::string to = "store";
  double survives = 1.0;             // share of the interruptions after which it can be read
  BytesPerSecond bandwidth{};        // of all nodes together; 0: no limit of its own
  BytesPerSecond per_node{};         // of one node; 0: of its NICs
  bool asynchronous = false;         // the run waits for the copy to the host alone
  std::optional<Duration> blocking;  // as measured, instead of bytes over bandwidths
  std::optional<Duration> load;      // likewise, to read one
  std::optional<Duration> every;     // of training between two; none: the best

  friend bool operator==(const CheckpointTier&, const CheckpointTier&) = default;
};

/// Nodes that go on, but slower, until somebody notices and swaps them.
struct SlowNodes {
  double per_1000_node_days = 0.0;
  double slowdown = 1.0;  // kernels take that much longer
  Duration noticed_after{};

  friend bool operator==(const SlowNodes&, const SlowNodes&) = default;
};

/// Links that are gone for a moment, which the run waits for.
struct LinkFlaps {
  double per_1000_node_days = 0.0;
  Duration lasts{};

  friend bool operator==(const LinkFlaps&, const LinkFlaps&) = default;
};

/// What a run does when a node leaves and no spare is left.
enum class EmptyPool : std::uint8_t { wait, shrink };

struct Failures {
  bool on = false;  // there is [failures]
  FailureRates rates;
  std::optional<double> per_1000_node_days;  // instead of the sum of the rates' causes
  std::optional<double> sigma;               // instead of the rates'; none beside an own rate: 0
  // Until a crash is noticed, beyond what `restart` includes.
  Duration detection{};
  // After which PyTorch's process groups of NCCL give up by default (recalled, 2026).
  Duration watchdog = to_duration(600);
  // Automatic retries took 11 minutes in the median on 63 nodes of B200 (report of SKT and Lablup).
  Duration restart = to_duration(660);
  std::optional<std::int64_t> spares;      // nodes; none: there is always one
  Duration repair = to_duration(345'600);  // 4 days: the middle of 3 to 5, a guess of ours, 2026
  EmptyPool empty = EmptyPool::wait;
  double days = 90.0;        // of wall time that is simulated
  std::int64_t runs = 1000;  // of the simulation
  SlowNodes slow;
  LinkFlaps flap;
  std::vector<CheckpointTier> tiers;  // fastest first; the last survives everything

  /// Of all causes, per 1,000 node-days.
  double rate() const { return per_1000_node_days.value_or(rates.per_1000_node_days()); }
  /// Between clusters: the rates' own, unless the scenario states its rate.
  double rate_sigma() const { return sigma.value_or(per_1000_node_days ? 0.0 : rates.sigma); }

  friend bool operator==(const Failures&, const Failures&) = default;
};

}  // namespace stepcast::sim
