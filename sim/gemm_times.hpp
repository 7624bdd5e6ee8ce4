// How long a matrix product takes alone on one GPU: a physical trend (tiles in waves over the SMs)
// times what measured shapes nearby deviate from it. Knows no layout: published rows of A100 and
// H100 time the forward product only, dgrad and wgrad are taken as equally fast.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/units.hpp"
#include "sim/calibration_table.hpp"
#include "sim/provenance.hpp"
#include "topology/specs.hpp"
#include "workloads/plan.hpp"

namespace stepcast::sim {

/// C[m,n] = A[m,k] B[k,n], `batch` of them in one kernel.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;

  double flops() const;
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

struct GemmTime {
  Duration duration{};
  Provenance provenance{};
  std::int64_t tiles = 0;
};

/// Thread blocks of a product: 128 x 256 outputs each on Hopper and later, 128 x 128 before, the
/// tile turned the way that needs fewer.
std::int64_t gemm_tiles(const GemmShape& shape, topology::Architecture architecture);

class GemmTimes {
 public:
  /// Takes the rows of this GPU; those of its siblings, scaled by the tensor peak, where it has
  /// fewer than `enough_rows` of its own.
  GemmTimes(const std::vector<GemmRow>& rows, const topology::GpuSpec& gpu);

  static constexpr std::size_t enough_rows = 16;

  /// None where the GPU has neither rows nor a peak for this dtype.
  std::optional<GemmTime> time_of(const GemmShape& shape, workloads::Dtype dtype) const;

 private:
  struct Point {
    double log_m = 0, log_n = 0, log_k = 0;
    GemmShape shape;
    double seconds = 0;    // measured, corrected, not scaled
    double deviation = 0;  // log(measured / trend)
    bool sibling = false;
  };
  struct Estimate {
    double seconds = 0;
    Provenance provenance{};
  };
  struct Family {
    FlopsPerSecond peak{};
    std::vector<Point> points;
    double largest_deviation = 0;
  };

  void add(Family& family, const std::vector<GemmRow>& rows, bool eight_bit) const;
  double trend(const GemmShape& shape, FlopsPerSecond peak) const;
  Estimate estimate(const Family& family, const GemmShape& shape) const;
  GemmTime interpolate(const Family& family, const GemmShape& shape) const;
  double longest_part(const Family& family, const GemmShape& shape, int dimension,
                      double longest) const;

  topology::GpuSpec gpu_;
  Family half_, eight_bit_;
};

}  // namespace stepcast::sim
