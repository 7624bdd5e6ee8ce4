#include "workloads/plan/low_precision.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::workloads {
namespace {

constexpr std::int64_t source = 2;  // bytes of an element before it is quantized

/// Bytes of the scales of one copy: fp32 per 1 x 128 (weights per 128 x 128), E8M0 per 1 x 32, E4M3
/// per 1 x 16; of a whole tensor next to none.
std::int64_t scale_bytes(Dtype dtype, OperandRole role, std::int64_t elements) {
  switch (dtype) {
    case Dtype::fp8_block:
      return 4 * ceil_div(elements, role == OperandRole::weight ? 128 * 128 : 128);
    case Dtype::mxfp8:
      return ceil_div(elements, 32);
    case Dtype::nvfp4:
      return ceil_div(elements, 16);
    case Dtype::fp8:
      return 0;
    case Dtype::fp32:
    case Dtype::tf32:
    case Dtype::bf16:
    case Dtype::fp16:
      break;
  }
  throw BrokenPromise("a type that is scaled");
}

std::int64_t count(OperandCopies copies) {
  return (copies.rows ? 1 : 0) + (copies.columns ? 1 : 0);
}

/// Copies that are written: per tensor, one serves both where nothing is transposed.
std::int64_t written_copies(const Precision& p, OperandCopies copies) {
  return scaled_per_tensor(p) && !p.transposes ? 1 : count(copies);
}

}  // namespace

Dtype quantized_dtype(const Precision& p) {
  switch (p.recipe) {
    case Recipe::none:
      return p.compute;
    case Recipe::fp8_delayed:
    case Recipe::fp8_current:
      return Dtype::fp8;
    case Recipe::fp8_block:
      return Dtype::fp8_block;
    case Recipe::mxfp8:
      return Dtype::mxfp8;
    case Recipe::nvfp4:
      return Dtype::nvfp4;
  }
  throw BrokenPromise("unknown recipe");
}

Dtype product_dtype(const Precision& p) {
  return p.recipe == Recipe::fp8_block && p.emulates_blocks ? Dtype::mxfp8 : quantized_dtype(p);
}

bool delayed(const Precision& p) { return p.recipe == Recipe::fp8_delayed; }
bool current(const Precision& p) { return p.recipe == Recipe::fp8_current; }
bool scaled_per_tensor(const Precision& p) { return delayed(p) || current(p); }

std::int64_t copy_bytes(const Precision& p, OperandRole role, std::int64_t elements) {
  const Dtype dtype = quantized_dtype(p);
  return ceil_div(bits_per_element(dtype) * elements, 8) + scale_bytes(dtype, role, elements);
}

std::int64_t copies_bytes(const Precision& p, OperandRole role, std::int64_t elements) {
  return written_copies(p, {}) * copy_bytes(p, role, elements);
}

std::int64_t kept_input_bytes(const Precision& p, std::int64_t elements) {
  return copy_bytes(p, OperandRole::input, elements);
}

// Delayed scaling reads the tensor once: what was largest is noted on the way. Current scaling and
// nvfp4 read it for that first. Blocks and microscaling quantize both directions in one kernel;
// nvfp4's takes the columns of what wgrad reads through a Hadamard transform, and rounds gradients
// stochastically. Scales of mxfp8, and those that emulate it, are laid out
// for the tensor cores by a kernel that reads and writes them (Transformer Engine
// pytorch/csrc/extensions/cast.cpp, common/swizzle, common/hadamard_transform at d0067d0, 2026).
std::vector<CastPass> cast_passes(const Precision& p, OperandRole role, OperandCopies copies,
                                  std::int64_t elements) {
  if (p.recipe == Recipe::none) return {};
  const std::int64_t read = source * elements, copy = copy_bytes(p, role, elements);
  const std::int64_t scales = scale_bytes(quantized_dtype(p), role, elements);
  const CastPass amax{"amax", read}, cast{"cast", read + written_copies(p, copies) * copy};
  switch (p.recipe) {
    case Recipe::none:
      break;
    case Recipe::fp8_delayed:
      return {cast};
    case Recipe::fp8_current:
      return {amax, cast};
    case Recipe::fp8_block:
      if (!p.emulates_blocks) return {cast};
      return {cast, {"swizzle", count(copies) * (scales + ceil_div(elements, 32))}};
    case Recipe::mxfp8:
      return {cast, {"swizzle", count(copies) * 2 * scales}};
    case Recipe::nvfp4:
      if (role == OperandRole::weight || !copies.columns) return {amax, cast};
      return {amax, {"hadamard", cast.bytes}};
  }
  throw BrokenPromise("unknown recipe");
}

// nvfp4's weights are scaled by 16 x 16, so their columns hold the values of their rows.
std::vector<CastPass> transpose_passes(const Precision& p, std::int64_t elements) {
  const bool moves = scaled_per_tensor(p) ? p.transposes : p.recipe == Recipe::nvfp4;
  if (!moves) return {};
  return {{"transpose", 2 * copy_bytes(p, OperandRole::weight, elements)}};
}

bool gathers_quantized(const Precision& p) {
  return scaled_per_tensor(p) || p.recipe == Recipe::mxfp8;
}

bool quantized(const ParameterTensor& t) {
  constexpr std::string_view parts[] = {"attention.", "mlp.", "expert", "shared"};
  return t.matmul && std::ranges::any_of(
                         parts, [&](std::string_view part) { return t.name.starts_with(part); });
}

std::int64_t quantized_elements_of(const Precision& p, const AlikeLayers& layer) {
  if (p.recipe == Recipe::none || layer.kind.plain) return 0;
  std::int64_t sum = 0;
  for (const ParameterTensor& t : layer.tensors) sum += quantized(t) ? t.elements : 0;
  return sum;
}

bool gathers_narrow(const Precision& p) {
  return p.fp8_parameters && p.recipe != Recipe::none && p.recipe != Recipe::mxfp8;
}

std::int64_t gathered_bytes_of(const Precision& p, const AlikeLayers& layer) {
  const std::int64_t few = gathers_narrow(p) ? quantized_elements_of(p, layer) : 0;
  const std::int64_t e = bytes_per_element(p.compute);
  const std::int64_t whole = kept_bytes(layer.tensors, e) - e * few;
  return few == 0 ? whole : whole + copy_bytes(p, OperandRole::weight, few);
}

/// With weights in the recipe's type there are none of 16 bits (mxfp8's are gathered into the
/// buffer of gradients: reuse_grad_buf_for_mxfp8_param_ag of Megatron).
std::int64_t kept_weight_bytes(const Precision& p, const AlikeLayers& layer) {
  const std::int64_t few = quantized_elements_of(p, layer), all = elements_of(layer.tensors);
  const std::int64_t wide = p.fp8_parameters ? all - few : all;
  const std::int64_t copies = few == 0 ? 0 : copies_bytes(p, OperandRole::weight, few);
  return bytes_per_element(p.compute) * wide + copies;
}

}  // namespace stepcast::workloads
