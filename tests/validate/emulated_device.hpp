// The trainer's kernels of a GPU on this processor: the source of the kernels emulated
// (tests/calibrate/emulated_cuda.hpp), memory and products of the host. Ranks may be threads of one
// process: one kernel runs at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "validate/trainer/device/kernels.hpp"

namespace stepcast::validate {

/// Real is Bfloat16 or Half; head_dim 64 or 128, as attention on GPUs has it.
template <class Real>
std::unique_ptr<Kernels<Real>> make_emulated_kernels(std::int64_t sequence, std::int64_t head_dim);

/// What GPU it is from here on: a V100 (sm_70) or, as at first, an H100 (sm_90).
enum class EmulatedGpu : std::uint8_t { v100, h100 };
void emulate(EmulatedGpu gpu);

}  // namespace stepcast::validate
