// Measured times of collectives by size, for groups that were measured: which published rows apply
// to this machine, and what they say between their sizes. Knows no model.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/constants.hpp"
#include "sim/network/model.hpp"
#include "sim/tables/calibration_table.hpp"
#include "topology/specs.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

struct CurvePoint {
  Bytes bytes{};
  Duration duration{};
};

/// One collective over one group shape, sizes ascending, times never falling (a dip in a
/// measurement is noise: more bytes are never faster).
struct CollectiveCurve {
  std::string gpu;
  workloads::CollectiveKind kind{};
  std::int64_t ranks = 0;
  std::int64_t nodes = 0;
  std::string source;
  std::vector<CurvePoint> points;
  bool fp8_sums = false;  // NCCL serves them otherwise than all wider types
  bool here = true;       // measured on this very GPU, with this bandwidth between nodes

  GroupShape shape() const { return {ranks, nodes, ranks / nodes, 1}; }
  Bytes smallest() const { return points.front().bytes; }
  Bytes largest() const { return points.back().bytes; }
  bool covers(Bytes bytes) const { return smallest() <= bytes && bytes <= largest(); }
  bool has_point(Bytes bytes) const;
  /// Log-log between the points; the size must be covered.
  Duration at(Bytes bytes) const;
  /// Neighbouring points that are more than 16 times apart with `bytes` between them: too far for
  /// a straight line, as protocols change in between.
  std::optional<std::pair<CurvePoint, CurvePoint>> hole_at(Bytes bytes) const;
};

class CollectiveCurves {
 public:
  CollectiveCurves() = default;
  /// Keeps the rows of this GPU family, of confidence high or medium and, across nodes, measured on
  /// this node's kind of network with its bandwidth, less what the way of measuring adds. Later
  /// rows of a table win only by being of the very GPU, or by more sizes.
  CollectiveCurves(const std::vector<CollectiveRow>& rows, const topology::NodeSpec& node,
                   const MeasurementConstants& measuring);

  const CollectiveCurve* find(workloads::CollectiveKind, const GroupShape&,
                              bool fp8_sums = false) const;
  /// Curves of the same collective and ranks per node with the next fewer and the next more nodes.
  /// Only from 3 nodes on: two nodes follow another law (a double tree crosses once).
  struct Neighbours {
    const CollectiveCurve* fewer = nullptr;
    const CollectiveCurve* more = nullptr;
  };
  Neighbours neighbours(workloads::CollectiveKind, const GroupShape&, bool fp8_sums = false) const;

  const std::vector<CollectiveCurve>& all() const { return curves_; }

 private:
  std::vector<CollectiveCurve> curves_;
};

}  // namespace stepcast::sim
