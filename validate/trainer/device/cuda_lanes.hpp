// The lanes of a rank on a GPU: a stream each, events for marks. Part of stepcast-trainer where it
// is built with CUDA.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "calibrate/kernels/memory.hpp"
#include "validate/trainer/device/lanes.hpp"
#include "validate/trainer/ranks/overdue.hpp"

namespace stepcast::validate {

/// Of the GPU that is current when they are made.
class CudaLanes final : public Lanes {
 public:
  /// No mark passed for `patience` while the lanes are waited for: PeerLost. A call of CUDA's that
  /// does not even return ends the process.
  CudaLanes(std::int64_t rank, Duration patience);

  void take(workloads::Lane lane) override;
  Mark mark() override;
  void wait(Mark mark) override;
  void synchronize() override;
  void start() override;
  Duration time_of(Mark mark) override;
  bool timing_costs() const override { return true; }

  /// Of the lane that was taken last.
  cudaStream_t stream() const { return streams_[lane_].get(); }

  /// Asked while the lanes are waited for: throws PeerLost where a peer is known to be gone.
  /// `give_up` is called before this class throws it: what runs for ever is to end.
  void set_watch(std::function<void()> watch, std::function<void()> give_up);

 private:
  bool is_empty() const;

  const std::int64_t rank_;
  const Duration patience_;
  std::array<calibrate::Stream, workloads::num_lanes> streams_;
  workloads::Lane lane_ = workloads::compute;
  calibrate::Event base_;
  std::vector<calibrate::Event> events_;  // the first used_ of them are marks
  std::size_t used_ = 0;
  std::function<void()> watch_, give_up_;
  Overdue overdue_;
};

}  // namespace stepcast::validate
