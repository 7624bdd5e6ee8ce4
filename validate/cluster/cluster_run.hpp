// Points on fabrics: for each a box is built, measured, trained in and simulated. Knows no command
// line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "validate/cluster/fabric.hpp"
#include "validate/cluster/report.hpp"
#include "validate/command/points.hpp"

namespace stepcast::validate {

struct ClusterPlan {
  std::vector<Point>
      points;  // that the trainer can run, their files written, their kernels measured
  std::vector<BoxFabric> fabrics;
  std::int64_t jobs = 1;                       // of each point at once
  std::vector<std::string> trainer_options{};  // further words for stepcast-trainer
  std::string scratch;                         // folder for files
};

/// In namespaces of this program's own (run_apart). Fills in the fabrics of `report` as they are
/// done; the exit code of a rank that failed, which ends it.
int run_cluster(const ClusterPlan& plan, sim::Session& session, ClusterReport& report);

}  // namespace stepcast::validate
