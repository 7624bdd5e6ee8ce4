// Low-precision recipes of Transformer Engine and torchao: the type that a layer's products read,
// the bytes of an operand's copies and the kernels that make them. Knows no hardware: what differs
// by GPU is said in Precision.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/plan/plan.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {

/// Which operand of a linear layer: forward multiplies input and weight, dgrad gradient and weight,
/// wgrad gradient and input.
enum class OperandRole : std::uint8_t { input, weight, gradient };

/// Copies of an operand: quantized along rows for forward's input and weight and dgrad's gradient,
/// along columns for dgrad's weight and wgrad's input and gradient.
struct OperandCopies {
  bool rows = true;
  bool columns = true;
};

/// The type that products of a layer under the recipe read; without one the compute type.
Dtype product_dtype(const Precision&);
/// The type that operands are quantized to: product_dtype, but for blocks that are emulated.
Dtype quantized_dtype(const Precision&);

/// Scaled per tensor: one copy serves both directions, where the GPU does not ask for transposes.
bool scaled_per_tensor(const Precision&);
/// Of those, whether scales follow from earlier steps, or from the tensor at hand.
bool delayed(const Precision&);
bool current(const Precision&);

/// One copy with its scales, of so many elements.
std::int64_t copy_bytes(const Precision&, OperandRole, std::int64_t elements);
/// All that are kept for both directions: of a weight between steps.
std::int64_t copies_bytes(const Precision&, OperandRole, std::int64_t elements);
/// What backward needs of an input that forward has quantized.
std::int64_t kept_input_bytes(const Precision&, std::int64_t elements);

/// A kernel that quantizes: what its name ends with, and its bytes.
struct CastPass {
  std::string_view name;
  std::int64_t bytes = 0;
};
/// The kernels that make `copies` of a tensor of 16 bits.
std::vector<CastPass> cast_passes(const Precision&, OperandRole, OperandCopies,
                                  std::int64_t elements);
/// Those that make the column copy from the rows, without the source; none: not needed, or not
/// possible as the values differ.
std::vector<CastPass> transpose_passes(const Precision&, std::int64_t elements);

/// Sequence-parallel gathers move the quantized copy: all but those scaled by blocks of columns.
bool gathers_quantized(const Precision&);

/// Whether the recipe holds for a weight: those of attention, MLP and experts, not of routers,
/// embedding and head.
bool quantized(const ParameterTensor&);
/// Elements of a layer's weights that it holds for.
std::int64_t quantized_elements_of(const Precision&, const AlikeLayers&);

/// Weights are gathered in the recipe's type: mxfp8's both copies are made of 16 bits.
bool gathers_narrow(const Precision&);
/// Bytes in which a layer's weights are gathered from their shards, frozen ones as they are kept.
std::int64_t gathered_bytes_of(const Precision&, const AlikeLayers&);
/// And what a rank keeps of them to compute with: as they are gathered, and copies beside.
std::int64_t kept_weight_bytes(const Precision&, const AlikeLayers&);

}  // namespace stepcast::workloads
