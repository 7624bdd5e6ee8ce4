// What failures leave of a scenario's run: its share of wall time that trains, with a band, and
// what that rests on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/goodput/process.hpp"
#include "sim/goodput/simulation.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Checkpoints to one tier.
struct CheckpointTraffic {
  std::string to;
  Bytes rank{}, total{};  // of the fullest rank, and all
  double blocking_s = 0, behind_s = 0, load_s = 0, every_s = 0;
  double best_every_s = 0;
};

struct Goodput {
  // Effective training time ratio: full-speed training over wall time; the band holds `level` of
  // the runs.
  double mean = 1, low = 1, high = 1, level = 0.8;
  WallTime shares;                    // of wall time, mean over runs
  double days = 0;                    // that were simulated
  double interruptions = 0;           // in these days, mean over runs
  double between_s = 0;               // interruptions, while the run is up
  double daly = 1;                    // by formula, restarts and checkpoints alone
  double minute = 0;                  // what one more minute of restart takes of `mean`
  double checkpoints_per_step_s = 0;  // that a step takes longer by, in the mean
  std::vector<CheckpointTraffic> tiers;
  std::optional<double> slow_speed;    // of a run with a slow node, over one without
  std::optional<double> shrunk_speed;  // of a run without the nodes of a copy of the model
  std::optional<double> empty_share;   // of wall time without a spare, by Erlang's formula
  std::vector<std::string> warnings;
};

/// Steps of scenarios that differ from the one that is asked about by a slow or a missing node.
using StepOf = std::function<Duration(const Scenario&)>;

/// Of a scenario with [failures] whose step takes `step`. Throws InputError where a tier has no
/// bandwidth, or the run cannot shrink.
Goodput goodput_of(const Scenario& scenario, Duration step, const StepOf& step_of);

/// The process of its [failures]; `out` is told what it is made of.
FailureProcess failure_process(const Scenario& scenario, Duration step, const StepOf& step_of,
                               Goodput& out);

/// The same run with its first node slower by failures.slow.
Scenario with_slow_node(Scenario scenario);
/// The same run without the nodes that hold one copy of the model, and that copy's sequences.
Scenario without_copy(Scenario scenario);

}  // namespace stepcast::sim
