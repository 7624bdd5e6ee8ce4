#include "calibrate/cuda/kernel_task.hpp"

#include "calibrate/cuda/gemm.hpp"

namespace stepcast::calibrate {
namespace {

std::unique_ptr<CudaTask> make(CudaContext& context, const GemmTask& task, std::uint64_t seed) {
  return make_cuda_gemm(context, task, seed);
}
std::unique_ptr<CudaTask> make(CudaContext& context, const AttentionTask& task,
                               std::uint64_t seed) {
  return make_cuda_attention(context, task, seed);
}

}  // namespace

std::unique_ptr<CudaTask> make_cuda_kernel(CudaContext& context, const KernelTask& task,
                                           std::uint64_t seed) {
  return std::visit([&](const auto& kernel) { return make(context, kernel, seed); }, task);
}

}  // namespace stepcast::calibrate
