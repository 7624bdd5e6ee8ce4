// What the trainer's clocks say of a step, in the simulator's own terms: a rank's log as timeline
// events, the waiting of collectives by comparing ranks, and where the step's time went.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "engine/system.hpp"
#include "engine/units.hpp"
#include "sim/run/timeline.hpp"
#include "validate/trainer/model/operations.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::validate {

/// `origin` stands for the start of the log on the clock that all ranks share.
std::vector<sim::TimelineEvent> events_of(const std::vector<Operation>& operations,
                                          std::int64_t rank, Duration origin);

/// Fills in how long each collective waited for its last member: the i-th collective of a group on
/// one rank is the i-th on the others. A message is awaited by its receiver alone.
void align_collectives(sim::Timeline& timeline, const workloads::ParallelPlan& plan);

/// Disjoint parts of a step, mean over ranks, as sim::StepReport has them: what runs under kernels
/// is not exposed, and nothing waits while something moves.
struct StepParts {
  Duration compute{};
  std::array<Duration, engine::num_traffic> exposed{};  // by engine::Traffic
  Duration wait{}, bubble{};                            // for collectives, for messages
  Duration exposed_total() const {
    return std::accumulate(exposed.begin(), exposed.end(), Duration{});
  }
};
StepParts parts_of(const sim::Timeline& timeline);

/// Time and calls of all events of one name, kind and group, summed over a rank's step; mean over
/// ranks. Without waiting.
struct PartTime {
  std::string name, kind, group;
  double calls = 0.0;
  Duration time{};
};
/// In order of name.
std::vector<PartTime> times_by_name(const sim::Timeline& timeline);

}  // namespace stepcast::validate
