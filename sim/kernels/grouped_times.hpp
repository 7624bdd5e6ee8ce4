// How long the products of a layer's experts take, issued one by one on four streams or as one
// kernel: the trend of such calls times what measured ones deviate from it; where none of their
// type was measured, what as many products in one kernel take (gemm_times.hpp).
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/kernels/gemm_times.hpp"

namespace stepcast::sim {

struct GroupedCall {
  GemmShape each{};  // batch: experts
  bool accumulate = false;
  bool one_launch = false;

  friend bool operator==(const GroupedCall&, const GroupedCall&) = default;
};

class GroupedTimes {
 public:
  /// Takes the rows of grouped products of this GPU; of its siblings where it has none of a type.
  GroupedTimes(const std::vector<GemmRow>& rows, const topology::GpuSpec& gpu,
               const GemmTimes& gemms);

  /// None where `gemms` has no time for such products. The same `gemms` as at first.
  std::optional<GemmTime> time_of(const GroupedCall& call, workloads::Dtype dtype,
                                  const GemmTimes& gemms) const;

 private:
  struct Point {
    GroupedCall call;
    double seconds = 0, deviation = 0;
    bool sibling = false;
  };
  using Points = std::vector<Point>;
  /// Type, one launch, adds in fp32.
  using Key = std::tuple<workloads::Dtype, bool, bool>;

  void add(const std::vector<GemmRow>& rows, const GemmTimes& gemms, bool siblings);
  const Points* points_for(const GroupedCall& call, workloads::Dtype type) const;
  std::optional<double> trend_seconds(const GroupedCall& call, workloads::Dtype type,
                                      const GemmTimes& gemms) const;

  topology::GpuSpec gpu_;
  std::map<Key, Points> points_;
};

}  // namespace stepcast::sim
