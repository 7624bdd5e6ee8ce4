// The same cluster simulated: collectives alone take what was measured on one switch at this NIC's
// speed, and share the links of the fabric at hand.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/session/task_collectives.hpp"
#include "sim/run/simulate.hpp"
#include "sim/tables/calibration_table.hpp"
#include "validate/cluster/fabric.hpp"

namespace stepcast::validate {

/// Ranks that meet in a plan, first groups of their kind alone, and the collectives of a step.
struct GroupCalls {
  std::vector<std::int64_t> nodes;
  calibrate::CollectiveSizes sizes;
};
/// One for each set of ranks; of kinds of group whose first groups are alike, all sizes.
std::vector<GroupCalls> groups_of(const sim::Scenario& scenario);

/// As rows of a table: what was measured of tasks between so many nodes.
std::vector<sim::CollectiveRow> rows_of(const std::vector<calibrate::CollectiveTask>& tasks,
                                        const std::vector<Duration>& times, std::int64_t nodes);

/// Sum of payload that these pairs can move at once, each at the fair share of its fullest link.
BytesPerSecond expected_rate(const topology::Cluster& cluster,
                             const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs);

struct BoxStep {
  sim::StepReport report;
  sim::Timeline timeline;
};

/// A scenario of one job and so many of them at once on a fabric, with the collectives of `rows`.
class SimulatedBox {
 public:
  SimulatedBox(const sim::Scenario& job, const BoxFabric& fabric,
               const std::vector<sim::CollectiveRow>& rows, std::int64_t jobs = 1);

  BoxStep step(const sim::KernelModel& kernels) const;
  /// Alone, between these nodes: what its links let through, or its measured time if that is more.
  Duration time_of(const calibrate::CollectiveTask& task,
                   const std::vector<std::int64_t>& nodes) const;

 private:
  sim::Scenario job_;
  std::int64_t jobs_;
  std::shared_ptr<const sim::Network> network_;
};

}  // namespace stepcast::validate
