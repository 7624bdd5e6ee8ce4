#include "calibrate/host_attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "calibrate/host_math.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate::host {
namespace {

/// Sizes as indexes, and where rows lie.
struct Layout {
  explicit Layout(const AttentionSizes& s)
      : batch(static_cast<std::size_t>(s.batch)),
        sequence(static_cast<std::size_t>(s.sequence)),
        heads(static_cast<std::size_t>(s.heads)),
        kv_heads(static_cast<std::size_t>(s.kv_heads)),
        dim(static_cast<std::size_t>(s.head_dim)),
        causal(s.causal) {
    expects(s.batch > 0 && s.sequence > 0 && s.kv_heads > 0 && s.head_dim > 0, "sizes above zero");
    expects(s.heads % s.kv_heads == 0, "query heads in equal groups");
  }
  std::size_t q_row(std::size_t b, std::size_t s, std::size_t a) const {
    return ((b * sequence + s) * heads + a) * dim;
  }
  std::size_t kv_row(std::size_t b, std::size_t s, std::size_t g) const {
    return ((b * sequence + s) * kv_heads + g) * dim;
  }
  std::size_t keys_of(std::size_t query) const { return causal ? query + 1 : sequence; }

  std::size_t batch, sequence, heads, kv_heads, dim;
  bool causal;
};

/// Head `g` of x (B, S, kv_heads, D) as (D, S): dot products over D become sums of rows.
template <class T>
void transpose_head(std::vector<T>& to, std::span<const T> x, const Layout& l, std::size_t b,
                    std::size_t g) {
  for (std::size_t s = 0; s < l.sequence; ++s) {
    const T* row = &x[l.kv_row(b, s, g)];
    for (std::size_t d = 0; d < l.dim; ++d) to[d * l.sequence + s] = row[d];
  }
}

/// to[j] = sum_d a[d] columns[d, j] for j < count. Four rows at a time save loads of `to`.
template <class T>
void row_times_columns(T* to, const T* a, const T* columns, const Layout& l, std::size_t count) {
  std::fill_n(to, count, T(0));
  std::size_t d = 0;
  for (; d + 4 <= l.dim; d += 4) {
    const T *c0 = columns + d * l.sequence, *c1 = c0 + l.sequence, *c2 = c1 + l.sequence,
            *c3 = c2 + l.sequence;
    const T a0 = a[d], a1 = a[d + 1], a2 = a[d + 2], a3 = a[d + 3];
    for (std::size_t j = 0; j < count; ++j)
      to[j] += (a0 * c0[j] + a1 * c1[j]) + (a2 * c2[j] + a3 * c3[j]);
  }
  for (; d < l.dim; ++d)
    for (std::size_t j = 0; j < count; ++j) to[j] += a[d] * columns[d * l.sequence + j];
}

/// to[d] += weight x[d].
template <class T>
void add_scaled(T* to, T weight, const T* x, std::size_t n) {
  for (std::size_t d = 0; d < n; ++d) to[d] += weight * x[d];
}

}  // namespace

template <class T>
void attention_forward(std::span<T> o, std::span<T> lse, std::span<const T> q, std::span<const T> k,
                       std::span<const T> v, const AttentionSizes& sizes) {
  const Layout l(sizes);
  const T scale = T(1) / std::sqrt(static_cast<T>(l.dim));
  std::vector<T> keys(l.dim * l.sequence), p(l.sequence);
  for (std::size_t b = 0; b < l.batch; ++b)
    for (std::size_t a = 0; a < l.heads; ++a) {
      const std::size_t g = a * l.kv_heads / l.heads;
      transpose_head(keys, k, l, b, g);
      for (std::size_t i = 0; i < l.sequence; ++i) {
        const std::size_t n = l.keys_of(i);
        row_times_columns(p.data(), &q[l.q_row(b, i, a)], keys.data(), l, n);
        const T most = largest_in_lanes(p.data(), n) * scale;
        for (std::size_t j = 0; j < n; ++j) p[j] = exponential(p[j] * scale - most);
        const T sum = sum_in_lanes<T>(n, [&p](std::size_t j) { return p[j]; });
        lse[(b * l.heads + a) * l.sequence + i] = most + std::log(sum);
        T* out = &o[l.q_row(b, i, a)];
        std::fill_n(out, l.dim, T(0));
        for (std::size_t j = 0; j < n; ++j) add_scaled(out, p[j], &v[l.kv_row(b, j, g)], l.dim);
        for (std::size_t d = 0; d < l.dim; ++d) out[d] /= sum;
      }
    }
}

template <class T>
void attention_backward(std::span<T> dq, std::span<T> dk, std::span<T> dv, std::span<const T> dout,
                        std::span<const T> o, std::span<const T> lse, std::span<const T> q,
                        std::span<const T> k, std::span<const T> v, const AttentionSizes& sizes) {
  const Layout l(sizes);
  const T scale = T(1) / std::sqrt(static_cast<T>(l.dim));
  std::vector<T> keys(l.dim * l.sequence), values(keys.size()), p(l.sequence), ds(l.sequence);
  std::fill(dk.begin(), dk.end(), T(0));
  std::fill(dv.begin(), dv.end(), T(0));
  for (std::size_t b = 0; b < l.batch; ++b)
    for (std::size_t a = 0; a < l.heads; ++a) {
      const std::size_t g = a * l.kv_heads / l.heads;
      transpose_head(keys, k, l, b, g);
      transpose_head(values, v, l, b, g);
      for (std::size_t i = 0; i < l.sequence; ++i) {
        const std::size_t n = l.keys_of(i), row = l.q_row(b, i, a);
        const T *query = &q[row], *up = &dout[row], *out = &o[row];
        const T log_sum = lse[(b * l.heads + a) * l.sequence + i];
        const T dot = sum_in_lanes<T>(l.dim, [=](std::size_t d) { return up[d] * out[d]; });
        row_times_columns(p.data(), query, keys.data(), l, n);
        row_times_columns(ds.data(), up, values.data(), l, n);
        for (std::size_t j = 0; j < n; ++j) {
          p[j] = exponential(p[j] * scale - log_sum);
          ds[j] = p[j] * (ds[j] - dot) * scale;
        }
        T* query_gradient = &dq[row];
        std::fill_n(query_gradient, l.dim, T(0));
        for (std::size_t j = 0; j < n; ++j) {
          const std::size_t key = l.kv_row(b, j, g);
          add_scaled(&dv[key], p[j], up, l.dim);
          add_scaled(&dk[key], ds[j], query, l.dim);
          add_scaled(query_gradient, ds[j], &k[key], l.dim);
        }
      }
    }
}

#define STEPCAST_HOST_ATTENTION(T)                                                                \
  template void attention_forward<T>(std::span<T>, std::span<T>, std::span<const T>,              \
                                     std::span<const T>, std::span<const T>,                      \
                                     const AttentionSizes&);                                      \
  template void attention_backward<T>(std::span<T>, std::span<T>, std::span<T>,                   \
                                      std::span<const T>, std::span<const T>, std::span<const T>, \
                                      std::span<const T>, std::span<const T>, std::span<const T>, \
                                      const AttentionSizes&);
STEPCAST_HOST_ATTENTION(float)
STEPCAST_HOST_ATTENTION(double)
#undef STEPCAST_HOST_ATTENTION

}  // namespace stepcast::calibrate::host
