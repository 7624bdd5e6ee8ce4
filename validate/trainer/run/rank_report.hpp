// What one rank hands in after a run, and how the ranks' reports become one. Reports travel as JSON
// over the communicator that trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/units.hpp"
#include "validate/trainer/model/operations.hpp"
#include "validate/trainer/ranks/communicator.hpp"
#include "validate/trainer/run/run.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::validate {

struct RankReport {
  /// The log of a step that began at `origin`. Every step issues the same operations, but for those
  /// that leave the update out, which are forgotten beside whole ones.
  void add_log(const std::vector<Operation>& operations, Duration origin, Duration time);

  std::int64_t rank = 0, first_step = 0;
  std::vector<std::optional<double>> losses;  // of every step; only on the last stage
  std::vector<Duration> step_times;           // of counted steps
  Bytes buffers{}, resident{};
  std::string device;
  std::vector<Operation> operations;                              // of the last logged step
  std::vector<std::vector<std::pair<Duration, Duration>>> spans;  // [logged step][operation]
  std::vector<Duration> logged_times;                             // of logged steps
};

/// The logged step whose time, mean over ranks, is the median. Collective.
std::size_t typical_step(const RankReport& mine, Communicator& world);

/// With the timeline of the typical step and each operation's median over steps.
std::string to_text(const RankReport& report, std::size_t typical);

/// The ranks' texts by rank, on rank 0; empty elsewhere. Collective.
std::vector<std::string> gather_texts(Communicator& world, const std::string& mine);

/// All ranks' texts made one.
TrainerResults combined(const std::vector<std::string>& texts, const workloads::ParallelPlan& plan);

}  // namespace stepcast::validate
