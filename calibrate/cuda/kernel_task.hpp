// Any kernel of the GPU that can run beside a collective.
#pragma once

#include <memory>

#include "calibrate/cuda/task.hpp"
#include "calibrate/device/device.hpp"

namespace stepcast::calibrate {

std::unique_ptr<CudaTask> make_cuda_kernel(CudaContext&, const KernelTask&, std::uint64_t seed);

/// Attention by our own kernels (calibrate/kernels/kernels.hpp), or cuDNN's where it was found.
std::unique_ptr<CudaTask> make_cuda_attention(CudaContext&, const AttentionTask&,
                                              std::uint64_t seed);
std::unique_ptr<CudaTask> make_cuda_elementwise(CudaContext&, const ElementwiseTask&,
                                                std::uint64_t seed);

}  // namespace stepcast::calibrate
