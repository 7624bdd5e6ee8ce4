// A rank's GPU: which one, what it is, and its NCCL groups. Part of stepcast-trainer where it is
// built with CUDA and NCCL.
#pragma once

#include <cstdint>
#include <optional>

#include "validate/trainer/device/rank_device.hpp"

namespace stepcast::validate {

/// That this process sees; 0 without a driver.
std::int64_t num_gpus();

/// `most`: GPUs of a node that are used; more ranks than that share them, each as a host of its own
/// over loopback sockets (a functional check). None: each rank must have its own.
GpuMakers gpu_makers(std::optional<std::int64_t> most);

}  // namespace stepcast::validate
