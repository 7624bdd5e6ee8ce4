// Calls of CUDA's libraries that must succeed: what fails becomes an InputError that names the call
// and its place, since it is the machine's fault and not ours. Include it after the library's own
// header.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "engine/check.hpp"

namespace stepcast::calibrate {

[[noreturn]] inline void cuda_failed(const char* file, int line, const char* call,
                                     const std::string& why) {
  throw InputError(std::string(file) + ":" + std::to_string(line), std::string(call) + ": " + why,
                   "see nvidia-smi and the driver's log");
}

}  // namespace stepcast::calibrate

#define CUDA_TRY(call)                                                        \
  do {                                                                        \
    const cudaError_t result_of_call = (call);                                \
    if (result_of_call != cudaSuccess)                                        \
      ::stepcast::calibrate::cuda_failed(__FILE__, __LINE__, #call,           \
                                         cudaGetErrorString(result_of_call)); \
  } while (false)

#define CUBLAS_TRY(call)                                                           \
  do {                                                                             \
    const cublasStatus_t result_of_call = (call);                                  \
    if (result_of_call != CUBLAS_STATUS_SUCCESS)                                   \
      ::stepcast::calibrate::cuda_failed(__FILE__, __LINE__, #call,                \
                                         cublasLtGetStatusString(result_of_call)); \
  } while (false)

#define NCCL_TRY(call)                                                        \
  do {                                                                        \
    const ncclResult_t result_of_call = (call);                               \
    if (result_of_call != ncclSuccess)                                        \
      ::stepcast::calibrate::cuda_failed(__FILE__, __LINE__, #call,           \
                                         ncclGetErrorString(result_of_call)); \
  } while (false)
