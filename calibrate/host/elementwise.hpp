// What the tasks of element-wise kernels share, and those that know no rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "calibrate/host/reference.hpp"
#include "calibrate/host/task.hpp"

namespace stepcast::calibrate::host {

using Floats = std::vector<float>;

/// T rows of W elements; a reference sees no more than a quarter of a million.
struct Shape {
  std::size_t t, w;
  std::size_t size() const { return t * w; }
  Shape checked() const {
    constexpr std::size_t most = 1U << 18U;
    return t == 1 ? Shape{1, std::min(w, most)} : Shape{std::clamp<std::size_t>(most / w, 1, t), w};
  }
};

inline Doubles doubles(std::span<const float> x) { return {x.begin(), x.end()}; }

inline Bytes four(std::size_t floats) { return Bytes(4 * static_cast<std::int64_t>(floats)); }

HostTask optimizer(const Shape& s);      // AdamW
HostTask gradient_norm(const Shape& s);  // sum of squares
HostTask sum_of_two(const Shape& s);
HostTask plain_copy(const Shape& s);
HostTask scaled(const Shape& s);
HostTask zeroed(const Shape& s);
HostTask summed_rows(const Shape& s);

// Of layers of experts.
HostTask router(const ElementwiseTask& task);
HostTask permute(const ElementwiseTask& task);
HostTask unpermute(const ElementwiseTask& task);
HostTask sorted_rows(const Shape& s);
HostTask weighted_silu_mul(const Shape& s);
HostTask weighted_silu_mul_gradient(const Shape& s);

}  // namespace stepcast::calibrate::host
