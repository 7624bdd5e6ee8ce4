// The kernels of a Llama-like or GPT-like model on one core: what calibrate measures and the host
// trainer runs. Pure functions over row-major spans, forward and backward apart, for float (plain
// loops that compilers vectorise) and for double (gradients against finite differences). Products
// are gemm.hpp's. Backward functions whose text says "added" accumulate, all others overwrite.
//
// Shapes: T tokens, H hidden or row width, V vocabulary; B sequences of S tokens, T = B S.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast::calibrate::host {

/// y[t,h] = x[t,h] rstd[t] w[h], rstd[t] = 1 / sqrt(mean_h(x^2) + epsilon).
template <class T>
void rmsnorm_forward(std::span<T> y, std::span<T> rstd, std::span<const T> x, std::span<const T> w,
                     T epsilon);
/// dx[t,h] = rstd (w dy - x rstd^2 mean_h(w dy x)); dw[h] += sum_t dy x rstd: added.
template <class T>
void rmsnorm_backward(std::span<T> dx, std::span<T> dw, std::span<const T> dy, std::span<const T> x,
                      std::span<const T> w, std::span<const T> rstd);

/// y = (x - mean) rstd w + b, rstd = 1 / sqrt(variance + epsilon).
template <class T>
void layernorm_forward(std::span<T> y, std::span<T> mean, std::span<T> rstd, std::span<const T> x,
                       std::span<const T> w, std::span<const T> b, T epsilon);
/// With n = (x - mean) rstd and g = w dy: dx = rstd (g - mean_h(g) - n mean_h(g n)); dw, db: added.
template <class T>
void layernorm_backward(std::span<T> dx, std::span<T> dw, std::span<T> db, std::span<const T> dy,
                        std::span<const T> x, std::span<const T> w, std::span<const T> mean,
                        std::span<const T> rstd);

/// cos and sin of position p and frequency base^(-2i/D): (S, D/2) each. D: head dimension.
template <class T>
struct RopeTable {
  std::vector<T> cosine, sine;
  std::int64_t sequence = 0, head_dim = 0;
};
template <class T>
RopeTable<T> make_rope_table(std::int64_t sequence, std::int64_t head_dim, double base = 10000.0);
/// x (T, heads, D) turned in place: pairs (i, i + D/2) by the angle of position t mod S.
template <class T>
void rope_forward(std::span<T> x, std::int64_t heads, const RopeTable<T>& table);
/// The inverse turn, of the gradient.
template <class T>
void rope_backward(std::span<T> dx, std::int64_t heads, const RopeTable<T>& table);

/// y = silu(gate) up, silu(g) = g / (1 + exp(-g)).
template <class T>
void silu_mul_forward(std::span<T> y, std::span<const T> gate, std::span<const T> up);
template <class T>
void silu_mul_backward(std::span<T> dgate, std::span<T> dup, std::span<const T> dy,
                       std::span<const T> gate, std::span<const T> up);

/// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2's GELU.
template <class T>
void gelu_forward(std::span<T> y, std::span<const T> x);
template <class T>
void gelu_backward(std::span<T> dx, std::span<const T> dy, std::span<const T> x);

/// y = a + b; its backward is the same sum of two gradients.
template <class T>
void residual_add(std::span<T> y, std::span<const T> a, std::span<const T> b);

/// y[t] = table[id[t]], rows of H.
template <class T>
void embedding_forward(std::span<T> y, std::span<const T> table, std::span<const std::int32_t> ids);
/// dtable[id[t]] += dy[t]: added.
template <class T>
void embedding_backward(std::span<T> dtable, std::span<const T> dy,
                        std::span<const std::int32_t> ids);

/// loss[t] = lse[t] - logits[t, target[t]], lse[t] = log sum_v exp(logits[t,v]).
template <class T>
void cross_entropy_forward(std::span<T> loss, std::span<T> lse, std::span<const T> logits,
                           std::span<const std::int32_t> targets);
/// dlogits[t,v] = scale (exp(logits[t,v] - lse[t]) - [v = target[t]]); may be logits itself.
template <class T>
void cross_entropy_backward(std::span<T> dlogits, std::span<const T> logits, std::span<const T> lse,
                            std::span<const std::int32_t> targets, T scale);

struct AdamW {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  std::int64_t step = 1;  // from 1
};
/// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; p -= lr (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps)
/// + decay p). Loshchilov and Hutter 2019.
template <class T>
void adamw(std::span<T> p, std::span<T> m, std::span<T> v, std::span<const T> g, const AdamW& how);

/// Sum of squares; partial sums in T, rows of them in double.
template <class T>
double sum_of_squares(std::span<const T> x);
template <class T>
void scale(std::span<T> x, T factor);
template <class T>
void zero(std::span<T> x);
template <class T>
void copy(std::span<T> to, std::span<const T> from);
/// y[h] = sum_r x[r,h]: a bias gradient, or partial gradients put together.
template <class T>
void sum_rows(std::span<T> y, std::span<const T> x);
/// To bfloat16, to nearest even.
void to_bf16(std::span<std::uint16_t> to, std::span<const float> from);

}  // namespace stepcast::calibrate::host
