#include "sim/kernels/bandwidth_fractions.hpp"

#include <algorithm>
#include <vector>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

// Middles of the ranges that the design study of kernel lists gives (2026-11); "memory" marks
// figures that were recalled, not read in a source. They hold for V100, A100 and H100 alike unless
// said otherwise. vLLM's measured rows (residual add 0.88-0.97, silu*mul 0.48-0.58, RMSNorm 0.33,
// RoPE 0.43-0.47) are inference kernels and count for none of these.
constexpr double eager_vectorised = 0.85;      // 0.80-0.90 (memory): add, mul, cast, foreach copy
constexpr double inductor_pointwise = 0.85;    // 0.80-0.90 (memory)
constexpr double inductor_norm = 0.775;        // 0.70-0.85 (memory)
constexpr double fused_norm = 0.80;            // TE, apex LayerNorm forward 0.75-0.85 (memory)
constexpr double fused_norm_backward = 0.625;  // TE, apex LayerNorm backward 0.55-0.70 (memory)
constexpr double fused_softmax = 0.725;        // at 2k: 0.65-0.80 (memory)
constexpr double eager_reduction = 0.675;      // rows: 0.60-0.75 (memory)
constexpr double adam = 0.84;                  // fused and multi-tensor: 0.80-0.88 (memory)

// Rows of 4 to 16 KiB in another order, or k of them added up: whole bursts, but no two of one page
// (derived: between a gather of embeddings and a copy).
constexpr double gather_of_rows = 0.70;
// Scores, top-k and counts of a token read a row of at most some KiB several times (derived).
constexpr double small_rows = 0.50;

// Transformer Engine's layer of four products on a B300 (docs/examples/gemm_profiling d0067d0,
// 2026), with casts less without, over the bytes that its casts of 4.6e8 inputs and 2.0e8 weights
// move: current scaling 721 us (5 B an element), delayed 328 us (3), mxfp8 482 us (4.06), nvfp4 678
// us (5.1) of 8 TB/s. torchao's mxfp8 casts reach 0.63 to 0.81 on a B200, its casts per block 0.71
// to 0.84 on an H100, its nvfp4 ones 0.08 to 0.32 on a GB200 (36027d8;
// calibrate/published/memory_bound.csv).
constexpr double current_fp8 = 0.57, delayed_fp8 = 0.75;
constexpr double microscaled = 0.69;
constexpr double block_scaled = 0.80;
constexpr double four_bits = 0.61;

// A smaller copy shows its launch.
constexpr Bytes least_curve_bytes(64 << 20);

}  // namespace

double bandwidth_fraction(workloads::KernelFamily family, workloads::Fusion fusion,
                          const topology::Architecture& architecture) {
  using enum workloads::KernelFamily;
  const bool compiled = fusion == workloads::Fusion::compiled;
  switch (family) {
    case pointwise:
      return compiled ? inductor_pointwise : eager_vectorised;
    case rope:
    case activation:
      return compiled ? inductor_pointwise : eager_vectorised;
    case norm:
      return compiled ? inductor_norm : fused_norm;
    case norm_backward:
      return compiled ? inductor_norm : fused_norm_backward;
    case reduction:
      return compiled ? inductor_norm : eager_reduction;
    case softmax:
      return fused_softmax;
    case embedding:
      return architecture.embedding;
    case quantize:
      return quantize_fraction(workloads::Dtype::fp8);
    case permute:
      return gather_of_rows;
    case router:
      return small_rows;
    case copy:
      return eager_vectorised;
    case optimizer:
      return adam;
    case gemm:
    case grouped_gemm:
    case attention_forward:
    case attention_backward:
    case sparse_forward:
    case sparse_backward:
    case delta_forward:
    case delta_backward:
    case state_space_forward:
    case state_space_backward:
    case host_copy:
    case host_update:
      return eager_vectorised;  // their bytes, where bytes bound them
  }
  expects(false, "a kernel family with a bandwidth");
  return 0.0;
}

double quantize_fraction(workloads::Dtype to) {
  switch (to) {
    case workloads::Dtype::mxfp8:
      return microscaled;
    case workloads::Dtype::fp8_block:
      return block_scaled;
    case workloads::Dtype::nvfp4:
      return four_bits;
    default:
      return (current_fp8 + delayed_fp8) / 2;
  }
}

std::optional<double> copy_fraction(const std::vector<CopyRow>& rows,
                                    const topology::GpuSpec& gpu) {
  std::vector<double> fractions;
  for (const CopyRow& row : rows)
    if (row.kind == "memory" && row.cache != "hot" &&
        (row.bytes.value == 0 || row.bytes >= least_curve_bytes) &&
        kinship(row.gpu, gpu.name) == Kinship::same)
      fractions.push_back(std::min(1.0, row.rate / (gpu.memory_bandwidth * memory_slowdown(gpu))));
  if (fractions.empty()) return std::nullopt;
  return median(std::move(fractions));
}

}  // namespace stepcast::sim
