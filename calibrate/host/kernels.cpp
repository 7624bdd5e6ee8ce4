// Norms, rotary positions, embedding, optimizer and the kernels that only move bytes.
#include "calibrate/host/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "calibrate/host/math.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate::host {

template <class T>
void rmsnorm_forward(std::span<T> y, std::span<T> rstd, std::span<const T> x, std::span<const T> w,
                     T epsilon) {
  const std::size_t width = w.size();
  expects(x.size() == rstd.size() * width && y.size() == x.size(), "rmsnorm: (T, H)");
  for (std::size_t t = 0; t < rstd.size(); ++t) {
    const T* in = &x[t * width];
    T* out = &y[t * width];
    const T squares = sum_in_lanes<T>(width, [in](std::size_t h) { return in[h] * in[h]; });
    const T r = T(1) / std::sqrt(squares / static_cast<T>(width) + epsilon);
    rstd[t] = r;
    for (std::size_t h = 0; h < width; ++h) out[h] = in[h] * r * w[h];
  }
}

template <class T>
void rmsnorm_backward(std::span<T> dx, std::span<T> dw, std::span<const T> dy, std::span<const T> x,
                      std::span<const T> w, std::span<const T> rstd) {
  const std::size_t width = w.size();
  expects(x.size() == rstd.size() * width && dy.size() == x.size() && dx.size() == x.size(),
          "rmsnorm backward: (T, H)");
  const T* weight = w.data();
  T* weight_gradient = dw.data();
  for (std::size_t t = 0; t < rstd.size(); ++t) {
    const T *in = &x[t * width], *up = &dy[t * width];
    T* out = &dx[t * width];
    const T r = rstd[t];
    const T dot = sum_in_lanes<T>(width, [=](std::size_t h) { return weight[h] * up[h] * in[h]; });
    const T along = dot * r * r / static_cast<T>(width);
    for (std::size_t h = 0; h < width; ++h) {
      out[h] = r * (weight[h] * up[h] - in[h] * along);
      weight_gradient[h] += up[h] * in[h] * r;
    }
  }
}

template <class T>
void layernorm_forward(std::span<T> y, std::span<T> mean, std::span<T> rstd, std::span<const T> x,
                       std::span<const T> w, std::span<const T> b, T epsilon) {
  const std::size_t width = w.size();
  expects(x.size() == rstd.size() * width && y.size() == x.size(), "layernorm: (T, H)");
  for (std::size_t t = 0; t < rstd.size(); ++t) {
    const T* in = &x[t * width];
    T* out = &y[t * width];
    const T m =
        sum_in_lanes<T>(width, [in](std::size_t h) { return in[h]; }) / static_cast<T>(width);
    const T squares =
        sum_in_lanes<T>(width, [=](std::size_t h) { return (in[h] - m) * (in[h] - m); });
    const T r = T(1) / std::sqrt(squares / static_cast<T>(width) + epsilon);
    mean[t] = m;
    rstd[t] = r;
    for (std::size_t h = 0; h < width; ++h) out[h] = (in[h] - m) * r * w[h] + b[h];
  }
}

template <class T>
void layernorm_backward(std::span<T> dx, std::span<T> dw, std::span<T> db, std::span<const T> dy,
                        std::span<const T> x, std::span<const T> w, std::span<const T> mean,
                        std::span<const T> rstd) {
  const std::size_t width = w.size();
  expects(x.size() == rstd.size() * width && dx.size() == x.size(), "layernorm backward: (T, H)");
  const T* weight = w.data();
  T *weight_gradient = dw.data(), *bias_gradient = db.data();
  for (std::size_t t = 0; t < rstd.size(); ++t) {
    const T *in = &x[t * width], *up = &dy[t * width];
    T* out = &dx[t * width];
    const T r = rstd[t], m = mean[t], n = static_cast<T>(width);
    const T sum = sum_in_lanes<T>(width, [=](std::size_t h) { return weight[h] * up[h]; }) / n;
    const T dot =
        sum_in_lanes<T>(width, [=](std::size_t h) { return weight[h] * up[h] * (in[h] - m) * r; }) /
        n;
    for (std::size_t h = 0; h < width; ++h)
      out[h] = r * (weight[h] * up[h] - sum - (in[h] - m) * r * dot);
    for (std::size_t h = 0; h < width; ++h) weight_gradient[h] += up[h] * (in[h] - m) * r;
    for (std::size_t h = 0; h < width; ++h) bias_gradient[h] += up[h];
  }
}

template <class T>
RopeTable<T> make_rope_table(std::int64_t sequence, std::int64_t head_dim, double base) {
  expects(sequence > 0 && head_dim > 0 && head_dim % 2 == 0, "an even head dimension");
  RopeTable<T> table{{}, {}, sequence, head_dim};
  for (std::int64_t p = 0; p < sequence; ++p)
    for (std::int64_t i = 0; i < head_dim / 2; ++i) {
      const double angle =
          static_cast<double>(p) *
          std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      table.cosine.push_back(static_cast<T>(std::cos(angle)));
      table.sine.push_back(static_cast<T>(std::sin(angle)));
    }
  return table;
}

namespace {

template <class T>
void turn(std::span<T> x, std::int64_t heads, const RopeTable<T>& table, T direction) {
  const auto half = static_cast<std::size_t>(table.head_dim) / 2;
  const auto num_heads = static_cast<std::size_t>(heads);
  const auto sequence = static_cast<std::size_t>(table.sequence);
  const std::size_t tokens = x.size() / (num_heads * 2 * half);
  expects(x.size() == tokens * num_heads * 2 * half, "rope: (T, heads, D)");
  for (std::size_t t = 0; t < tokens; ++t) {
    const T* cosine = &table.cosine[t % sequence * half];
    const T* sine = &table.sine[t % sequence * half];
    for (std::size_t head = 0; head < num_heads; ++head) {
      T* low = &x[(t * num_heads + head) * 2 * half];
      T* high = low + half;
      for (std::size_t i = 0; i < half; ++i) {
        const T a = low[i], b = high[i], s = direction * sine[i];
        low[i] = a * cosine[i] - b * s;
        high[i] = b * cosine[i] + a * s;
      }
    }
  }
}

}  // namespace

template <class T>
void rope_forward(std::span<T> x, std::int64_t heads, const RopeTable<T>& table) {
  turn(x, heads, table, T(1));
}

template <class T>
void rope_backward(std::span<T> dx, std::int64_t heads, const RopeTable<T>& table) {
  turn(dx, heads, table, T(-1));
}

template <class T>
void residual_add(std::span<T> y, std::span<const T> a, std::span<const T> b) {
  expects(y.size() == a.size() && a.size() == b.size(), "residual: equal shapes");
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] + b[i];
}

template <class T>
void embedding_forward(std::span<T> y, std::span<const T> table,
                       std::span<const std::int32_t> ids) {
  const std::size_t width = y.size() / ids.size();
  for (std::size_t t = 0; t < ids.size(); ++t)
    std::copy_n(&table[static_cast<std::size_t>(ids[t]) * width], width, &y[t * width]);
}

template <class T>
void embedding_backward(std::span<T> dtable, std::span<const T> dy,
                        std::span<const std::int32_t> ids) {
  const std::size_t width = dy.size() / ids.size();
  for (std::size_t t = 0; t < ids.size(); ++t) {
    T* row = &dtable[static_cast<std::size_t>(ids[t]) * width];
    const T* up = &dy[t * width];
    for (std::size_t h = 0; h < width; ++h) row[h] += up[h];
  }
}

template <class T>
void adamw(std::span<T> p, std::span<T> m, std::span<T> v, std::span<const T> g, const AdamW& how) {
  expects(p.size() == g.size() && m.size() == g.size() && v.size() == g.size(),
          "adamw: one moment of each kind per parameter");
  const auto step = static_cast<double>(how.step);
  const T b1 = static_cast<T>(how.beta1), b2 = static_cast<T>(how.beta2);
  const T rate = static_cast<T>(how.learning_rate), eps = static_cast<T>(how.epsilon);
  const T unbias1 = static_cast<T>(1.0 / (1.0 - std::pow(how.beta1, step)));
  const T unbias2 = static_cast<T>(1.0 / (1.0 - std::pow(how.beta2, step)));
  const T keep = static_cast<T>(1.0 - how.learning_rate * how.weight_decay);
  for (std::size_t i = 0; i < p.size(); ++i) {
    m[i] = b1 * m[i] + (T(1) - b1) * g[i];
    v[i] = b2 * v[i] + (T(1) - b2) * g[i] * g[i];
    p[i] = keep * p[i] - rate * (m[i] * unbias1) / (std::sqrt(v[i] * unbias2) + eps);
  }
}

template <class T>
double sum_of_squares(std::span<const T> x) {
  constexpr std::size_t block = 4096;  // short sums in T stay exact enough; blocks add in double
  double total = 0.0;
  for (std::size_t i = 0; i < x.size(); i += block) {
    const T* in = &x[i];
    total += static_cast<double>(sum_in_lanes<T>(std::min(block, x.size() - i),
                                                 [in](std::size_t j) { return in[j] * in[j]; }));
  }
  return total;
}

template <class T>
void scale(std::span<T> x, T factor) {
  for (T& value : x) value *= factor;
}

template <class T>
void zero(std::span<T> x) {
  std::fill(x.begin(), x.end(), T(0));
}

template <class T>
void copy(std::span<T> to, std::span<const T> from) {
  expects(to.size() == from.size(), "copy: equal sizes");
  std::copy(from.begin(), from.end(), to.begin());
}

template <class T>
void sum_rows(std::span<T> y, std::span<const T> x) {
  const std::size_t width = y.size();
  std::fill(y.begin(), y.end(), T(0));
  for (std::size_t row = 0; row + width <= x.size(); row += width)
    for (std::size_t h = 0; h < width; ++h) y[h] += x[row + h];
}

void to_bf16(std::span<std::uint16_t> to, std::span<const float> from) {
  expects(to.size() == from.size(), "cast: equal sizes");
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    to[i] = static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
  }
}

#define STEPCAST_HOST_KERNELS(T)                                                                   \
  template void rmsnorm_forward<T>(std::span<T>, std::span<T>, std::span<const T>,                 \
                                   std::span<const T>, T);                                         \
  template void rmsnorm_backward<T>(std::span<T>, std::span<T>, std::span<const T>,                \
                                    std::span<const T>, std::span<const T>, std::span<const T>);   \
  template void layernorm_forward<T>(std::span<T>, std::span<T>, std::span<T>, std::span<const T>, \
                                     std::span<const T>, std::span<const T>, T);                   \
  template void layernorm_backward<T>(std::span<T>, std::span<T>, std::span<T>,                    \
                                      std::span<const T>, std::span<const T>, std::span<const T>,  \
                                      std::span<const T>, std::span<const T>);                     \
  template RopeTable<T> make_rope_table<T>(std::int64_t, std::int64_t, double);                    \
  template void rope_forward<T>(std::span<T>, std::int64_t, const RopeTable<T>&);                  \
  template void rope_backward<T>(std::span<T>, std::int64_t, const RopeTable<T>&);                 \
  template void residual_add<T>(std::span<T>, std::span<const T>, std::span<const T>);             \
  template void embedding_forward<T>(std::span<T>, std::span<const T>,                             \
                                     std::span<const std::int32_t>);                               \
  template void embedding_backward<T>(std::span<T>, std::span<const T>,                            \
                                      std::span<const std::int32_t>);                              \
  template void adamw<T>(std::span<T>, std::span<T>, std::span<T>, std::span<const T>,             \
                         const AdamW&);                                                            \
  template double sum_of_squares<T>(std::span<const T>);                                           \
  template void scale<T>(std::span<T>, T);                                                         \
  template void zero<T>(std::span<T>);                                                             \
  template void copy<T>(std::span<T>, std::span<const T>);                                         \
  template void sum_rows<T>(std::span<T>, std::span<const T>);
STEPCAST_HOST_KERNELS(float)
STEPCAST_HOST_KERNELS(double)
#undef STEPCAST_HOST_KERNELS

}  // namespace stepcast::calibrate::host
