// What the operands of a product are, by the words of measured rows: sources name a type with how
// it is scaled. Knows no GPU.
#pragma once

#include <optional>
#include <string_view>

#include "engine/units.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::sim {

/// "bf16" and "fp16(fp32 acc)" are bf16: one rate on all tensor cores. "fp8(rowwise)" is fp8, one
/// scale per tensor or row; "fp8(1x128,128x128)" fp8_block. None for other words.
std::optional<workloads::Dtype> operand_type(std::string_view word);

/// What a GPU multiplies operands of this type as: one with microscales has no scales per block of
/// 128, its library makes microscaled operands of them (Transformer Engine, recipe of
/// Float8BlockScaling).
workloads::Dtype multiplied_as(workloads::Dtype, const topology::Architecture&);

/// Of the units that multiply this type; zero where the GPU has none. bf16 stands for both 16-bit
/// types.
FlopsPerSecond peak_of(const topology::GpuSpec&, workloads::Dtype);

}  // namespace stepcast::sim
