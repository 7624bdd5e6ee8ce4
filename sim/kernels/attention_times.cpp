#include "sim/kernels/attention_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

constexpr double launch_floor = 3e-6;          // s, as for every kernel: 2-4 us
constexpr double backward_over_forward = 2.5;  // FLOPs: five products against two

// Backward rate over forward rate where no implementation has both measured at one shape.
constexpr double usual_backward_ratio = 0.85;

// "Around 2x speedup compared to FlashAttention" (FlashAttention-2, arXiv 2307.08691, abstract,
// 2023-07, A100). Its table 1 says the same: GPT 1.3B and 2.7B at 8k tokens train at 170 and 175
// TFLOP/s with the first, 220 and 225 with the second; what that leaves for attention is 0.45 to
// 0.5 of the second's rate.
constexpr double first_over_second = 0.5;

double log_of(std::int64_t value) { return std::log(static_cast<double>(value)); }

/// Rate at `sequence` on the straight lines between the points in log-log space. Longer: the last
/// rate. Shorter: the first line goes on (blocks get too few to fill the pipeline).
double on_curve(const std::map<std::int64_t, double>& curve, std::int64_t sequence) {
  if (curve.size() == 1 || sequence >= curve.rbegin()->first) return curve.rbegin()->second;
  auto right = curve.upper_bound(sequence);
  if (right == curve.begin()) ++right;
  const auto left = std::prev(right);
  const double x =
      (log_of(sequence) - log_of(left->first)) / (log_of(right->first) - log_of(left->first));
  return left->second * std::pow(right->second / left->second, x);
}

}  // namespace

double AttentionShape::flops() const {
  const double s = static_cast<double>(sequence);
  const double forward = 4.0 * static_cast<double>(batch * heads * head_dim) * s * s;
  return forward * (causal ? 0.5 : 1.0) * (backward ? backward_over_forward : 1.0);
}

std::int64_t AttentionShape::blocks() const { return batch * heads * ((sequence + 127) / 128); }

std::string_view implementation_name(workloads::AttentionKernel kernel) {
  using enum workloads::AttentionKernel;
  switch (kernel) {
    case flash1:
      return "flash1";
    case flash2:
      return "flash2";
    case flash3:
      return "flash3";
    case cudnn:
      return "cudnn";
    case memory_efficient:
      return "memory_efficient";
    case own_flash:
      return "own_flash";
    case host:
      return "host";
    case fused_softmax:
      return "fused_softmax";
    case unfused:
      return "unfused";
  }
  return "unknown";
}

bool AttentionTimes::same_but_pass(const Point& a, const Point& b) {
  return a.sequence == b.sequence && a.head_dim == b.head_dim && a.batch == b.batch &&
         a.heads == b.heads && a.causal == b.causal && a.implementation == b.implementation &&
         a.gpu == b.gpu;
}

bool AttentionTimes::same_but_mask(const Point& a, const Point& b) {
  return a.sequence == b.sequence && a.head_dim == b.head_dim && a.batch == b.batch &&
         a.heads == b.heads && a.backward == b.backward && a.implementation == b.implementation &&
         a.gpu == b.gpu;
}

AttentionTimes::AttentionTimes(const std::vector<AttentionRow>& rows, const topology::GpuSpec& gpu)
    : gpu_(gpu) {
  // All GPUs' rows first: ratios between passes and masks are taken from wherever both are known.
  add_direct(rows);
  find_backward_ratios();
  add_split(rows);
  add_backwards();
  find_causal_ratios();
  add_other_masks();
  add_first_flash();
  std::erase_if(points_, [&](const Point& p) { return kinship(p.gpu, gpu_) == Kinship::foreign; });
  for (Point& p : points_) {
    p.sibling = kinship(p.gpu, gpu_) == Kinship::sibling || altered(p.gpu, gpu_);
    const auto peak = tensor_peak_of(p.gpu, gpu_);
    if (p.sibling && peak) p.rate *= gpu_.tensor_peak / *peak;
  }
}

void AttentionTimes::add_direct(const std::vector<AttentionRow>& rows) {
  for (const AttentionRow& r : rows)
    if (r.mask != "not_stated" && r.pass != "forward_backward" && r.cache != "hot")
      points_.push_back({.gpu = r.gpu,
                         .implementation = r.implementation,
                         .backward = r.pass == "backward",
                         .causal = r.mask == "causal",
                         .own = r.quality.samples > 0,
                         .batch = r.batch,
                         .heads = r.heads,
                         .sequence = r.sequence,
                         .head_dim = r.head_dim,
                         .rate = r.rate.value});
}

/// A figure r that times both passes together holds 3.5 F FLOPs: 3.5 / r = 1 / f + 2.5 / b. With
/// the forward rate f measured at the same shape, b follows; else b = ratio x f.
void AttentionTimes::add_split(const std::vector<AttentionRow>& rows) {
  const std::vector<Point> direct = points_;
  for (const AttentionRow& r : rows) {
    if (r.mask == "not_stated" || r.pass != "forward_backward") continue;
    Point p{.gpu = r.gpu,
            .implementation = r.implementation,
            .causal = r.mask == "causal",
            .derived = true,
            .own = r.quality.samples > 0,
            .batch = r.batch,
            .heads = r.heads,
            .sequence = r.sequence,
            .head_dim = r.head_dim};
    const double together = (1.0 + backward_over_forward) / r.rate.value;
    const auto forward = std::find_if(direct.begin(), direct.end(), [&](const Point& q) {
      return !q.backward && same_but_pass(q, p);
    });
    const bool known = forward != direct.end() && together > 1.0 / forward->rate;
    const double ratio = backward_ratio(p.implementation);
    const double forward_rate =
        known ? forward->rate : (1.0 + backward_over_forward / ratio) / together;
    if (!known) {
      p.rate = forward_rate;
      points_.push_back(p);
    }
    p.backward = true;
    p.rate = backward_over_forward / (together - 1.0 / forward_rate);
    points_.push_back(std::move(p));
  }
}

/// Backward from forward where a GPU has no backward rate of an implementation and head dimension.
void AttentionTimes::add_backwards() {
  std::vector<Point> added;
  for (const Point& p : points_) {
    const bool known = std::any_of(points_.begin(), points_.end(), [&](const Point& q) {
      return q.backward && q.gpu == p.gpu && q.implementation == p.implementation &&
             q.head_dim == p.head_dim;
    });
    if (p.backward || known) continue;
    Point backward = p;
    backward.backward = backward.derived = true;
    backward.rate *= backward_ratio(p.implementation);
    added.push_back(std::move(backward));
  }
  points_.insert(points_.end(), added.begin(), added.end());
}

/// Causal from full, and full from causal, where a GPU has only one of an implementation.
void AttentionTimes::add_other_masks() {
  std::vector<Point> added;
  for (const Point& p : points_) {
    const bool known = std::any_of(points_.begin(), points_.end(), [&](const Point& q) {
      return q.causal != p.causal && q.gpu == p.gpu && q.implementation == p.implementation &&
             q.head_dim == p.head_dim && q.backward == p.backward;
    });
    if (known) continue;
    // A curve of one point would hide how the ratio grows with the length: give it every length.
    for (const std::int64_t s : {512, 1024, 2048, 4096, 8192, 16384}) {
      Point other = p;
      other.derived = true;
      other.causal = !p.causal;
      other.sequence = s;
      other.batch = other.heads = 0;  // of no shape that was measured
      other.rate *= p.causal ? 1.0 / causal_ratio(s) : causal_ratio(s);
      added.push_back(std::move(other));
    }
  }
  points_.insert(points_.end(), added.begin(), added.end());
}

/// FlashAttention 1 where nobody has measured it: FlashAttention-2's rates, scaled.
void AttentionTimes::add_first_flash() {
  std::vector<Point> added;
  for (const Point& p : points_) {
    if (p.implementation == "flash1") return;
    if (p.implementation != "flash2") continue;
    Point first = p;
    first.implementation = "flash1";
    first.derived = true;
    first.rate *= first_over_second;
    added.push_back(std::move(first));
  }
  points_.insert(points_.end(), added.begin(), added.end());
}

/// Backward rate over forward rate, the median over the shapes where both are measured.
void AttentionTimes::find_backward_ratios() {
  std::map<std::string, std::vector<double>> ratios;
  for (const Point& b : points_)
    for (const Point& f : points_)
      if (b.backward && !f.backward && same_but_pass(b, f))
        ratios[b.implementation].push_back(b.rate / f.rate);
  for (auto& [implementation, values] : ratios)
    backward_ratios_[implementation] = median(std::move(values));
}

double AttentionTimes::backward_ratio(const std::string& implementation) const {
  const auto found = backward_ratios_.find(implementation);
  return found == backward_ratios_.end() ? usual_backward_ratio : found->second;
}

/// Rate under a causal mask over the rate without, at one length: blocks on the diagonal are half
/// wasted, so it rises with the length. From FlashAttention-2's rows, the only implementation with
/// both masks at every length on two GPUs.
void AttentionTimes::find_causal_ratios() {
  std::map<std::int64_t, std::vector<double>> by_length;
  for (const Point& c : points_) {
    if (!c.causal || c.implementation != "flash2") continue;
    for (const Point& f : points_)
      if (!f.causal && same_but_mask(c, f)) by_length[c.sequence].push_back(c.rate / f.rate);
  }
  for (auto& [length, ratios] : by_length) causal_ratios_[length] = median(std::move(ratios));
}

double AttentionTimes::causal_ratio(std::int64_t sequence) const {
  return causal_ratios_.empty() ? 1.0 : on_curve(causal_ratios_, sequence);
}

std::optional<AttentionTime> AttentionTimes::from(const Choice& choice,
                                                  const AttentionShape& shape) const {
  const auto serves = [&](const Point& p) {
    return p.implementation == choice.implementation && p.sibling == choice.sibling &&
           p.backward == shape.backward && p.causal == shape.causal;
  };
  // The nearest head dimension that is published.
  std::optional<std::int64_t> dim;
  for (const Point& p : points_)
    if (serves(p) && (!dim || std::abs(log_of(p.head_dim) - log_of(shape.head_dim)) <
                                  std::abs(log_of(*dim) - log_of(shape.head_dim))))
      dim = p.head_dim;
  if (!dim) return std::nullopt;

  std::map<std::int64_t, std::vector<double>> rates;
  std::vector<double> exact;
  bool derived = false;
  double rows = 0, published = 0, exact_published = 0;
  for (const Point& p : points_) {
    if (!serves(p) || p.head_dim != *dim) continue;
    rates[p.sequence].push_back(p.rate);
    derived = derived || p.derived;
    ++rows;
    if (!p.own) ++published;
    if (!p.derived && p.batch == shape.batch && p.heads == shape.heads &&
        p.sequence == shape.sequence && p.head_dim == shape.head_dim) {
      exact.push_back(p.rate);
      if (!p.own) ++exact_published;
    }
  }
  std::map<std::int64_t, double> curve;
  for (auto& [length, at_length] : rates) curve[length] = median(std::move(at_length));

  const bool inside = shape.sequence >= curve.begin()->first &&
                      shape.sequence <= curve.rbegin()->first && *dim == shape.head_dim;
  Provenance provenance = inside ? Provenance::interpolated : Provenance::extrapolated;
  if (inside && derived) provenance = Provenance::derived;
  if (choice.sibling) provenance = Provenance::extrapolated;
  double rate = on_curve(curve, shape.sequence);
  double short_run = published / rows;
  if (!exact.empty() && !choice.sibling) {
    short_run = exact_published / static_cast<double>(exact.size());
    rate = median(std::move(exact));
    provenance = Provenance::measured;
  }
  // Published shapes fill the GPU; fewer blocks than SMs leave the others idle.
  const double idle =
      std::max(1.0, static_cast<double>(gpu_.sms) / static_cast<double>(shape.blocks()));
  const bool launched = gpu_.architecture != topology::Architecture::host;  // else it is called
  return AttentionTime{to_duration((launched ? launch_floor : 0.0) + shape.flops() / rate * idle),
                       provenance, short_run};
}

std::optional<AttentionTime> AttentionTimes::time_of(const AttentionShape& shape,
                                                     workloads::AttentionKernel kernel) const {
  expects(shape.batch > 0 && shape.heads > 0 && shape.sequence > 0 && shape.head_dim > 0,
          "attention has sizes");
  const std::string_view asked = implementation_name(kernel);
  // A machine's cores have one implementation, whatever a GPU would run.
  if (const auto time = from({"host", false}, shape)) return time;
  for (const bool sibling : {false, true})
    if (const auto time = from({asked, sibling}, shape)) return time;
  for (const std::string_view other :
       {"flash2", "cudnn", "memory_efficient", "flash3", "own_flash"})
    for (const bool sibling : {false, true})
      if (auto time = from({other, sibling}, shape)) {
        time->provenance = Provenance::extrapolated;  // another kernel than the one asked for
        return time;
      }
  return std::nullopt;
}

}  // namespace stepcast::sim
