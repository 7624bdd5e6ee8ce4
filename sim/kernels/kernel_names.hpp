// From the kernels of a step program to the words of a calibration table: the layout of a product,
// the kind of an element-wise kernel. The one place that reads kernel names. Knows no time.
#pragma once

#include <cstdint>
#include <string_view>

#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// opA and opB of a product, row-major with weights stored (out, in): forward T x in times in x out
/// is "NT", the input's gradient "NN", the weight's "TN"; "" for the products of unfused attention.
std::string_view gemm_layout(const workloads::Kernel& kernel);

/// The kinds that a device times. Bytes are the least traffic of an element of the kernel's own
/// type of e bytes, as the step program counts them.
///   rmsnorm, layernorm   2e forward, 3e backward          rope        2e both ways
///   silu_mul             3e forward, 5e backward          gelu        2e forward, 3e backward
///   residual_add         3e                               embedding   2e forward, 3e backward
///   cross_entropy        2e forward, 2e backward          cast        e + 4: to and from fp32
///   adamw                28 (fp32 p, g, m, v read, p, m, v written)
///   grad_norm            4 (fp32 read)                    copy_in, copy_out  2e
/// Of our own trainer's layers of experts, T tokens of which each has k of E experts, S rows that
/// they send, R that come, H wide, F of an expert; their bytes are not a multiple of their
/// elements:
///   router               e T E + (e + 8) T k forward, e T E more backward
///   permute, unpermute   e (T + S) H                      sort_rows   2e R H
///   weighted_silu_mul    e R (3F + 1) forward, e R (5F + 2) backward
struct ElementwiseUse {
  std::string_view kind;
  bool backward = false;
  bool exact = true;  // false: no kind of its own; taken as fast as `kind` over its bytes
  std::string_view otherwise{};  // taken so where `kind` was not measured
};

/// Precondition: neither a product nor attention.
ElementwiseUse elementwise_use(const workloads::Kernel& kernel);

/// As above; 0 for an unknown kind.
std::int64_t bytes_per_element(std::string_view kind, bool backward, workloads::Dtype dtype);

}  // namespace stepcast::sim
