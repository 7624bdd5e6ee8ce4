// What one rank hands in after a run, and how the ranks' reports become one. Reports travel as JSON
// over the communicator that trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/units.hpp"
#include "validate/trainer_communicator.hpp"
#include "validate/trainer_operations.hpp"
#include "validate/trainer_run.hpp"
#include "workloads/plan.hpp"

namespace stepcast::validate {

struct RankReport {
  /// The log of a counted step that began at `origin`. Every step issues the same operations.
  void add_step(const std::vector<Operation>& operations, Duration origin);

  std::int64_t rank = 0, first_step = 0;
  std::vector<std::optional<double>> losses;  // of every step; only on the last stage
  std::vector<Duration> step_times;           // of counted steps
  Bytes buffers{}, resident{};
  std::vector<Operation> operations;                              // of the last step
  std::vector<std::vector<std::pair<Duration, Duration>>> spans;  // [counted step][operation]
};

/// The counted step whose time, mean over ranks, is the median. Collective.
std::size_t typical_step(const RankReport& mine, Communicator& world);

/// With the timeline of the typical step and each operation's median over steps.
std::string to_text(const RankReport& report, std::size_t typical);

/// The ranks' texts by rank, on rank 0; empty elsewhere. Collective.
std::vector<std::string> gather_texts(Communicator& world, const std::string& mine);

/// All ranks' texts made one.
TrainerResults combined(const std::vector<std::string>& texts, const workloads::ParallelPlan& plan);

}  // namespace stepcast::validate
