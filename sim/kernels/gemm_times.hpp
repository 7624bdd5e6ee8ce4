// How long a matrix product takes alone on one GPU: a physical trend (tiles in waves over the SMs)
// times what measured shapes nearby deviate from it. Published rows of A100 and H100 time the
// forward product only, so dgrad and wgrad are taken as equally fast; rows of stepcast-calibrate
// know their layout and answer for it alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/units.hpp"
#include "sim/tables/calibration_table.hpp"
#include "sim/tables/provenance.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::sim {

/// C[m,n] = A[m,k] B[k,n], `batch` of them in one kernel.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;

  double flops() const;
  friend auto operator<=>(const GemmShape&, const GemmShape&) = default;
};

/// How a product is called: opA and opB ("NT", "NN", "TN", "" any), and C += in fp32.
struct GemmCall {
  std::string_view layout;
  bool accumulate = false;
};

struct GemmTime {
  Duration duration{};
  Provenance provenance{};
  std::int64_t tiles = 0;
  bool this_call = false;  // measured in this very shape, layout and accumulation
  double short_run = 1.0;  // share of it that rests on rows that stepcast-calibrate did not measure
};

/// Thread blocks of a product, by the architecture's tile, turned the way that needs fewer.
std::int64_t gemm_tiles(const GemmShape& shape, const topology::Architecture& architecture);

/// What the row says of short runs: rates on data that is nearly zero, or held by a power limit,
/// are told as they would be without. `gpu`: for which the row is used, of the same generation.
double corrected_rate(const GemmRow& row, const topology::GpuSpec& gpu);

/// Threads may share one: it remembers what it estimated, as the halves of one product are those of
/// the next. That is bounded: full, it starts anew.
class GemmTimes {
 public:
  /// Takes the rows of this GPU; those of its siblings, scaled by the tensor peak, where it has
  /// fewer than `enough_rows` of its own; and for types of eight bits and four, where those are
  /// still fewer, the rows of fp8 (for mxfp8) and of 16 bits at the level of the few.
  GemmTimes(const std::vector<GemmRow>& rows, const topology::GpuSpec& gpu);

  static constexpr std::size_t enough_rows = 16;

  /// Of the trend alone, without what measured shapes deviate; none without a peak.
  std::optional<Duration> trend_of(const GemmShape& shape, workloads::Dtype dtype) const;

  /// None where the GPU has neither rows nor a peak for this dtype.
  std::optional<GemmTime> time_of(const GemmShape& shape, workloads::Dtype dtype,
                                  const GemmCall& call = {}) const;

 private:
  struct Point {
    double log_m = 0, log_n = 0, log_k = 0;
    GemmShape shape;
    double seconds = 0;    // measured, corrected, not scaled
    double deviation = 0;  // log(measured / trend)
    bool sibling = false;
    bool own = false;      // measured by stepcast-calibrate, not published
    std::string layout{};  // of rows of our own; "" of published ones
    bool accumulate = false;
  };
  using Points = std::vector<Point>;
  /// Of one type: its peak, and what begin and end of a tile take, in units of k.
  struct TileLoop {
    FlopsPerSecond peak{};
    double ends = 0;
  };
  struct Estimate {
    double seconds = 0;
    Provenance provenance{};
    bool this_call = false;
    double short_run = 1.0;
  };
  /// Rows of one dtype; where enough of one layout are our own, they stand alone for it.
  struct Family {
    TileLoop loop{};
    Points points;
    std::map<std::string, Points> by_call{};  // "TN+" accumulates
    double largest_deviation = 0;

    const Points& of(const GemmCall& call) const;
  };

  static TileLoop loop_of(FlopsPerSecond peak, workloads::Dtype dtype);
  void add(Family& family, const std::vector<GemmRow>& rows, workloads::Dtype dtype) const;
  void add_own(Family& family, const std::vector<GemmRow>& rows, workloads::Dtype dtype) const;
  void add_siblings(Family& family, const std::vector<GemmRow>& rows, workloads::Dtype dtype) const;
  void borrow_shapes(Family& family, const Family& lender) const;
  void take(Family& family, const GemmRow& row, FlopsPerSecond peak, bool sibling) const;
  void part_by_call(Family& family) const;
  double trend(const GemmShape& shape, const TileLoop& loop) const;
  double usual_trend(const GemmShape& shape, const TileLoop& loop) const;
  double loop_seconds(const GemmShape& shape, const TileLoop& loop) const;
  Estimate estimate(const Family& family, const GemmCall& call, const GemmShape& shape) const;
  Estimate known(const Family& family, const GemmCall& call, const GemmShape& shape) const;
  GemmTime interpolate(const Family& family, const GemmCall& call, const GemmShape& shape) const;
  double longest_part(const Family& family, const GemmCall& call, const GemmShape& shape,
                      int dimension, double longest) const;

  static constexpr std::size_t most_known = 65536;  // of some 150 bytes
  struct Question {
    const Family* family = nullptr;
    std::string layout{};
    bool accumulate = false;
    GemmShape shape{};
    friend auto operator<=>(const Question&, const Question&) = default;
  };
  struct Memory {
    std::mutex mutex{};
    std::map<Question, Estimate> known{};
  };

  topology::GpuSpec gpu_;
  std::map<workloads::Dtype, Family> families_;  // bf16 for both 16-bit types
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
};

}  // namespace stepcast::sim
