// How long the chunked kernels of linear attention take alone on one GPU: gated delta rule and
// state spaces. From published rows; where a GPU, a pass or a shape has none, from the nearest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/tables/calibration_table.hpp"
#include "sim/tables/provenance.hpp"
#include "topology/specs.hpp"
#include "workloads/pieces/operations.hpp"

namespace stepcast::sim {

/// Whether a row of attention is of such a kernel, and none of softmax attention.
bool is_recurrence(const AttentionRow& row);

struct RecurrenceTime {
  Duration duration{};
  Provenance provenance{};
};

class RecurrenceTimes {
 public:
  RecurrenceTimes(const std::vector<AttentionRow>& rows, const topology::GpuSpec& gpu);

  /// None: no row of such a kernel is known.
  std::optional<RecurrenceTime> time_of(const workloads::Kernel& kernel) const;

 private:
  struct Point {
    bool state_space = false, backward = false;
    double sequence = 0, sequences_heads = 0;  // of a sequence; sequences x heads
    double rate = 0;                           // FLOP/s, as workloads/plan/layer_shape.hpp counts
    Provenance provenance{};
  };
  std::optional<RecurrenceTime> nearest(const workloads::Kernel& kernel, bool backward) const;

  std::vector<Point> points_;  // on this GPU, or as they would be
  double floor_;
};

}  // namespace stepcast::sim
