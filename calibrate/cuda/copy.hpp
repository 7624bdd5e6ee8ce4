// Copies within the GPU's memory and to and from the host's pinned memory, the cost of a launch,
// and doing nothing at all (for idle power).
#pragma once

#include <memory>

#include "calibrate/cuda/task.hpp"

namespace stepcast::calibrate {

/// "memory", "host_to_device", "device_to_host"; "idle": bytes mean nothing, a repetition is 1 ms.
std::unique_ptr<Prepared> make_cuda_copy(CudaContext&, const CopyTask&, std::uint64_t seed);
std::unique_ptr<Prepared> make_cuda_launches(CudaContext&);

}  // namespace stepcast::calibrate
