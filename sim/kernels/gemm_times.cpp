#include "sim/kernels/gemm_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/kernels/launch_floor.hpp"
#include "sim/kernels/operand_types.hpp"
#include "sim/kernels/sustained.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

// The trend. A product is `tiles` of equal work over the SMs:
//   t = launch_floor + w x tile_time,  tile_time = 2 TM TN k (1 + k_overhead / k) / (SM rate)
// with w = tiles / SMs, rounded up to whole waves with the weight `quantised` (cuBLAS splits k and
// picks other tiles to fill a last wave, so a sharp ceiling is too strict), and w^under_filled
// below one wave (smaller tiles and split k; a GPU a quarter full is half as fast, not a quarter).
// The constants are global, chosen together by leave-one-out error over the published rows of
// V100, A100 and H100 (2026-11); near them the error changes by < 0.5 %.
constexpr double k_overhead = 256;  // prologue and epilogue of a tile, in units of k
// They take as long in eight bits, whose loop is twice as fast: twice as many k. In four bits, with
// a loop four times as fast, as many k are half the time. Left out by shape (2026-11), in brackets
// with k_overhead: fp8 of GB200 misses by 5.4 % (13.0), of H200 by 8.2 (9.2), of H100 by 9.3
// (10.2), of MI355X by 3.6 (3.9), nvfp4 of GB200 by 14.8 (19.5; by 27 with four times as many).
// Worse are fp8 of B200, 11.2 (10.9), and of B300, 5.1 (3.7).
constexpr double narrow_k_overhead = 2 * k_overhead;
constexpr double quantised = 0.25;
constexpr double under_filled = 0.5;
constexpr std::size_t enough_of_a_layout = 8;  // to answer for it alone

// What makes two shapes alike. The library picks its kernel (tile, split, order of tiles) by m and
// n above all, and a deeper product runs the same loop longer: a factor in k counts a third of one
// in m or n. The transposed product has as many tiles, but other kernels. And as the choice jumps
// from shape to shape, the nearest row knows little more than the next ones: rows nearer than
// `jump` count alike. Chosen together as above: median error left out 3.4 % V100, 4.4 % A100, 4.8 %
// H100 (5.6, 4.3, 7.5 % with isotropic distances, eight neighbours, and no jump).
constexpr std::size_t neighbours = 12;
constexpr double depth_counts = 0.35;
constexpr double turned = 0.5;  // distance of a product from its transpose
constexpr double jump = 0.2;

// Beyond a factor of about two in one or two dimensions from any measured shape it is no longer
// interpolation: distance in log space sqrt(2) ln 2.
constexpr double comparable = 0.98;

// Rows that say "small" multiplied activations that had underflowed to zero: vidur's down
// projections, whose weights are +-1e-3 and whose input is a product of two such layers' outputs
// (vidur/profiling/mlp, e26eb8f). Zeros draw less power and an H100 then keeps a higher clock: 788
// against 894 TFLOP/s at 8192^3 on an H200 (measured 2026-10). Next to vidur's other products,
// whose bits are random, those rows are 15 to 18 % faster from 4e10 FLOP on (about 50 us) and no
// faster below; on an A100 they are not faster at all.
constexpr double small_data_from = 4e10;  // FLOP

// A machine that says "power" ran some of its products in the state that its power limit leaves,
// and others in that of short runs, as chance had it (sustained.hpp). What a step keeps of a rate
// is taken off later, of all rows alike; so those of the first state are told as in the second.
// Products of less than a tenth of a millisecond, or of less than 0.3 of the peak, are bound by
// other things.
constexpr double held_above = 0.30, held_below = 0.55;  // of the peak; the states: 0.49 and 0.64
constexpr double held_from = 1e11;                      // FLOP

bool serves(const GemmRow& row, workloads::Dtype dtype) {
  // A step finds its weights cold, and a trainer takes the library's first proposal. The best of a
  // search over shapes tells nothing of the shapes beside it.
  const bool usable = row.data != "zeros" && row.source->confidence != "low" &&
                      row.cache != "hot" && !row.is_best() && row.groups == 0;
  return usable && operand_type(row.dtype) == dtype;
}

// Peaks apart by no more are one: sheets print 989 and 989.4.
constexpr double same_peak = 0.005;

bool low_precision(workloads::Dtype dtype) { return workloads::bits_per_element(dtype) < 16; }

}  // namespace

double GemmShape::flops() const {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
         static_cast<double>(batch);
}

std::int64_t gemm_tiles(const GemmShape& s, const topology::Architecture& architecture) {
  const std::int64_t a = architecture.tile_rows, b = architecture.tile_columns;
  return s.batch *
         std::min(ceil_div(s.m, a) * ceil_div(s.n, b), ceil_div(s.m, b) * ceil_div(s.n, a));
}

double corrected_rate(const GemmRow& row, const topology::GpuSpec& gpu) {
  const double flops =
      GemmShape{row.m, row.n, row.k, std::max<std::int64_t>(1, row.groups)}.flops();
  // Timed after thousands of runs without a pause, as a step's are: a short run would be faster.
  if (row.limit == "sustained") return row.rate.value / sustained_share_of(row.gpu, gpu);
  if (row.data == "small" && flops >= small_data_from)
    return row.rate.value * gpu.architecture.idle_data;
  const auto type = operand_type(row.dtype);
  const auto peak = type ? peak_of(gpu, *type) : FlopsPerSecond{};
  const bool held = row.limit == "power" && flops >= held_from && row.rate > peak * held_above &&
                    row.rate < peak * held_below;
  return row.rate.value / (held ? blackwell_sustained : 1.0);
}

GemmTimes::GemmTimes(const std::vector<GemmRow>& rows, const topology::GpuSpec& gpu) : gpu_(gpu) {
  expects(gpu.sms > 0 && gpu.tensor_peak.value > 0, "a GPU with SMs and a tensor peak");
  using enum workloads::Dtype;
  for (const workloads::Dtype dtype : {bf16, fp8, fp8_block, mxfp8, nvfp4, tf32, fp32})
    if (peak_of(gpu, dtype).value > 0 && multiplied_as(dtype, gpu.architecture) == dtype)
      add(families_[dtype], rows, dtype);
  for (auto& [dtype, family] : families_) part_by_call(family);
}

const GemmTimes::Points& GemmTimes::Family::of(const GemmCall& call) const {
  const auto found = by_call.find(std::string(call.layout) + (call.accumulate ? "+" : ""));
  return found == by_call.end() ? points : found->second;
}

/// Products of one layout that we measured ourselves answer for it alone, if they are enough for
/// the neighbours of any shape.
void GemmTimes::part_by_call(Family& family) const {
  std::map<std::string, Points> parts;
  for (const Point& p : family.points)
    if (!p.layout.empty() && !p.sibling) parts[p.layout + (p.accumulate ? "+" : "")].push_back(p);
  for (auto& [call, points] : parts)
    if (points.size() >= enough_of_a_layout) family.by_call[call] = std::move(points);
}

void GemmTimes::take(Family& family, const GemmRow& row, FlopsPerSecond peak, bool sibling) const {
  const GemmShape shape{row.m, row.n, row.k, 1};
  const double measured = shape.flops() / corrected_rate(row, gpu_);
  const auto log = [](std::int64_t v) { return std::log(static_cast<double>(v)); };
  const double deviation = std::log(measured / usual_trend(shape, {peak, family.loop.ends}));
  const bool own = row.quality.samples > 0;
  family.points.push_back({log(row.m), log(row.n), log(row.k), shape, measured, deviation, sibling,
                           own, own ? row.layout : "", own && row.accumulate});
  family.largest_deviation = std::max(family.largest_deviation, deviation);
}

void GemmTimes::add(Family& family, const std::vector<GemmRow>& rows,
                    workloads::Dtype dtype) const {
  family.loop = loop_of(peak_of(gpu_, dtype), dtype);
  add_own(family, rows, dtype);
  const bool low = low_precision(dtype);
  if (family.points.size() >= enough_rows || !(low || dtype == workloads::Dtype::bf16)) return;
  add_siblings(family, rows, dtype);
  // The types that are multiplied as this one is, the likest first: mxfp8 is fp8 at its scales.
  using enum workloads::Dtype;
  for (const workloads::Dtype lender : {fp8, bf16})
    if (const auto found = families_.find(lender);
        low && found != families_.end() && (lender == bf16 || dtype == mxfp8))
      borrow_shapes(family, found->second);
}

void GemmTimes::add_own(Family& family, const std::vector<GemmRow>& rows,
                        workloads::Dtype dtype) const {
  for (const GemmRow& row : rows)
    if (serves(row, dtype) && kinship(row.gpu, gpu_) <= Kinship::same_chip) {
      const auto known = low_precision(dtype)              ? low_peak_of(row.gpu, gpu_, dtype)
                         : dtype == workloads::Dtype::bf16 ? tensor_peak_of(row.gpu, gpu_)
                                                           : std::nullopt;
      const bool what_if = known && std::abs(family.loop.peak / *known - 1.0) > same_peak;
      take(family, row, what_if ? *known : family.loop.peak, what_if);
    }
}

/// Types scale alike: Blackwell Ultra's nvfp4 peak is 1.5 times the B200's, and its rows, at 0.38
/// of it, are not bound by that.
void GemmTimes::add_siblings(Family& family, const std::vector<GemmRow>& rows,
                             workloads::Dtype dtype) const {
  for (const GemmRow& row : rows) {
    if (!serves(row, dtype) || kinship(row.gpu, gpu_) != Kinship::sibling) continue;
    if (const auto peak = tensor_peak_of(row.gpu, gpu_))
      take(family, row,
           low_precision(dtype) ? family.loop.peak * (*peak / gpu_.tensor_peak) : *peak, true);
  }
}

/// Where few have measured a type, shapes differ as they do in another that more have, and the few
/// tell the level: the median of what they deviate from the trend more than the other's products of
/// their shapes do.
void GemmTimes::borrow_shapes(Family& family, const Family& lender) const {
  if (family.points.empty() || family.points.size() >= enough_rows || lender.points.empty()) return;
  std::vector<double> levels;
  for (const Point& p : family.points) {
    const double lent = estimate(lender, {}, p.shape).seconds;
    levels.push_back(p.deviation - std::log(lent / trend(p.shape, lender.loop)));
  }
  const double level = median(std::move(levels));
  for (Point p : lender.points) {
    p.deviation += level;
    p.seconds = trend(p.shape, family.loop) * std::exp(p.deviation);
    p.sibling = true;
    p.layout.clear();
    family.points.push_back(p);
    family.largest_deviation = std::max(family.largest_deviation, p.deviation);
  }
}

GemmTimes::TileLoop GemmTimes::loop_of(FlopsPerSecond peak, workloads::Dtype dtype) {
  return {peak, low_precision(dtype) ? narrow_k_overhead : k_overhead};
}

double GemmTimes::trend(const GemmShape& shape, const TileLoop& loop) const {
  return launch_floor_of(gpu_) + loop_seconds(shape, loop);
}

/// Of a GPU whose kernels have the floor that measured ones have.
double GemmTimes::usual_trend(const GemmShape& shape, const TileLoop& loop) const {
  return launch_floor + loop_seconds(shape, loop);
}

double GemmTimes::loop_seconds(const GemmShape& shape, const TileLoop& loop) const {
  const std::int64_t a = gpu_.architecture.tile_rows, b = gpu_.architecture.tile_columns;
  const double sms = static_cast<double>(gpu_.sms);
  const double k = static_cast<double>(shape.k);
  const double tile_time = 2.0 * static_cast<double>(a * b) * (k + loop.ends) * sms /
                           (loop.peak.value * gpu_.architecture.product_reach);
  const double w = static_cast<double>(gemm_tiles(shape, gpu_.architecture)) / sms;
  const double waves = w < 1.0 ? std::pow(w, under_filled)
                               : std::pow(w, 1.0 - quantised) * std::pow(std::ceil(w), quantised);
  return waves * tile_time;
}

/// Inverse-distance weighting of the deviations of the nearest measured shapes (Franke and Little
/// 1980: weights ((h - d) / (h d))^2, zero at the distance h of the first shape left out, so the
/// surface is continuous), with distances that start at `jump`.
GemmTimes::Estimate GemmTimes::estimate(const Family& family, const GemmCall& call,
                                        const GemmShape& shape) const {
  const Points& points = family.of(call);
  const double log_m = std::log(static_cast<double>(shape.m * shape.batch));
  const double log_n = std::log(static_cast<double>(shape.n));
  const double log_k = std::log(static_cast<double>(shape.k));
  struct Near {
    double squared;
    const Point* point;
  };
  double nearest_shape = std::numeric_limits<double>::infinity();  // all sizes alike
  // The nearest so far, in order: few of many points are ever among them.
  std::array<Near, neighbours + 1> near;
  std::size_t used = 0;
  const auto nearer = [](const Near& a, const Near& b) {
    return a.squared != b.squared ? a.squared < b.squared : a.point < b.point;
  };
  const auto meet = [&](const Near& one) {
    if (used < near.size())
      ++used;
    else if (!nearer(one, near[used - 1]))
      return;
    std::size_t at = used - 1;
    for (; at > 0 && nearer(one, near[at - 1]); --at) near[at] = near[at - 1];
    near[at] = one;
  };
  const auto squared = [](double x, double y) { return x * x + y * y; };
  std::int64_t exact = 0, exact_published = 0, this_call = 0;
  double exact_seconds = 0, call_seconds = 0;
  for (const Point& p : points) {
    const double same = squared(p.log_m - log_m, p.log_n - log_n);
    const double transposed = squared(p.log_m - log_n, p.log_n - log_m);
    const double deeper = squared(p.log_k - log_k, 0);
    meet({std::min(same, transposed + squared(turned, 0)) + squared(depth_counts, 0) * deeper +
              squared(jump, 0),
          &p});
    if (!p.sibling) nearest_shape = std::min(nearest_shape, std::min(same, transposed) + deeper);
    if (p.shape == shape && !p.sibling) {
      ++exact;
      if (!p.own) ++exact_published;
      exact_seconds += p.seconds;
      if (!p.layout.empty() && p.layout == call.layout && p.accumulate == call.accumulate) {
        ++this_call;
        call_seconds += p.seconds;
      }
    }
  }

  // Few published rows say little of shapes that are not comparable: the trend is one row more, as
  // far away as such shapes begin.
  const bool few = used <= neighbours && std::none_of(near.begin(), near.begin() + used,
                                                      [](const Near& n) { return n.point->own; });
  const double last = std::max(std::sqrt(near[used - 1].squared), few ? comparable : 0.0);
  const double h = used > neighbours ? last : 2 * last;  // all rows count if they are few
  const auto weight_at = [h](double d) { return h > d ? std::pow((h - d) / (h * d), 2) : 0.0; };
  double weights = few ? weight_at(comparable) : 0.0, sum = 0, published = weights;
  for (std::size_t i = 0; i < used; ++i) {
    const double weight = weight_at(std::sqrt(near[i].squared));
    weights += weight;
    sum += weight * near[i].point->deviation;
    if (!near[i].point->own) published += weight;
  }
  // Of measured seconds, those of a kernel with this GPU's floor.
  const double floor = trend(shape, family.loop) / usual_trend(shape, family.loop);
  if (this_call > 0)
    return {floor * call_seconds / static_cast<double>(this_call), Provenance::measured, true, 0.0};
  if (exact > 0) {
    const double rows = static_cast<double>(exact);
    return {floor * exact_seconds / rows, Provenance::measured, false,
            static_cast<double>(exact_published) / rows};
  }
  const double deviation = weights > 0 ? sum / weights : near.front().point->deviation;
  const bool inside = nearest_shape <= comparable * comparable && !near.front().point->sibling;
  return {trend(shape, family.loop) * std::exp(deviation),
          inside ? Provenance::interpolated : Provenance::extrapolated, false,
          weights > 0 ? published / weights : 1.0};
}

GemmTimes::Estimate GemmTimes::known(const Family& family, const GemmCall& call,
                                     const GemmShape& shape) const {
  Question question{&family, std::string(call.layout), call.accumulate, shape};
  {
    const std::lock_guard lock(memory_->mutex);
    if (const auto found = memory_->known.find(question); found != memory_->known.end())
      return found->second;
  }
  const Estimate made = estimate(family, call, shape);
  const std::lock_guard lock(memory_->mutex);
  if (memory_->known.size() >= most_known) memory_->known.clear();
  memory_->known.emplace(std::move(question), made);
  return made;
}

/// The longest of `longest` and the estimates of the products that halving the even sizes of
/// `shape` leads to. Halving shortens the trend, so a branch ends where even the largest deviation
/// would not reach `longest`. Sizes before `dimension` are halved already.
double GemmTimes::longest_part(const Family& family, const GemmCall& call, const GemmShape& shape,
                               int dimension, double longest) const {
  for (int d = dimension; d < 4; ++d) {
    GemmShape half = shape;
    std::int64_t& size = d == 0 ? half.m : d == 1 ? half.n : d == 2 ? half.k : half.batch;
    if (size % 2 != 0) continue;
    size /= 2;
    if (trend(half, family.loop) * std::exp(family.largest_deviation) <= longest) continue;
    longest = std::max(longest, known(family, call, half).seconds);
    longest = longest_part(family, call, half, d, longest);
  }
  return longest;
}

/// An estimate is never shorter than that of a product half as large: a measured shape that ran
/// slowly would else make twice the work look faster. Measured shapes are told as measured.
GemmTime GemmTimes::interpolate(const Family& family, const GemmCall& call,
                                const GemmShape& shape) const {
  const Estimate own = known(family, call, shape);
  const double seconds = own.provenance == Provenance::measured
                             ? own.seconds
                             : longest_part(family, call, shape, 0, own.seconds);
  return {to_duration(seconds), own.provenance, gemm_tiles(shape, gpu_.architecture), own.this_call,
          own.short_run};
}

std::optional<Duration> GemmTimes::trend_of(const GemmShape& shape, workloads::Dtype dtype) const {
  const FlopsPerSecond peak = peak_of(gpu_, multiplied_as(dtype, gpu_.architecture));
  if (!(peak.value > 0)) return std::nullopt;
  return to_duration(trend(shape, loop_of(peak, dtype)));
}

std::optional<GemmTime> GemmTimes::time_of(const GemmShape& shape, workloads::Dtype dtype,
                                           const GemmCall& call) const {
  using enum workloads::Dtype;
  expects(shape.m > 0 && shape.n > 0 && shape.k > 0 && shape.batch > 0, "a product has sizes");
  const bool emulated = dtype == bf16 && !gpu_.architecture.bf16;  // not in tensor cores
  const workloads::Dtype type = multiplied_as(dtype, gpu_.architecture);
  const auto family = families_.find(type);
  if (!emulated && family != families_.end() && !family->second.points.empty())
    return interpolate(family->second, call, shape);

  // Nothing is known but the peak. On tensor cores the trend of the measured generations holds: no
  // chip reaches its datasheet (0.73 to 0.87 of it at best from A100 to B300: "MAMF" of
  // stas00/ml-engineering compute/accelerator/README.md, 2026-08). Volta has no bf16 and no tf32
  // there; what is left runs on the fp32 units.
  const bool vector_units = emulated || dtype == fp32;
  const FlopsPerSecond tensor = vector_units ? FlopsPerSecond{} : peak_of(gpu_, type);
  const std::int64_t tiles = gemm_tiles(shape, gpu_.architecture);
  if (tensor.value > 0)
    return GemmTime{to_duration(trend(shape, loop_of(tensor, type))), Provenance::datasheet, tiles};
  if (low_precision(dtype) || !(gpu_.fp32_peak.value > 0)) return std::nullopt;
  return GemmTime{to_duration(launch_floor_of(gpu_) + shape.flops() / gpu_.fp32_peak.value),
                  Provenance::datasheet, tiles};
}

}  // namespace stepcast::sim
