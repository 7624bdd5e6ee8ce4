#include "calibrate/host/experts.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "calibrate/host/kernels.hpp"
#include "calibrate/host/math.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate::host {
namespace {

std::size_t elements(std::int64_t count) { return static_cast<std::size_t>(count); }

/// Of one token for all experts.
template <class T>
void scores_of(std::vector<T>& scores, std::span<const T> logits, const ExpertChoice& how) {
  scores.assign(logits.begin(), logits.end());
  const T most = how.sigmoid ? T(0) : largest_in_lanes(logits.data(), logits.size());
  T sum = 0;
  for (T& score : scores) {
    score = how.sigmoid ? T(1) / (T(1) + exponential(-score)) : exponential(score - most);
    sum += score;
  }
  if (!how.sigmoid)
    for (T& score : scores) score /= sum;
}

/// The k highest, the highest first.
template <class T>
void highest(IndexesOut choice, std::span<const T> logits, std::vector<std::int32_t>& order) {
  order.resize(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + std::ssize(choice), order.end(),
                    [logits](std::int32_t a, std::int32_t b) {
                      const T x = logits[elements(a)], y = logits[elements(b)];
                      return x != y ? x > y : a < b;
                    });
  std::copy_n(order.begin(), choice.size(), choice.begin());
}

/// Rows of each expert by the tokens' choices.
void place_rows(IndexesOut row, IndexesOut counts, Indexes choice, const ExpertChoice& how) {
  const auto room = how.capacity > 0 ? how.capacity : std::ssize(choice);
  std::ranges::fill(counts, 0);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    std::int32_t& count = counts[elements(choice[i])];
    row[i] = count < room ? count++ : -1;
  }
  if (how.padded) std::ranges::fill(counts, static_cast<std::int32_t>(how.capacity));
  std::vector<std::int32_t> first(counts.size());
  for (std::size_t e = 1; e < counts.size(); ++e) first[e] = first[e - 1] + counts[e - 1];
  for (std::size_t i = 0; i < choice.size(); ++i)
    if (row[i] >= 0) row[i] += first[elements(choice[i])];
}

/// f(first row by source, first row by expert, how many) for each source and expert.
template <class F>
void each_block(Indexes counts, std::size_t experts, F f) {
  std::size_t by_expert = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    std::size_t by_source = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::size_t rows = elements(counts[i]);
      if (i % experts == e) {
        f(by_source, by_expert, rows);
        by_expert += rows;
      }
      by_source += rows;
    }
  }
}

}  // namespace

template <class T>
void choose_experts(IndexesOut choice, IndexesOut row, IndexesOut counts, std::span<T> weights,
                    std::span<const T> logits, const ExpertChoice& how) {
  const std::size_t experts = elements(how.experts), k = elements(how.per_token);
  const std::size_t tokens = logits.size() / experts;
  expects(logits.size() == tokens * experts && choice.size() == tokens * k &&
              row.size() == choice.size() && counts.size() == experts,
          "choose_experts: (T, E) and (T, k)");
  std::vector<std::int32_t> order;
  for (std::size_t t = 0; t < tokens; ++t)
    highest(choice.subspan(t * k, k), logits.subspan(t * experts, experts), order);
  place_rows(row, counts, choice, how);
  zero(weights);
  std::vector<T> scores;
  for (std::size_t t = 0; t < tokens; ++t) {
    scores_of(scores, logits.subspan(t * experts, experts), how);
    T sum = 0;
    for (std::size_t i = t * k; i < (t + 1) * k; ++i) sum += scores[elements(choice[i])];
    for (std::size_t i = t * k; i < (t + 1) * k; ++i)
      if (row[i] >= 0)
        weights[elements(row[i])] = scores[elements(choice[i])] / (k > 1 ? sum : T(1));
  }
}

// w_i = s_i / sum: ds_i = (dw_i - sum_j w_j dw_j) / sum; the softmax and the sigmoid after it.
template <class T>
void choose_experts_backward(std::span<T> dlogits, std::span<const T> dweights,
                             std::span<const T> logits, Indexes choice, Indexes row,
                             const ExpertChoice& how) {
  const std::size_t experts = elements(how.experts), k = elements(how.per_token);
  const std::size_t tokens = logits.size() / experts;
  zero(dlogits);
  std::vector<T> scores;
  for (std::size_t t = 0; t < tokens; ++t) {
    scores_of(scores, logits.subspan(t * experts, experts), how);
    T* slopes = &dlogits[t * experts];
    T sum = 0, along = 0;
    for (std::size_t i = t * k; i < (t + 1) * k; ++i) {
      const T score = scores[elements(choice[i])];
      slopes[elements(choice[i])] = row[i] >= 0 ? dweights[elements(row[i])] : T(0);
      sum += score;
      along += score * slopes[elements(choice[i])];
    }
    if (k > 1)
      for (std::size_t i = t * k; i < (t + 1) * k; ++i) {
        T& slope = slopes[elements(choice[i])];
        slope = (slope - along / sum) / sum;
      }
    // Now of the scores.
    T dot = 0;
    for (std::size_t e = 0; e < experts; ++e) dot += scores[e] * slopes[e];
    for (std::size_t e = 0; e < experts; ++e)
      slopes[e] = scores[e] * (how.sigmoid ? slopes[e] * (T(1) - scores[e]) : slopes[e] - dot);
  }
}

template <class T>
void rows_of_tokens(std::span<T> rows, std::span<const T> x, Indexes row, std::int64_t width) {
  const std::size_t w = elements(width), k = row.size() * w / x.size();
  zero(rows);
  for (std::size_t i = 0; i < row.size(); ++i)
    if (row[i] >= 0) std::copy_n(&x[i / k * w], w, &rows[elements(row[i]) * w]);
}

template <class T>
void sums_of_rows(std::span<T> y, std::span<const T> rows, Indexes row, std::int64_t width) {
  const std::size_t w = elements(width), k = row.size() * w / y.size();
  zero(y);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] < 0) continue;
    const T* from = &rows[elements(row[i]) * w];
    T* to = &y[i / k * w];
    for (std::size_t h = 0; h < w; ++h) to[h] += from[h];
  }
}

template <class T>
void sort_rows(std::span<T> to, std::span<const T> from, Indexes counts, std::int64_t experts,
               std::int64_t width, bool back) {
  const std::size_t w = elements(width);
  each_block(counts, elements(experts),
             [&](std::size_t by_source, std::size_t by_expert, std::size_t rows) {
               const std::size_t at = back ? by_expert : by_source;
               std::copy_n(from.begin() + std::ptrdiff_t(at * w), rows * w,
                           to.begin() + std::ptrdiff_t((back ? by_source : by_expert) * w));
             });
}

template <class T>
void grouped_gemm(std::span<T> c, std::span<const T> a, std::span<const T> b, Indexes counts,
                  const GroupedSizes& s) {
  const std::size_t experts = elements(s.experts), n = elements(s.n), k = elements(s.k);
  const bool over_rows = s.layout == "TN";
  std::size_t from = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    std::size_t rows = 0;
    for (std::size_t i = e; i < counts.size(); i += experts) rows += elements(counts[i]);
    const auto m = static_cast<std::int64_t>(rows);
    if (over_rows && rows == 0 && !s.accumulate) zero(c.subspan(e * n * k, n * k));
    if (over_rows && rows > 0)
      gemm(c.subspan(e * n * k, n * k), a.subspan(from * n, rows * n),
           b.subspan(from * k, rows * k),
           {.m = s.n, .n = s.k, .k = m, .layout = "TN", .accumulate = s.accumulate});
    if (!over_rows && rows > 0)
      gemm(c.subspan(from * n, rows * n), a.subspan(from * k, rows * k),
           b.subspan(e * n * k, n * k),
           {.m = m, .n = s.n, .k = s.k, .layout = s.layout, .accumulate = s.accumulate});
    from += rows;
  }
}

template <class T>
void weighted_silu_mul_forward(std::span<T> y, std::span<const T> gate, std::span<const T> up,
                               std::span<const T> weights) {
  silu_mul_forward<T>(y, gate, up);
  const std::size_t width = weights.empty() ? 0 : y.size() / weights.size();
  expects(y.size() == width * weights.size(), "weighted_silu_mul: (S, F)");
  for (std::size_t r = 0; r < weights.size(); ++r) scale(y.subspan(r * width, width), weights[r]);
}

// Without the weight dup = dy silu(gate).
template <class T>
void weighted_silu_mul_backward(std::span<T> dgate, std::span<T> dup, std::span<T> dweights,
                                std::span<const T> dy, std::span<const T> gate,
                                std::span<const T> up, std::span<const T> weights) {
  silu_mul_backward<T>(dgate, dup, dy, gate, up);
  const std::size_t width = weights.empty() ? 0 : dy.size() / weights.size();
  for (std::size_t r = 0; r < weights.size(); ++r) {
    const std::span<T> slopes = dup.subspan(r * width, width);
    const std::span<const T> row = up.subspan(r * width, width);
    dweights[r] = sum_in_lanes<T>(width, [&](std::size_t f) { return slopes[f] * row[f]; });
    scale(slopes, weights[r]);
    scale(dgate.subspan(r * width, width), weights[r]);
  }
}

#define STEPCAST_EXPERT_KERNELS(T)                                                                 \
  template void choose_experts<T>(IndexesOut, IndexesOut, IndexesOut, std::span<T>,                \
                                  std::span<const T>, const ExpertChoice&);                        \
  template void choose_experts_backward<T>(std::span<T>, std::span<const T>, std::span<const T>,   \
                                           Indexes, Indexes, const ExpertChoice&);                 \
  template void rows_of_tokens<T>(std::span<T>, std::span<const T>, Indexes, std::int64_t);        \
  template void sums_of_rows<T>(std::span<T>, std::span<const T>, Indexes, std::int64_t);          \
  template void sort_rows<T>(std::span<T>, std::span<const T>, Indexes, std::int64_t,              \
                             std::int64_t, bool);                                                  \
  template void grouped_gemm<T>(std::span<T>, std::span<const T>, std::span<const T>, Indexes,     \
                                const GroupedSizes&);                                              \
  template void weighted_silu_mul_forward<T>(std::span<T>, std::span<const T>, std::span<const T>, \
                                             std::span<const T>);                                  \
  template void weighted_silu_mul_backward<T>(std::span<T>, std::span<T>, std::span<T>,            \
                                              std::span<const T>, std::span<const T>,              \
                                              std::span<const T>, std::span<const T>);
STEPCAST_EXPERT_KERNELS(float)
STEPCAST_EXPERT_KERNELS(double)
#undef STEPCAST_EXPERT_KERNELS

}  // namespace stepcast::calibrate::host
