#include "sim/kernels/attention_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/kernels/launch_floor.hpp"

namespace stepcast::sim {
namespace {

// A window of w tokens is computed in blocks, the outermost half wasted, and blocks are few for
// their start and end: w / (w + 512) of the rate without, from cuDNN at w = 128 (0.12 to 0.2 of it,
// GB200) and w = 1024 (0.6 to 0.85, H200); cudnn-frontend 3929da2, 2026-02 and 2026-04.
constexpr double window_overhead = 512;

// Over 16 bits where nobody has measured the type: cuDNN forward 1.25 to 1.5 on H200, GB200 and
// GB300; backward 0.65 to 1.6 (the same source).
constexpr double low_over_half_forward = 1.35;
constexpr double low_over_half_backward = 1.0;

constexpr auto bf16 = workloads::Dtype::bf16;

double share_of_window(std::int64_t window) {
  return static_cast<double>(window) / (static_cast<double>(window) + window_overhead);
}

double log_of(std::int64_t value) { return std::log(static_cast<double>(value)); }

}  // namespace

double AttentionShape::flops() const {
  const double s = static_cast<double>(sequence);
  if (has_value_dim() || has_window()) {
    const double d = static_cast<double>(head_dim);
    const double v = static_cast<double>(has_value_dim() ? value_dim : head_dim);
    const double w = static_cast<double>(has_window() ? window : sequence);
    const double scores = causal ? s * w - w * w / 2 : s * s;
    return static_cast<double>(batch * heads) * scores * (backward ? 6 * d + 4 * v : 2 * (d + v));
  }
  const double forward = 4.0 * static_cast<double>(batch * heads * head_dim) * s * s;
  return forward * (causal ? 0.5 : 1.0) * (backward ? backward_flops_over_forward : 1.0);
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
    case flash4:
      return "flash4";
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

/// The nearest head dimension that is published.
std::int64_t AttentionTimes::nearest_head_dim(const std::vector<const Point*>& points,
                                              const AttentionShape& shape) const {
  const auto away = [&](std::int64_t dim) {
    return std::abs(log_of(dim) - log_of(shape.head_dim));
  };
  std::int64_t dim = points.front()->head_dim;
  for (const Point* p : points)
    if (away(p->head_dim) < away(dim)) dim = p->head_dim;
  return dim;
}

std::optional<AttentionTime> AttentionTimes::from(const Choice& choice,
                                                  const AttentionShape& shape) const {
  std::vector<const Point*> points;
  for (const Point& p : points_)
    if (p.implementation == choice.implementation && p.sibling == choice.sibling &&
        p.backward == shape.backward && p.causal == shape.causal && p.form == choice.form)
      points.push_back(&p);
  if (points.empty()) return std::nullopt;
  const std::int64_t dim = nearest_head_dim(points, shape);

  std::map<std::int64_t, std::vector<double>> rates;
  std::vector<double> exact;
  bool derived = false;
  double rows = 0, published = 0, exact_published = 0;
  for (const Point* point : points) {
    const Point& p = *point;
    if (p.head_dim != dim) continue;
    const double as_asked =
        p.window > 0 ? share_of_window(shape.window) / share_of_window(p.window) : 1.0;
    rates[p.sequence].push_back(p.rate * as_asked);
    derived = derived || p.derived || p.window != shape.window;
    ++rows;
    if (!p.own) ++published;
    if (!p.derived && p.batch == shape.batch && p.heads == shape.heads &&
        p.sequence == shape.sequence && p.head_dim == shape.head_dim && p.window == shape.window) {
      exact.push_back(p.rate);
      if (!p.own) ++exact_published;
    }
  }
  std::map<std::int64_t, double> curve;
  for (auto& [length, at_length] : rates) curve[length] = median(std::move(at_length));

  const bool inside = shape.sequence >= curve.begin()->first &&
                      shape.sequence <= curve.rbegin()->first && dim == shape.head_dim;
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
  const bool launched = !gpu_.architecture.host;  // else it is called
  return AttentionTime{
      to_duration((launched ? launch_floor_of(gpu_) : 0.0) + shape.flops() / rate * idle),
      provenance, short_run};
}

/// From rows of the form that is asked for, on this GPU and then on its siblings; else of a plainer
/// form: all tokens for a window, one head dimension for two, 16 bits for fewer.
std::optional<AttentionTime> AttentionTimes::from_any_form(std::string_view implementation,
                                                           const AttentionShape& shape) const {
  Form form{form_type(shape.dtype), shape.has_value_dim(), shape.has_window()};
  double slower = 1.0;
  const auto found = [&]() -> std::optional<AttentionTime> {
    for (const bool sibling : {false, true})
      if (auto time = from({implementation, sibling, form}, shape)) {
        if (slower == 1.0 && form.value_dim == shape.has_value_dim()) return time;
        time->duration = to_duration(seconds(time->duration) * slower);
        time->provenance = std::max(time->provenance, Provenance::derived);
        return time;
      }
    return std::nullopt;
  };
  if (const auto time = found()) return time;
  if (std::exchange(form.value_dim, false))
    if (const auto time = found()) return time;
  if (std::exchange(form.window, false)) {
    slower /= share_of_window(shape.window);
    if (const auto time = found()) return time;
  }
  if (std::exchange(form.dtype, bf16) == bf16) return std::nullopt;
  form.value_dim = shape.has_value_dim();
  slower /= shape.backward ? low_over_half_backward : low_over_half_forward;
  for (const bool value_dim : {shape.has_value_dim(), false}) {
    form.value_dim = value_dim;
    if (const auto time = found()) return time;
  }
  return std::nullopt;
}

std::optional<AttentionTime> AttentionTimes::time_of(const AttentionShape& shape,
                                                     workloads::AttentionKernel kernel) const {
  expects(shape.batch > 0 && shape.heads > 0 && shape.sequence > 0 && shape.head_dim > 0,
          "attention has sizes");
  // A machine's cores have one implementation, whatever a GPU would run.
  if (const auto time = from_any_form("host", shape)) return time;
  // AMD's GPUs run composable kernels behind every framework's name.
  if (const auto time = from_any_form("ck", shape)) return time;
  if (const auto time = from_any_form(implementation_name(kernel), shape)) return time;
  for (const std::string_view other :
       {"flash2", "cudnn", "memory_efficient", "flash3", "own_flash"})
    if (auto time = from_any_form(other, shape)) {
      time->provenance = Provenance::extrapolated;  // another kernel than the one asked for
      return time;
    }
  return std::nullopt;
}

}  // namespace stepcast::sim
