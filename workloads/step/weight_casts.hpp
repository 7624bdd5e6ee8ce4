// Weights of a unit under a low-precision recipe: the kernels that quantize them, and when. What
// knows its micro-batches (Megatron's is_first_microbatch) keeps the copies from the first of a
// step to its end; other software quantizes in every forward, sharded parameters and torchao's in
// backward as well.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/pieces/kernel_table.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {

struct WeightCasts {
  std::vector<std::uint32_t> once;  // before the unit's first forward of a step
  std::vector<std::uint32_t> forward, backward;
};

WeightCasts weight_casts(const StepInputs&, KernelTable&, const AlikeLayers& layer);

/// Quantized copies of weights stay from micro-batch to micro-batch.
bool keeps_weight_copies(const StepInputs&);

}  // namespace stepcast::workloads
