// Device time of a batch of launches, without the gaps of launching: the batch is queued behind a
// kernel that waits for the host's word, between two events. Knows no task.
#pragma once

#include <functional>

#include "calibrate/kernels/memory.hpp"

namespace stepcast::calibrate {

class CudaTimer {
 public:
  explicit CudaTimer(cudaStream_t stream);

  /// Time of launch(0) ... launch(repetitions - 1) on the stream; `meanwhile` is called once while
  /// the last of them run. Every launch must have run before: the first launch of a kernel loads
  /// it, and loading waits for the kernel that waits for us.
  Duration time(std::int64_t repetitions, const std::function<void(std::int64_t)>& launch,
                const std::function<void()>& meanwhile);

  /// Host time of queueing empty kernels, each alone in its launch.
  Duration time_launches(std::int64_t repetitions);

 private:
  void hold_back();
  void release();

  cudaStream_t stream_;
  Event start_, stop_;
  PinnedMemory word_;  // two ints: released (host writes), gave up (device writes)
};

}  // namespace stepcast::calibrate
