// Products whose rows in memory are no multiple of 16 bytes leave the fast kernels.
#pragma once

#include <cstdint>
#include <string_view>

#include "workloads/plan/plan.hpp"

namespace stepcast::sim {

/// Whether every row of both operands and of the result is a multiple of 16 bytes: 8 elements of
/// fp16 or bf16, 16 of fp8. Which of m, n and k are rows in memory follows from the layout, opA and
/// opB as in gemm_layout(): k and n, in "TN" m and n. fp32 and tf32 need 4, and all pass here.
/// Source: NVIDIA, Matrix Multiplication Background User's Guide (DU-09799-001, 2023-02), section
/// 2.2: a condition of tensor cores before cuBLAS 11, of their speed since.
bool rows_are_aligned(std::int64_t m, std::int64_t n, std::int64_t k, std::string_view layout,
                      workloads::Dtype dtype);

/// Head dimension that an attention kernel works on: whole multiples of 8.
constexpr std::int64_t padded_head_dim(std::int64_t head_dim) { return (head_dim + 7) / 8 * 8; }

}  // namespace stepcast::sim
