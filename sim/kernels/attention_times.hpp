// How long an attention kernel takes alone on one GPU: published rates by implementation, type,
// pass, mask, window and head dimensions, interpolated over the sequence length. Knows no roofline.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/units.hpp"
#include "sim/tables/calibration_table.hpp"
#include "sim/tables/provenance.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/software.hpp"

namespace stepcast::sim {

struct AttentionShape {
  std::int64_t batch = 1, heads = 1, sequence = 1, head_dim = 128;  // heads: of the queries
  bool causal = true;
  bool backward = false;
  std::int64_t value_dim = 0;                       // of v and o; 0: head_dim
  std::int64_t window = 0;                          // tokens that a causal mask looks back; 0: all
  workloads::Dtype dtype = workloads::Dtype::bf16;  // or fp8, mxfp8; fp16 is as bf16

  /// 2 (d + d_v) FLOP forward for each score (two products), 6 d + 4 d_v backward (five); of s^2
  /// scores, half under a causal mask, or those inside the window: as the published rates count.
  double flops() const;
  static constexpr double backward_flops_over_forward = 2.5;  // of equal dimensions
  bool has_value_dim() const { return value_dim != 0 && value_dim != head_dim; }
  bool has_window() const { return window > 0 && window < sequence; }
  /// Thread blocks: one per 128 rows of a head (FlashAttention's row block).
  std::int64_t blocks() const;
};

struct AttentionTime {
  Duration duration{};
  Provenance provenance{};
  double short_run = 1.0;  // share that rests on rows that stepcast-calibrate did not measure
};

/// "flash2", "memory_efficient", ...: as calibration rows call it.
std::string_view implementation_name(workloads::AttentionKernel kernel);

class AttentionTimes {
 public:
  AttentionTimes(const std::vector<AttentionRow>& rows, const topology::GpuSpec& gpu);

  /// From the best that is known, in this order: this implementation on this GPU; on a sibling
  /// GPU, scaled by the tensor peak; another implementation on this GPU. None: nothing known.
  std::optional<AttentionTime> time_of(const AttentionShape& shape,
                                       workloads::AttentionKernel kernel) const;

 private:
  /// What a kernel is made for; others stand in for it at another rate.
  struct Form {
    workloads::Dtype dtype = workloads::Dtype::bf16;
    bool value_dim = false, window = false;
    friend bool operator==(const Form&, const Form&) = default;
  };
  struct Point {
    std::string gpu, implementation;
    bool backward = false, causal = false, sibling = false;
    bool derived = false;  // split from a combined figure, or carried over by a ratio
    bool own = false;      // measured by stepcast-calibrate, not published
    std::int64_t batch = 0, heads = 0, sequence = 0, head_dim = 0;
    double rate = 0;  // FLOP/s
    Form form{};
    std::int64_t value_dim = 0, window = 0;
  };
  struct Choice {
    std::string_view implementation;
    bool sibling;
    Form form{};
  };

  static workloads::Dtype form_type(workloads::Dtype dtype);
  /// Of rates by length, on straight lines between the points in log-log space.
  static double on_curve(const std::map<std::int64_t, double>& curve, std::int64_t sequence);
  static bool same_shape(const Point& a, const Point& b);
  static bool same_but_pass(const Point& a, const Point& b);
  static bool same_but_mask(const Point& a, const Point& b);
  static bool same_kernel(const Point& a, const Point& b);
  /// Its texts are those of the point.
  using KernelKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, workloads::Dtype, bool,
                               bool, std::string_view, std::string_view>;
  static KernelKey kernel_of(const Point& p);
  Point point_of(const AttentionRow& row) const;
  void drop_foreign();
  void settle_siblings();
  void add_direct(const std::vector<AttentionRow>& rows);
  void add_split(const std::vector<AttentionRow>& rows);
  void add_backwards();
  void add_other_masks();
  void add_first_flash();
  void add_flash_on_blackwell();
  double backward_ratio(const std::string& implementation) const;
  double causal_ratio(std::int64_t sequence) const;
  void find_backward_ratios();
  void find_causal_ratios();
  std::optional<AttentionTime> from(const Choice& choice, const AttentionShape& shape) const;
  std::optional<AttentionTime> from_any_form(std::string_view implementation,
                                             const AttentionShape& shape) const;
  std::int64_t nearest_head_dim(const std::vector<const Point*>& points,
                                const AttentionShape& shape) const;

  topology::GpuSpec gpu_;
  std::vector<Point> points_;
  std::map<std::string, double> backward_ratios_;  // by implementation
  std::map<std::int64_t, double> causal_ratios_;   // by sequence length
};

}  // namespace stepcast::sim
