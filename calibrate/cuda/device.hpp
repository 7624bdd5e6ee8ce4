// A GPU as a device that can be measured, and the GPUs of this and other nodes for collectives. No
// CUDA header is needed to use it.
#pragma once

#include <memory>

#include "calibrate/device/device.hpp"
#include "calibrate/device/worker_team.hpp"

namespace stepcast::calibrate {

struct CudaOptions {
  int gpu = 0;       // measured alone
  TeamOptions team;  // that takes part in collectives
};

/// Throws InputError where there is no GPU.
std::unique_ptr<Device> make_cuda_device(const CudaOptions& options);

}  // namespace stepcast::calibrate
