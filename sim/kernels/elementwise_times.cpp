#include "sim/kernels/elementwise_times.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/arithmetic.hpp"
#include "sim/kernels/kernel_names.hpp"
#include "sim/kernels/launch_floor.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

// Devices and step programs count the small tensors (row statistics, weights of norms) differently.
constexpr double same_bytes = 0.02;

// Beyond a factor of two the bandwidth of the nearest point is a guess.
constexpr double as_large = 2.0;

// Norms of a head's 128 numbers run at half the rate of norms of a model's thousands.
constexpr std::int64_t least_width = 1024;

/// Whose norms: Transformer Engine's are as fast as cuDNN's (derived), torch's eager code has one
/// kernel where it is asked for.
std::string_view norm_of(workloads::Fusion fusion) {
  switch (fusion) {
    case workloads::Fusion::fused:
      return "cudnn";
    case workloads::Fusion::compiled:
      return "inductor";
    case workloads::Fusion::eager:
      return "eager";
    case workloads::Fusion::own:
      return "own";
  }
  return "";
}

/// On straight lines in log-log space; longer than measured: at the last bandwidth; shorter: no
/// faster than in proportion, no slower than the smallest.
double seconds_at(const std::map<double, double>& curve, double bytes) {
  const auto right = curve.lower_bound(bytes);
  if (right == curve.end()) return curve.rbegin()->second * bytes / curve.rbegin()->first;
  // A launch costs a kernel of any size something: half of the way to proportion.
  if (right == curve.begin()) return right->second * std::sqrt(bytes / right->first);
  const auto left = std::prev(right);
  const double x = std::log(bytes / left->first) / std::log(right->first / left->first);
  return left->second * std::pow(right->second / left->second, x);
}

Provenance origin_at(const std::map<double, double>& curve, double bytes) {
  for (const auto& [measured, seconds] : curve)
    if (std::abs(bytes / measured - 1.0) <= same_bytes) return Provenance::measured;
  const bool inside =
      bytes * as_large >= curve.begin()->first && bytes <= as_large * curve.rbegin()->first;
  return inside ? Provenance::interpolated : Provenance::extrapolated;
}

}  // namespace

ElementwiseTimes::ElementwiseTimes(const std::vector<ElementwiseRow>& rows,
                                   const topology::GpuSpec& gpu, workloads::Fusion fusion) {
  Points own, published, of_siblings;
  for (const ElementwiseRow& row : rows) {
    const bool same = kinship(row.gpu, gpu.name) == Kinship::same;
    const bool sibling =
        !same && gpu.architecture.one_memory && kinship(row.gpu, gpu) == Kinship::sibling;
    if (row.cache == "hot" || !(same || sibling)) continue;
    const bool measured = row.quality.samples > 0;
    const bool norm = row.kind == "rmsnorm" && row.width >= least_width;
    if (measured ? !same : !(norm && row.implementation == norm_of(fusion))) continue;
    Points& points = measured ? own : same ? published : of_siblings;
    points[{row.kind, row.pass == "backward"}][static_cast<double>(row.bytes.value)].push_back(
        above_floor(seconds(row.duration), memory_slowdown(gpu), gpu));
  }
  published_ = own.empty();
  take(!published_ ? own : published.empty() ? of_siblings : published);
}

void ElementwiseTimes::take(const Points& points) {
  for (const auto& [key, by_bytes] : points)
    for (const auto& [bytes, times] : by_bytes) curves_[key][bytes] = median(times);
}

const ElementwiseTimes::Curve* ElementwiseTimes::curve_of(std::string_view kind,
                                                          bool backward) const {
  const auto found = curves_.find({std::string(kind), backward});
  return found == curves_.end() ? nullptr : &found->second;
}

std::optional<ElementwiseTime> ElementwiseTimes::time_of(const workloads::Kernel& kernel) const {
  if (curves_.empty() || kernel.bytes.value <= 0) return std::nullopt;
  const ElementwiseUse use = elementwise_use(kernel);
  if (published_ && use.kind != "rmsnorm") return std::nullopt;
  const Curve* curve = curve_of(use.kind, use.backward);
  bool exact = use.exact;
  if (curve == nullptr && !use.otherwise.empty()) {
    curve = curve_of(use.otherwise, use.backward);
    exact = false;
  }
  if (curve == nullptr && use.kind == "rmsnorm") curve = curve_of("layernorm", use.backward);
  if (curve == nullptr && use.backward && !published_) {
    curve = curve_of(use.otherwise.empty() ? use.kind : use.otherwise, false);
    exact = false;
  }
  if (curve == nullptr) return std::nullopt;
  const auto bytes = static_cast<double>(kernel.bytes.value);
  return ElementwiseTime{to_duration(seconds_at(*curve, bytes)),
                         exact ? origin_at(*curve, bytes) : Provenance::derived};
}

}  // namespace stepcast::sim
