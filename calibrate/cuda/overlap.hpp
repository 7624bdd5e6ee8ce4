// A kernel and a collective at once on two streams of one GPU: what each costs the other. Part of
// stepcast-nccl-worker; every rank does the same.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/cuda/nccl.hpp"
#include "calibrate/cuda/task.hpp"
#include "calibrate/device/device.hpp"

namespace stepcast::calibrate {

struct OverlapTimes {
  Duration kernel{}, collective{};  // of one
};

class Overlap {
 public:
  /// Both are made ready and outlive this.
  Overlap(CudaTask& kernel, NcclCollective& collective, NcclRank& rank);

  /// Each by itself.
  OverlapTimes alone(std::int64_t repetitions);
  /// The kernels start when the first collective has ended. Throws Unsupported where the
  /// collectives end before the kernels do, or none lies between the kernels' start and end.
  OverlapTimes together(std::int64_t num_kernels, std::int64_t num_collectives);

 private:
  CudaTask& kernel_;
  NcclCollective& collective_;
  NcclRank& rank_;
  Stream stream_;  // of the kernels
};

}  // namespace stepcast::calibrate
