#include "calibrate/host/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "calibrate/host/gemm.hpp"
#include "calibrate/host/math.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate::host {
namespace {

// Query rows of a block: at 2,048 keys its scores take 512 KiB; half of a small causal sequence's
// products fall away.
constexpr std::int64_t block_rows = 64;

/// One head of one sequence: where its rows are within (B, S, heads, D).
class Head {
 public:
  Head(const AttentionSizes& s, std::int64_t b, std::int64_t a)
      : sizes_(s), b_(b), a_(a), group_(a * s.kv_heads / s.heads) {}

  std::int64_t query_stride() const { return sizes_.heads * sizes_.head_dim; }
  std::int64_t key_stride() const { return sizes_.kv_heads * sizes_.head_dim; }
  template <class T>
  Block<T> queries(T* x, std::int64_t row) const {
    return {x + (b_ * sizes_.sequence + row) * query_stride() + a_ * sizes_.head_dim,
            query_stride()};
  }
  template <class T>
  Block<T> keys(T* x) const {
    return {x + b_ * sizes_.sequence * key_stride() + group_ * sizes_.head_dim, key_stride()};
  }
  std::size_t statistic(std::int64_t row) const {
    return static_cast<std::size_t>((b_ * sizes_.heads + a_) * sizes_.sequence + row);
  }

 private:
  const AttentionSizes& sizes_;
  std::int64_t b_, a_, group_;
};

/// Query rows [first, first + rows) and the keys [0, keys) that any of them sees.
struct Rows {
  std::int64_t first, rows, keys;
  /// Keys that row i of the block sees.
  std::int64_t seen(std::int64_t i, bool causal) const { return causal ? first + i + 1 : keys; }
};

/// Calls f(head, rows) for every block of every head, a head's blocks in order.
template <class F>
void for_blocks(const AttentionSizes& s, F f) {
  expects(s.batch > 0 && s.sequence > 0 && s.kv_heads > 0 && s.head_dim > 0, "sizes above zero");
  expects(s.heads % s.kv_heads == 0, "query heads in equal groups");
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t a = 0; a < s.heads; ++a)
      for (std::int64_t first = 0; first < s.sequence; first += block_rows) {
        const std::int64_t rows = std::min(block_rows, s.sequence - first);
        f(Head(s, b, a), Rows{first, rows, s.causal ? first + rows : s.sequence});
      }
}

template <class T>
std::vector<T> scores_of(const AttentionSizes& s) {
  return std::vector<T>(static_cast<std::size_t>(block_rows * s.sequence));
}

}  // namespace

template <class T>
void attention_forward(std::span<T> o, std::span<T> lse, std::span<const T> q, std::span<const T> k,
                       std::span<const T> v, const AttentionSizes& s) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim));
  std::vector<T> scores = scores_of<T>(s);  // (rows, S) of a block
  for_blocks(s, [&](const Head& head, const Rows& r) {
    const Block<T> p{scores.data(), s.sequence};
    multiply(p, head.queries(q.data(), r.first), head.keys(k.data()),
             {Layout::nt, r.rows, r.keys, s.head_dim, scale, 0.0});
    for (std::int64_t i = 0; i < r.rows; ++i) {
      T* row = p.first + i * p.stride;
      const auto seen = static_cast<std::size_t>(r.seen(i, s.causal));
      const T most = largest_in_lanes(row, seen);
      for (std::size_t j = 0; j < seen; ++j) row[j] = exponential(row[j] - most);
      const T sum = sum_in_lanes<T>(seen, [row](std::size_t j) { return row[j]; });
      const T share = T(1) / sum;
      for (std::size_t j = 0; j < seen; ++j) row[j] *= share;
      std::fill(row + seen, row + r.keys, T(0));
      lse[head.statistic(r.first + i)] = most + std::log(sum);
    }
    multiply(head.queries(o.data(), r.first), Block<const T>{p.first, p.stride},
             head.keys(v.data()), {Layout::nn, r.rows, s.head_dim, r.keys, 1.0, 0.0});
  });
}

template <class T>
void attention_backward(std::span<T> dq, std::span<T> dk, std::span<T> dv, std::span<const T> dout,
                        std::span<const T> o, std::span<const T> lse, std::span<const T> q,
                        std::span<const T> k, std::span<const T> v, const AttentionSizes& s) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim));
  std::vector<T> scores = scores_of<T>(s), slopes = scores_of<T>(s);
  std::fill(dk.begin(), dk.end(), T(0));
  std::fill(dv.begin(), dv.end(), T(0));
  for_blocks(s, [&](const Head& head, const Rows& r) {
    const Block<T> p{scores.data(), s.sequence}, ds{slopes.data(), s.sequence};
    const Block<const T> const_p{p.first, p.stride}, const_ds{ds.first, ds.stride};
    const auto queries = head.queries(q.data(), r.first), up = head.queries(dout.data(), r.first),
               out = head.queries(o.data(), r.first);
    multiply(p, queries, head.keys(k.data()), {Layout::nt, r.rows, r.keys, s.head_dim, scale, 0.0});
    multiply(ds, up, head.keys(v.data()), {Layout::nt, r.rows, r.keys, s.head_dim, 1.0, 0.0});
    for (std::int64_t i = 0; i < r.rows; ++i) {
      T *row = p.first + i * p.stride, *slope = ds.first + i * ds.stride;
      const T *up_row = up.first + i * up.stride, *out_row = out.first + i * out.stride;
      const T dot = sum_in_lanes<T>(static_cast<std::size_t>(s.head_dim),
                                    [=](std::size_t d) { return up_row[d] * out_row[d]; });
      const T log_sum = lse[head.statistic(r.first + i)];
      const auto seen = static_cast<std::size_t>(r.seen(i, s.causal));
      for (std::size_t j = 0; j < seen; ++j) {
        row[j] = exponential(row[j] - log_sum);
        slope[j] = row[j] * (slope[j] - dot);
      }
      std::fill(row + seen, row + r.keys, T(0));
      std::fill(slope + seen, slope + r.keys, T(0));
    }
    multiply(head.keys(dv.data()), const_p, up, {Layout::tn, r.keys, s.head_dim, r.rows, 1.0, 1.0});
    multiply(head.keys(dk.data()), const_ds, queries,
             {Layout::tn, r.keys, s.head_dim, r.rows, scale, 1.0});
    multiply(head.queries(dq.data(), r.first), const_ds, head.keys(k.data()),
             {Layout::nn, r.rows, s.head_dim, r.keys, scale, 0.0});
  });
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
