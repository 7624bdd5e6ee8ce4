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
// Gather of embedding rows by PyTorch's kernel, which vLLM calls as well: vidur profiles, 4096
// tokens (CUPTI medians, measured). V100: as A100.
constexpr double embedding_ampere = 0.15;
constexpr double embedding_hopper = 0.17;

// A smaller copy shows its launch.
constexpr Bytes least_bytes(64 << 20);

}  // namespace

double bandwidth_fraction(workloads::KernelFamily family, workloads::Fusion fusion,
                          topology::Architecture architecture) {
  using enum workloads::KernelFamily;
  using enum topology::Architecture;
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
      return architecture == hopper || architecture == blackwell ? embedding_hopper
                                                                 : embedding_ampere;
    case quantize:
    case permute:
    case router:
    case copy:
      return eager_vectorised;
    case optimizer:
      return adam;
    case gemm:
    case grouped_gemm:
    case attention_forward:
    case attention_backward:
      return eager_vectorised;  // their bytes, where bytes bound them
  }
  expects(false, "a kernel family with a bandwidth");
  return 0.0;
}

std::optional<double> copy_fraction(const std::vector<CopyRow>& rows,
                                    const topology::GpuSpec& gpu) {
  std::vector<double> fractions;
  for (const CopyRow& row : rows)
    if (row.kind == "memory" && row.cache != "hot" &&
        (row.bytes.value == 0 || row.bytes >= least_bytes) &&
        kinship(row.gpu, gpu.name) == Kinship::same)
      fractions.push_back(std::min(1.0, row.rate / gpu.memory_bandwidth));
  if (fractions.empty()) return std::nullopt;
  return median(std::move(fractions));
}

}  // namespace stepcast::sim
