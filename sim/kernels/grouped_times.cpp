#include "sim/kernels/grouped_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "engine/check.hpp"
#include "sim/kernels/operand_types.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

// Products go round four streams (Transformer Engine, cublaslt_gemm.cu), but of kernels whose
// blocks take an SM each, about two run beside each other: with that and the bytes added to the
// trend, measured calls of a B200 (calibrate/published/products.csv) are met best when left out.
constexpr std::int64_t beside_each_other = 2;
constexpr double of_bandwidth = 0.85;  // as every kernel that only moves bytes

// What makes two calls alike: the rows of an expert above all.
constexpr double matrix_counts = 0.35;
constexpr double alike = 0.2;

double logarithm(std::int64_t value) { return std::log(static_cast<double>(value)); }

double squared_distance(const GroupedCall& a, const GroupedCall& b) {
  // Rows of tokens are m, or k of a weight's gradient.
  const auto sizes = [](const GroupedCall& c) {
    return c.accumulate ? std::array{c.each.k, c.each.m, c.each.n}
                        : std::array{c.each.m, c.each.n, c.each.k};
  };
  const auto x = sizes(a), y = sizes(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double apart = logarithm(x[i]) - logarithm(y[i]);
    sum += (i == 0 ? 1.0 : matrix_counts * matrix_counts) * apart * apart;
  }
  return sum;
}

/// What is timed as one product: all experts', or those that run beside each other.
GemmShape at_a_time(const GroupedCall& call) {
  GemmShape together = call.each;
  if (!call.one_launch) together.batch = std::min(beside_each_other, call.each.batch);
  return together;
}

double rounds_of(const GroupedCall& call) {
  return static_cast<double>(call.each.batch) / static_cast<double>(at_a_time(call).batch);
}

std::optional<GemmTime> as_one_product(const GroupedCall& call, workloads::Dtype type,
                                       const GemmTimes& gemms) {
  const GemmShape together = at_a_time(call);
  auto time = gemms.time_of(together, type);
  if (!time) return time;
  time->duration = to_duration(seconds(time->duration) * rounds_of(call));
  time->tiles = time->tiles * call.each.batch / together.batch;
  time->this_call = false;
  if (time->provenance < Provenance::derived) time->provenance = Provenance::derived;
  return time;
}

/// Operands once, results in 16 bits, or fp32 sums read and written.
double bytes_of(const GroupedCall& call, workloads::Dtype type) {
  const GemmShape& s = call.each;
  const std::int64_t operands = (s.m * s.k + s.k * s.n) * workloads::bits_per_element(type) / 8;
  const std::int64_t results = s.m * s.n * (call.accumulate ? 8 : 2);
  return static_cast<double>(s.batch * (operands + results));
}

GroupedCall call_of(const GemmRow& row) {
  return {{row.m, row.n, row.k, row.groups}, row.accumulate, row.call == "one_launch"};
}

}  // namespace

GroupedTimes::GroupedTimes(const std::vector<GemmRow>& rows, const topology::GpuSpec& gpu,
                           const GemmTimes& gemms)
    : gpu_(gpu) {
  add(rows, gemms, false);
  add(rows, gemms, true);
}

/// Siblings only for what the GPU itself has no rows of.
void GroupedTimes::add(const std::vector<GemmRow>& rows, const GemmTimes& gemms, bool siblings) {
  std::set<Key> known;
  for (const auto& [key, points] : points_) known.insert(key);
  for (const GemmRow& row : rows) {
    if (row.groups == 0 || row.source->confidence == "low") continue;
    const Kinship kin = kinship(row.gpu, gpu_);
    if (siblings ? kin != Kinship::sibling : kin > Kinship::same_chip) continue;
    const auto type = operand_type(row.dtype);
    if (!type) continue;
    const GroupedCall call = call_of(row);
    const workloads::Dtype multiplied = multiplied_as(*type, gpu_.architecture);
    const Key key{multiplied, call.one_launch, call.accumulate};
    if (known.contains(key)) continue;
    const auto base = trend_seconds(call, multiplied, gemms);
    const auto peak = tensor_peak_of(row.gpu, gpu_);
    if (!base || (siblings && !peak)) continue;
    const double faster = siblings ? gpu_.tensor_peak / *peak : 1.0;
    const double measured = call.each.flops() / (corrected_rate(row, gpu_) * faster);
    points_[key].push_back({call, measured, std::log(measured / *base), siblings});
  }
}

std::optional<double> GroupedTimes::trend_seconds(const GroupedCall& call, workloads::Dtype type,
                                                  const GemmTimes& gemms) const {
  const auto time = gemms.trend_of(at_a_time(call), type);
  if (!time) return std::nullopt;
  return seconds(*time) * rounds_of(call) +
         bytes_of(call, type) / (gpu_.memory_bandwidth.value * of_bandwidth);
}

/// Of calls that add as this one does, else of the others.
const GroupedTimes::Points* GroupedTimes::points_for(const GroupedCall& call,
                                                     workloads::Dtype type) const {
  for (const bool adds : {call.accumulate, !call.accumulate})
    if (const auto found = points_.find({type, call.one_launch, adds}); found != points_.end())
      return &found->second;
  return nullptr;
}

std::optional<GemmTime> GroupedTimes::time_of(const GroupedCall& call, workloads::Dtype dtype,
                                              const GemmTimes& gemms) const {
  const workloads::Dtype type = multiplied_as(dtype, gpu_.architecture);
  auto time = as_one_product(call, type, gemms);
  const Points* points = points_for(call, type);
  const auto trend = trend_seconds(call, type, gemms);
  if (!time || points == nullptr || !trend) return time;
  double weights = 0, sum = 0, exact_seconds = 0;
  std::int64_t exact = 0;
  for (const Point& p : *points) {
    const double weight = std::pow(squared_distance(p.call, call) + alike * alike, -2);
    weights += weight;
    sum += weight * p.deviation;
    if (!p.sibling && p.call == call) ++exact, exact_seconds += p.seconds;
  }
  if (exact > 0) {
    time->duration = to_duration(exact_seconds / static_cast<double>(exact));
    time->provenance = Provenance::measured;
    return time;
  }
  time->duration = to_duration(*trend * std::exp(sum / weights));
  if (!points->front().sibling) time->provenance = Provenance::interpolated;
  return time;
}

}  // namespace stepcast::sim
