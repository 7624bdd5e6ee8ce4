#include "sim/kernels/operand_types.hpp"

#include <utility>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using workloads::Dtype;

constexpr std::pair<std::string_view, Dtype> operand_words[] = {
    {"fp8", Dtype::fp8},
    {"fp8(tensorwise)", Dtype::fp8},
    {"fp8(rowwise)", Dtype::fp8},
    {"fp8(current)", Dtype::fp8},
    {"fp8(delayed)", Dtype::fp8},
    {"fp8_block", Dtype::fp8_block},
    {"fp8(128x128)", Dtype::fp8_block},
    {"fp8(1x128,128x128)", Dtype::fp8_block},
    {"fp8(1d1d)", Dtype::fp8_block},
    {"fp8(fine-grained scaling)", Dtype::fp8_block},
    {"mxfp8", Dtype::mxfp8},
    {"nvfp4", Dtype::nvfp4},
    {"tf32", Dtype::tf32},
    {"fp32", Dtype::fp32},
};

}  // namespace

std::optional<Dtype> operand_type(std::string_view word) {
  if (word.starts_with("fp16") || word.starts_with("bf16")) return Dtype::bf16;
  for (const auto& [known, type] : operand_words)
    if (known == word) return type;
  return std::nullopt;
}

Dtype multiplied_as(Dtype dtype, const topology::Architecture& architecture) {
  if (dtype == Dtype::fp16) return Dtype::bf16;
  return dtype == Dtype::fp8_block && architecture.microscales ? Dtype::mxfp8 : dtype;
}

FlopsPerSecond peak_of(const topology::GpuSpec& gpu, Dtype dtype) {
  const bool microscales = gpu.architecture.microscales;
  switch (dtype) {
    case Dtype::fp32:
      return gpu.fp32_peak;
    case Dtype::tf32:
      return gpu.tf32_peak;
    case Dtype::bf16:
    case Dtype::fp16:
      return gpu.tensor_peak;
    case Dtype::fp8:
    case Dtype::fp8_block:
      return gpu.fp8_peak;
    case Dtype::mxfp8:
      return microscales ? gpu.fp8_peak : FlopsPerSecond{};
    case Dtype::nvfp4:
      return microscales ? gpu.fp4_peak : FlopsPerSecond{};
  }
  throw BrokenPromise("unknown dtype");
}

}  // namespace stepcast::sim
