// What a cluster in a box showed: links, collectives alone, steps, beside what was described and
// simulated.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/told/told.hpp"
#include "validate/compare/run_comparison.hpp"

namespace stepcast::validate {

/// One way through the box: what the description lets through, and what TCP got.
struct PathCheck {
  std::string what;  // "node 0 to 1", "all across"
  BytesPerSecond described{}, measured{};
  Duration latency{};
};

/// A collective alone in the box.
struct AloneCheck {
  std::string what;  // "allreduce of 1.05 MB, 8 ranks"
  MeasuredAndSimulated time;
};

/// Points on one fabric at one NIC speed.
struct FabricReport {
  std::string title;  // "2:1, 8 nodes of 200 Mbit/s"
  std::vector<PathCheck> paths;
  std::vector<AloneCheck> alone;
  std::vector<RunComparison> steps;
};

struct ClusterReport {
  std::string compute;  // "kernels", "waits"
  std::vector<FabricReport> fabrics;
  /// What was not run: a point, by the trainer's own sentence, or a fabric.
  std::vector<std::pair<std::string, std::string>> refused;

  std::vector<RunComparison> steps() const;
};

/// Of the plans on one fabric, in the order of their steps; none where fewer than three.
std::optional<double> rank_correlation(const FabricReport& report);

/// `every_part`: of each step as well. Borrows `report` until it is written.
sim::ToldSection told_of(const ClusterReport& report, bool every_part);

}  // namespace stepcast::validate
