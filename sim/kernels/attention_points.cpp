#include "sim/kernels/attention_times.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "engine/arithmetic.hpp"
#include "sim/kernels/operand_types.hpp"
#include "sim/kernels/recurrence_times.hpp"
#include "sim/tables/gpu_names.hpp"

// The points that times are taken from: measured rows, and what follows from them where nobody has
// measured.
namespace stepcast::sim {
namespace {

// Backward rate over forward rate where no implementation has both measured at one shape.
constexpr double usual_backward_ratio = 0.85;

// "Around 2x speedup compared to FlashAttention" (FlashAttention-2, arXiv 2307.08691, abstract,
// 2023-07, A100). Its table 1 says the same: GPT 1.3B and 2.7B at 8k tokens train at 170 and 175
// TFLOP/s with the first, 220 and 225 with the second; what that leaves for attention is 0.45 to
// 0.5 of the second's rate.
constexpr double first_over_second = 0.5;

// Of FlashAttention-4; see add_flash_on_blackwell.
constexpr double fourth_over_cudnn = 0.92;
constexpr double hopper_sms = 132;  // of H100 SXM5 and H200

double length_log(std::int64_t value) { return std::log(static_cast<double>(value)); }

}  // namespace

bool AttentionTimes::same_kernel(const Point& a, const Point& b) {
  return a.head_dim == b.head_dim && a.value_dim == b.value_dim && a.window == b.window &&
         a.form == b.form && a.implementation == b.implementation && a.gpu == b.gpu;
}

bool AttentionTimes::same_shape(const Point& a, const Point& b) {
  return a.sequence == b.sequence && a.batch == b.batch && a.heads == b.heads && same_kernel(a, b);
}

bool AttentionTimes::same_but_pass(const Point& a, const Point& b) {
  return a.causal == b.causal && same_shape(a, b);
}

bool AttentionTimes::same_but_mask(const Point& a, const Point& b) {
  return a.backward == b.backward && same_shape(a, b);
}

/// 16 bits and more are alike.
workloads::Dtype AttentionTimes::form_type(workloads::Dtype dtype) {
  return workloads::bits_per_element(dtype) < 16 ? dtype : workloads::Dtype::bf16;
}

/// Rate at `sequence` on the straight lines between the points in log-log space. Longer: the last
/// rate. Shorter: the first line goes on (blocks get too few to fill the pipeline).
double AttentionTimes::on_curve(const std::map<std::int64_t, double>& curve,
                                std::int64_t sequence) {
  if (curve.size() == 1 || sequence >= curve.rbegin()->first) return curve.rbegin()->second;
  auto right = curve.upper_bound(sequence);
  if (right == curve.begin()) ++right;
  const auto left = std::prev(right);
  const double x = (length_log(sequence) - length_log(left->first)) /
                   (length_log(right->first) - length_log(left->first));
  return left->second * std::pow(right->second / left->second, x);
}

AttentionTimes::AttentionTimes(const std::vector<AttentionRow>& rows, const topology::GpuSpec& gpu)
    : gpu_(gpu) {
  // All GPUs' rows first: ratios between passes and masks are taken from wherever both are known.
  add_direct(rows);
  find_backward_ratios();
  add_split(rows);
  add_backwards();
  find_causal_ratios();
  const bool has_first_flash =
      std::ranges::any_of(points_, [](const Point& p) { return p.implementation == "flash1"; });
  if (!gpu_.architecture.flash2_by_sms) drop_foreign();  // else Hopper's are still asked for
  add_other_masks();
  add_flash_on_blackwell();
  if (!has_first_flash) add_first_flash();
  drop_foreign();
  settle_siblings();
}

/// Points of other generations, which have told their ratios.
void AttentionTimes::drop_foreign() {
  std::map<std::string, bool> foreign;  // by GPU
  std::erase_if(points_, [&](const Point& p) {
    const auto known = foreign.find(p.gpu);
    if (known != foreign.end()) return known->second;
    const bool gone = kinship(p.gpu, gpu_) == Kinship::foreign;
    foreign.emplace(p.gpu, gone);
    return gone;
  });
}

/// Blackwell Ultra has twice the exponentials of a B200 or GB200, which attention feels (a GB300
/// runs cuDNN's at 1.2 times a GB200's rate and the same peak): of siblings those of its own kind
/// answer first. What tells them apart is fp4 over 16 bits: 6 against 4.
void AttentionTimes::settle_siblings() {
  const auto ultra = [](FlopsPerSecond four, FlopsPerSecond half) { return four > half * 5.0; };
  struct Owner {
    Kinship kinship;
    bool sibling, other_kind;
    std::optional<FlopsPerSecond> peak;
  };
  std::map<std::string, Owner> owners;
  for (const Point& p : points_) {
    if (owners.contains(p.gpu)) continue;
    const Kinship kin = kinship(p.gpu, gpu_);
    const auto half = tensor_peak_of(p.gpu, gpu_);
    const auto four = low_peak_of(p.gpu, gpu_, workloads::Dtype::nvfp4);
    owners[p.gpu] = {kin, kin == Kinship::sibling || altered(p.gpu, gpu_),
                     half && four && ultra(*four, *half) != ultra(gpu_.fp4_peak, gpu_.tensor_peak),
                     half};
  }
  bool alike = false;
  for (Point& p : points_) {
    const Owner& owner = owners[p.gpu];
    p.sibling = owner.sibling;
    alike = alike || (p.sibling && !p.derived && !owner.other_kind);
    if (p.sibling && owner.peak) p.rate *= gpu_.tensor_peak / *owner.peak;
  }
  if (alike)
    std::erase_if(points_, [&](const Point& p) { return p.sibling && owners[p.gpu].other_kind; });
}

AttentionTimes::Point AttentionTimes::point_of(const AttentionRow& r) const {
  const bool value_dim = r.value_dim != 0 && r.value_dim != r.head_dim;
  return {.gpu = r.gpu,
          .implementation = r.implementation,
          .backward = r.pass == "backward",
          .causal = r.mask == "causal",
          .own = r.quality.samples > 0,
          .batch = r.batch,
          .heads = r.heads,
          .sequence = r.sequence,
          .head_dim = r.head_dim,
          .rate = r.rate.value,
          .form = {form_type(operand_type(r.dtype).value_or(workloads::Dtype::bf16)), value_dim,
                   r.window > 0},
          .value_dim = value_dim ? r.value_dim : 0,
          .window = r.window};
}

/// Rows of other generations tell ratios alone, and those of plain 16-bit kernels.
void AttentionTimes::add_direct(const std::vector<AttentionRow>& rows) {
  for (const AttentionRow& r : rows) {
    if (r.mask == "not_stated" || r.pass == "forward_backward" || r.cache == "hot") continue;
    if (is_recurrence(r)) continue;
    Point p = point_of(r);
    if (p.form == Form{} || kinship(r.gpu, gpu_) != Kinship::foreign)
      points_.push_back(std::move(p));
  }
}

/// A figure r that times both passes together holds 3.5 F FLOPs: 3.5 / r = 1 / f + 2.5 / b. With
/// the forward rate f measured at the same shape, b follows; else b = ratio x f.
void AttentionTimes::add_split(const std::vector<AttentionRow>& rows) {
  const std::vector<Point> direct = points_;
  for (const AttentionRow& r : rows) {
    if (r.mask == "not_stated" || r.pass != "forward_backward" || is_recurrence(r)) continue;
    Point p = point_of(r);
    p.derived = true;
    const double together = (1.0 + AttentionShape::backward_flops_over_forward) / r.rate.value;
    const auto forward = std::find_if(direct.begin(), direct.end(), [&](const Point& q) {
      return !q.backward && same_but_pass(q, p);
    });
    const bool known = forward != direct.end() && together > 1.0 / forward->rate;
    const double ratio = backward_ratio(p.implementation);
    const double forward_rate =
        known ? forward->rate
              : (1.0 + AttentionShape::backward_flops_over_forward / ratio) / together;
    if (!known) {
      p.rate = forward_rate;
      points_.push_back(p);
    }
    p.backward = true;
    p.rate = AttentionShape::backward_flops_over_forward / (together - 1.0 / forward_rate);
    points_.push_back(std::move(p));
  }
}

/// What same_kernel() compares.
AttentionTimes::KernelKey AttentionTimes::kernel_of(const Point& p) {
  return {p.head_dim,       p.value_dim,   p.window,         p.form.dtype,
          p.form.value_dim, p.form.window, p.implementation, p.gpu};
}

/// Backward from forward where a GPU has no backward rate of an implementation and head dimension.
void AttentionTimes::add_backwards() {
  std::set<KernelKey> backwards;
  for (const Point& p : points_)
    if (p.backward) backwards.insert(kernel_of(p));
  std::vector<Point> added;
  for (const Point& p : points_) {
    if (p.backward || backwards.contains(kernel_of(p))) continue;
    Point backward = p;
    backward.backward = backward.derived = true;
    backward.rate *= backward_ratio(p.implementation);
    added.push_back(std::move(backward));
  }
  points_.insert(points_.end(), added.begin(), added.end());
}

/// Causal from full, and full from causal, where a GPU has only one of an implementation.
void AttentionTimes::add_other_masks() {
  std::set<std::tuple<KernelKey, bool, bool>> known;  // pass and mask as well
  for (const Point& p : points_) known.emplace(kernel_of(p), p.backward, p.causal);
  std::vector<Point> added;
  for (const Point& p : points_) {
    if (p.form.window || known.contains({kernel_of(p), p.backward, !p.causal})) continue;
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
    if (p.implementation != "flash2") continue;
    Point first = p;
    first.implementation = "flash1";
    first.derived = true;
    first.rate *= first_over_second;
    added.push_back(std::move(first));
  }
  points_.insert(points_.end(), added.begin(), added.end());
}

/// On Blackwell FlashAttention-2 runs the instructions of Ampere, which Blackwell executes as many
/// of in an SM and clock as Hopper does: Hopper's rates by the SMs (derived; clocks are alike).
/// FlashAttention-4 was compared with nobody on a GPU that has a name: at batch 4, 16 heads of 128
/// and 8,192 tokens it reaches 0.87 to 0.97 of what cuDNN does on a GB200 (pull request 2280 of
/// Dao-AILab/flash-attention, 2026-02, on an SM100).
void AttentionTimes::add_flash_on_blackwell() {
  if (!gpu_.architecture.flash2_by_sms) return;
  std::vector<Point> added;
  const auto known = [&](std::string_view implementation) {
    return std::any_of(points_.begin(), points_.end(), [&](const Point& p) {
      return p.implementation == implementation && kinship(p.gpu, gpu_) != Kinship::foreign;
    });
  };
  const bool second = known("flash2"), fourth = known("flash4");
  for (Point p : points_) {
    const bool hopper = p.gpu.starts_with("H100-SXM5") || p.gpu.starts_with("H200-SXM");
    const bool from_hopper = !second && p.implementation == "flash2" && hopper;
    if (!from_hopper &&
        (fourth || p.implementation != "cudnn" || p.form.dtype != workloads::Dtype::bf16))
      continue;
    p.derived = true;
    if (from_hopper) {
      p.gpu = table_name(gpu_.name);
      p.rate *= static_cast<double>(gpu_.sms) / hopper_sms;
    } else {
      p.implementation = "flash4";
      p.rate *= fourth_over_cudnn;
    }
    added.push_back(std::move(p));
  }
  points_.insert(points_.end(), added.begin(), added.end());
}

/// Backward rate over forward rate, the median over the shapes where both are measured: on GPUs of
/// this generation, else on any.
void AttentionTimes::find_backward_ratios() {
  std::map<std::string, std::vector<double>> ratios, of_others;
  for (const Point& b : points_) {
    if (!b.backward || b.form != Form{}) continue;
    auto& found = kinship(b.gpu, gpu_) == Kinship::foreign ? of_others : ratios;
    for (const Point& f : points_)
      if (!f.backward && same_but_pass(b, f)) found[b.implementation].push_back(b.rate / f.rate);
  }
  ratios.merge(of_others);
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
    if (!c.causal || c.implementation != "flash2" || c.form != Form{}) continue;
    for (const Point& f : points_)
      if (!f.causal && same_but_mask(c, f)) by_length[c.sequence].push_back(c.rate / f.rate);
  }
  for (auto& [length, ratios] : by_length) causal_ratios_[length] = median(std::move(ratios));
}

double AttentionTimes::causal_ratio(std::int64_t sequence) const {
  return causal_ratios_.empty() ? 1.0 : on_curve(causal_ratios_, sequence);
}

}  // namespace stepcast::sim
