#include "validate/trainer/device/cuda_lanes.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "calibrate/kernels/check.hpp"
#include "engine/check.hpp"
#include "sim/program/exit_codes.hpp"
#include "validate/trainer/ranks/communicator.hpp"
#include "validate/trainer/ranks/process.hpp"

namespace stepcast::validate {
namespace {

using Clock = std::chrono::steady_clock;
using workloads::Lane;

/// Beyond the patience, before the process is ended: what throws PeerLost is to come first.
const Duration last_resort = to_duration(15.0);
constexpr auto watch_every = std::chrono::milliseconds(20);
/// A step ends in many milliseconds; the core is left to NCCL's own threads meanwhile.
constexpr auto look_every = std::chrono::microseconds(20);

/// Collectives go first where both could run: compute fills what they leave, and is not held up by
/// a peer. Without priorities (0, 0) all are alike.
calibrate::Stream stream_for(std::size_t lane) {
  int least = 0, greatest = 0;
  CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const bool computes = lane == workloads::compute || lane == workloads::copy_lane;
  cudaStream_t stream = nullptr;
  CUDA_TRY(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, computes ? least : greatest));
  return calibrate::Stream(stream);
}

/// Whether what was put before it is done; a GPU that failed is the machine's fault.
bool is_done(cudaError_t result) {
  if (result == cudaErrorNotReady) {
    cudaGetLastError();  // not sticky, but a later launch check would see it
    return false;
  }
  CUDA_TRY(result);
  return true;
}

}  // namespace

CudaLanes::CudaLanes(std::int64_t rank, Duration patience)
    : rank_(rank),
      patience_(patience),
      base_(calibrate::make_event()),
      overdue_(patience + last_resort, sim::exit_rank_lost) {
  overdue_.rank = static_cast<int>(rank);
  for (std::size_t lane = 0; lane < streams_.size(); ++lane) streams_[lane] = stream_for(lane);
}

void CudaLanes::set_watch(std::function<void()> watch, std::function<void()> give_up) {
  watch_ = std::move(watch);
  give_up_ = std::move(give_up);
}

void CudaLanes::take(Lane lane) {
  lane_ = lane;
  overdue_.touch();
}

CudaLanes::Mark CudaLanes::mark() {
  overdue_.begin("the work of its GPU");  // until the lanes are empty
  if (used_ == events_.size()) events_.push_back(calibrate::make_event());
  CUDA_TRY(cudaEventRecord(events_[used_].get(), stream()));
  return static_cast<Mark>(used_++);
}

void CudaLanes::wait(Mark mark) {
  overdue_.touch();
  expects(mark < used_, "a mark of this step");
  CUDA_TRY(cudaStreamWaitEvent(stream(), events_[mark].get(), 0));
}

bool CudaLanes::is_empty() const {
  for (const auto& stream : streams_)
    if (!is_done(cudaStreamQuery(stream.get()))) return false;
  return true;
}

/// Marks that are passed are a sign of life: a long step is no hanging one.
void CudaLanes::synchronize() {
  const std::chrono::duration<double> patience(seconds(patience_));
  std::size_t passed = 0;
  Clock::time_point alive = Clock::now(), watched = alive;
  while (!is_empty()) {
    const Clock::time_point now = Clock::now();
    if (now - watched >= watch_every) {
      watched = now;
      overdue_.touch();
      if (watch_) watch_();
      while (passed < used_ && is_done(cudaEventQuery(events_[passed].get()))) {
        ++passed;
        alive = now;
      }
      if (now - alive >= patience) {
        if (give_up_) give_up_();
        throw PeerLost(fmt::format("rank {} waited {:.0f} s for its peers on its GPU", rank_,
                                   patience.count()));
      }
    }
    std::this_thread::sleep_for(look_every);
  }
  overdue_.end();
}

void CudaLanes::start() {
  synchronize();
  used_ = 0;
  CUDA_TRY(cudaEventRecord(base_.get(), streams_[workloads::compute].get()));
  for (const auto& stream : streams_)  // no mark before it
    CUDA_TRY(cudaStreamWaitEvent(stream.get(), base_.get(), 0));
}

Duration CudaLanes::time_of(Mark mark) {
  expects(mark < used_, "a mark of this step");
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, base_.get(), events_[mark].get()));
  return to_duration(static_cast<double>(milliseconds) * 1e-3);
}

}  // namespace stepcast::validate
