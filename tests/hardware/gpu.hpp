// The GPU that the hardware tests run on: one device for all of them, since making it takes long.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "calibrate/cuda/device.hpp"

namespace stepcast::hardware {

/// Throws InputError where there is none.
inline calibrate::Device& gpu() {
  static const auto device = calibrate::make_cuda_device({});
  return *device;
}

/// Nothing where the GPU cannot do it.
inline std::unique_ptr<calibrate::Prepared> prepared(const calibrate::Task& task) {
  try {
    return gpu().prepare(task, 1);
  } catch (const calibrate::Unsupported& error) {
    std::printf("left out: %s: %s\n", calibrate::to_text(task).c_str(), error.what());
    return nullptr;
  }
}

}  // namespace stepcast::hardware
