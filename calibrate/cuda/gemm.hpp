// Matrix products by cuBLASLt, as a trainer calls it: row-major, fp32 accumulation, the library's
// first proposal or the fastest of eight.
#pragma once

#include <memory>

#include "calibrate/cuda/task.hpp"

namespace stepcast::calibrate {

/// Throws Unsupported where the GPU has not that dtype or cuBLASLt no kernel for the shape.
std::unique_ptr<CudaTask> make_cuda_gemm(CudaContext&, const GemmTask&, std::uint64_t seed);

}  // namespace stepcast::calibrate
