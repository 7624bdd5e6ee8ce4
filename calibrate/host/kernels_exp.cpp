// The kernels whose time is their exponentials: activations and the loss.
#include <cmath>

#include "calibrate/host/kernels.hpp"
#include "calibrate/host/math.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate::host {
namespace {

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + exponential(-x));
}

template <class T>
constexpr T gelu_slope = T(0.7978845608028654);  // sqrt(2 / pi)
template <class T>
constexpr T gelu_cube = T(0.044715);

}  // namespace

template <class T>
void silu_mul_forward(std::span<T> y, std::span<const T> gate, std::span<const T> up) {
  expects(y.size() == gate.size() && up.size() == gate.size(), "silu_mul: equal shapes");
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

template <class T>
void silu_mul_backward(std::span<T> dgate, std::span<T> dup, std::span<const T> dy,
                       std::span<const T> gate, std::span<const T> up) {
  expects(dy.size() == gate.size() && up.size() == gate.size() && dup.size() == gate.size(),
          "silu_mul backward: equal shapes");
  const T *d = dy.data(), *g = gate.data(), *u = up.data();
  T *dg = dgate.data(), *du = dup.data();
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const T s = sigmoid(g[i]);
    const T silu = g[i] * s, upstream = d[i], other = u[i];
    du[i] = upstream * silu;
    dg[i] = upstream * other * (s + silu * (T(1) - s));
  }
}

// tanh(u) = 2 sigmoid(2u) - 1, so y = x sigmoid(2u).
template <class T>
void gelu_forward(std::span<T> y, std::span<const T> x) {
  expects(y.size() == x.size(), "gelu: equal shapes");
  for (std::size_t i = 0; i < y.size(); ++i) {
    const T u = gelu_slope<T> * (x[i] + gelu_cube<T> * x[i] * x[i] * x[i]);
    y[i] = x[i] * sigmoid(T(2) * u);
  }
}

template <class T>
void gelu_backward(std::span<T> dx, std::span<const T> dy, std::span<const T> x) {
  expects(dx.size() == x.size() && dy.size() == x.size(), "gelu backward: equal shapes");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T square = x[i] * x[i];
    const T s = sigmoid(T(2) * gelu_slope<T> * (x[i] + gelu_cube<T> * x[i] * square));
    const T slope = gelu_slope<T> * (T(1) + T(3) * gelu_cube<T> * square);
    dx[i] = dy[i] * (s + x[i] * s * (T(1) - s) * T(2) * slope);
  }
}

template <class T>
void cross_entropy_forward(std::span<T> loss, std::span<T> lse, std::span<const T> logits,
                           std::span<const std::int32_t> targets) {
  const std::size_t vocab = logits.size() / targets.size();
  expects(logits.size() == vocab * targets.size() && loss.size() == targets.size(),
          "cross_entropy: (T, V)");
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const T* row = &logits[t * vocab];
    const T most = largest_in_lanes(row, vocab);
    const T sum = sum_in_lanes<T>(vocab, [=](std::size_t v) { return exponential(row[v] - most); });
    lse[t] = most + std::log(sum);
    loss[t] = lse[t] - row[static_cast<std::size_t>(targets[t])];
  }
}

template <class T>
void cross_entropy_backward(std::span<T> dlogits, std::span<const T> logits, std::span<const T> lse,
                            std::span<const std::int32_t> targets, T scale) {
  const std::size_t vocab = logits.size() / targets.size();
  expects(dlogits.size() == logits.size(), "cross_entropy backward: (T, V)");
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const T* row = &logits[t * vocab];
    T* out = &dlogits[t * vocab];
    const T log_sum = lse[t];
    if (row == out)  // one pointer in the loop: two equal ones would fail its overlap check
      for (std::size_t v = 0; v < vocab; ++v) out[v] = scale * exponential(out[v] - log_sum);
    else
      for (std::size_t v = 0; v < vocab; ++v) out[v] = scale * exponential(row[v] - log_sum);
    out[targets[t]] -= scale;
  }
}

#define STEPCAST_HOST_KERNELS(T)                                                                \
  template void silu_mul_forward<T>(std::span<T>, std::span<const T>, std::span<const T>);      \
  template void silu_mul_backward<T>(std::span<T>, std::span<T>, std::span<const T>,            \
                                     std::span<const T>, std::span<const T>);                   \
  template void gelu_forward<T>(std::span<T>, std::span<const T>);                              \
  template void gelu_backward<T>(std::span<T>, std::span<const T>, std::span<const T>);         \
  template void cross_entropy_forward<T>(std::span<T>, std::span<T>, std::span<const T>,        \
                                         std::span<const std::int32_t>);                        \
  template void cross_entropy_backward<T>(std::span<T>, std::span<const T>, std::span<const T>, \
                                          std::span<const std::int32_t>, T);
STEPCAST_HOST_KERNELS(float)
STEPCAST_HOST_KERNELS(double)
#undef STEPCAST_HOST_KERNELS

}  // namespace stepcast::calibrate::host
