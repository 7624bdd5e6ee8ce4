// The host kernels' formulas once more, written down as they stand in a textbook, in double and
// without regard to speed: what a kernel must agree with before it is timed. Shapes as there.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/host/attention.hpp"
#include "calibrate/host/gemm.hpp"

namespace stepcast::calibrate::host {

using Doubles = std::vector<double>;
using Ids = std::vector<std::int32_t>;

/// Element (row, column) of op(A) op(B).
double reference_product(const GemmSizes& sizes, const std::vector<float>& a,
                         const std::vector<float>& b, std::int64_t row, std::int64_t column);

Doubles reference_rmsnorm(const Doubles& x, const Doubles& w, double epsilon);
struct NormGradients {
  Doubles dx, dw, db;
};
NormGradients reference_rmsnorm_backward(const Doubles& dy, const Doubles& x, const Doubles& w,
                                         double epsilon);
Doubles reference_layernorm(const Doubles& x, const Doubles& w, const Doubles& b, double epsilon);
NormGradients reference_layernorm_backward(const Doubles& dy, const Doubles& x, const Doubles& w,
                                           double epsilon);
/// direction 1 turns, -1 turns back.
Doubles reference_rope(const Doubles& x, std::int64_t heads, std::int64_t head_dim,
                       std::int64_t sequence, double direction);
Doubles reference_silu_mul(const Doubles& gate, const Doubles& up);
struct PairGradients {
  Doubles first, second;
};
PairGradients reference_silu_mul_backward(const Doubles& dy, const Doubles& gate,
                                          const Doubles& up);
Doubles reference_gelu(const Doubles& x);
Doubles reference_gelu_backward(const Doubles& dy, const Doubles& x);
Doubles reference_cross_entropy(const Doubles& logits, const Ids& targets);
Doubles reference_cross_entropy_backward(const Doubles& logits, const Ids& targets, double scale);

struct AttentionGradients {
  Doubles dq, dk, dv;
};
/// Whole tensors, by the matrix of probabilities of each head.
Doubles reference_attention(const Doubles& q, const Doubles& k, const Doubles& v,
                            const AttentionSizes& sizes);
AttentionGradients reference_attention_backward(const Doubles& dout, const Doubles& q,
                                                const Doubles& k, const Doubles& v,
                                                const AttentionSizes& sizes);

}  // namespace stepcast::calibrate::host
