// Attention on one core, exact, in blocks of query rows: the scores of a block stay in the
// second-level cache, and under a causal mask blocks right of the diagonal are not computed.
// Grouped heads: query head a reads key head a kv_heads / heads. For float and double.
#pragma once

#include <cstdint>
#include <span>

namespace stepcast::calibrate::host {

/// q, o (B, S, heads, D); k, v (B, S, kv_heads, D); row statistics (B, heads, S).
struct AttentionSizes {
  std::int64_t batch = 1, sequence = 1, heads = 1, kv_heads = 1, head_dim = 64;
  bool causal = true;
};

/// o = softmax(q k^T / sqrt(D)) v; lse: log of the sum of the row's exponentials.
template <class T>
void attention_forward(std::span<T> o, std::span<T> lse, std::span<const T> q, std::span<const T> k,
                       std::span<const T> v, const AttentionSizes& sizes);

/// With P the softmax: dv = P^T do; dS = P (do v^T - row sum of do o); dq = dS k / sqrt(D);
/// dk = dS^T q / sqrt(D). Overwrites dq, dk and dv (summed over the query heads of a group).
template <class T>
void attention_backward(std::span<T> dq, std::span<T> dk, std::span<T> dv, std::span<const T> dout,
                        std::span<const T> o, std::span<const T> lse, std::span<const T> q,
                        std::span<const T> k, std::span<const T> v, const AttentionSizes& sizes);

}  // namespace stepcast::calibrate::host
