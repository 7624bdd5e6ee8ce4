// The kernels of a layer of experts on one core, beside those of kernels.hpp: the router's choice,
// rows of tokens on their way to their experts and back, the products of all experts, and their
// activation. Pure functions as there.
//
// Shapes: T tokens, H wide, k experts for each of E; S rows in the order of experts, in each expert
// of tokens; F of an expert. Rows of several sources lie by source, then by expert; counts
// (sources, experts) say how many.
#pragma once

#include <cstdint>
#include <span>

#include "calibrate/host/gemm.hpp"

namespace stepcast::calibrate::host {

/// How tokens choose their experts.
struct ExpertChoice {
  std::int64_t experts = 0, per_token = 0;
  bool sigmoid = false;       // an expert's score is its own sigmoid, else the softmax over all
  std::int64_t capacity = 0;  // rows of an expert, later tokens are dropped; 0: all have room
  bool padded = false;        // every expert has `capacity` rows, the last of them zeros
};

using Indexes = std::span<const std::int32_t>;
using IndexesOut = std::span<std::int32_t>;

/// choice (T,k): the experts of the highest scores, the highest first, of equals the first. row
/// (T,k): where the token's copy lies among the rows by expert, -1 where it is dropped. counts (E):
/// rows of each expert. weights (S): of each row its score over the sum of its token's k, the score
/// itself where k is 1; zeros where no token is.
template <class T>
void choose_experts(IndexesOut choice, IndexesOut row, IndexesOut counts, std::span<T> weights,
                    std::span<const T> logits, const ExpertChoice& how);
/// dlogits (T,E) of the weights' gradient by row.
template <class T>
void choose_experts_backward(std::span<T> dlogits, std::span<const T> dweights,
                             std::span<const T> logits, Indexes choice, Indexes row,
                             const ExpertChoice& how);

/// rows[row[t,i]] = x[t], zeros where no token is: x (T,H), rows (S,H).
template <class T>
void rows_of_tokens(std::span<T> rows, std::span<const T> x, Indexes row, std::int64_t width);
/// y[t] = sum_i rows[row[t,i]]: the other way, of rows_of_tokens the backward.
template <class T>
void sums_of_rows(std::span<T> y, std::span<const T> rows, Indexes row, std::int64_t width);

/// Rows by source become rows by expert, or `back`.
template <class T>
void sort_rows(std::span<T> to, std::span<const T> from, Indexes counts, std::int64_t experts,
               std::int64_t width, bool back);

/// Products of all experts, the weights b_e one after the other. "NT": c (S,n) = a (S,k) b_e
/// (n,k)^T by the rows of each. "NN": c (S,n) = a (S,k) b_e (k,n). "TN": c_e (n,k) = a (S,n)^T b
/// (S,k) over the rows of each, zeros where it has none.
struct GroupedSizes {
  std::int64_t experts = 0, n = 0, k = 0;
  std::string layout = "NT";
  bool accumulate = false;  // c += instead of c =
};
template <class T>
void grouped_gemm(std::span<T> c, std::span<const T> a, std::span<const T> b, Indexes counts,
                  const GroupedSizes& sizes);

/// y (S,F) = weight silu(gate) up.
template <class T>
void weighted_silu_mul_forward(std::span<T> y, std::span<const T> gate, std::span<const T> up,
                               std::span<const T> weights);
template <class T>
void weighted_silu_mul_backward(std::span<T> dgate, std::span<T> dup, std::span<T> dweights,
                                std::span<const T> dy, std::span<const T> gate,
                                std::span<const T> up, std::span<const T> weights);

}  // namespace stepcast::calibrate::host
