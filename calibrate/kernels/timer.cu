#include <algorithm>
#include <chrono>

#include "calibrate/kernels/check.hpp"
#include "calibrate/kernels/timer.hpp"

namespace stepcast::calibrate {
namespace {

/// Launches queued behind one waiting kernel. A stream takes 1,024 before launching blocks the host
/// (and the host must not block before it has released them); no task of ours needs 8 kernels.
constexpr std::int64_t queued_at_once = 100;
/// After that long the waiting kernel ends by itself: a host that never comes must not hang a GPU.
constexpr long long longest_wait_ns = 10'000'000'000;

__device__ long long nanoseconds() {
  long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void wait_for_release(volatile int* word) {
  const long long start = nanoseconds();
  while (word[0] == 0) {
    if (nanoseconds() - start > longest_wait_ns) {
      word[1] = 1;
      return;
    }
  }
}

__global__ void do_nothing() {}

Duration since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
}

}  // namespace

CudaTimer::CudaTimer(cudaStream_t stream)
    : stream_(stream),
      start_(make_event()),
      stop_(make_event()),
      word_(allocate_pinned(Bytes(2 * sizeof(int)))) {
  // Both kernels are loaded here, and not while one of them waits.
  hold_back();
  release();
  do_nothing<<<1, 1, 0, stream_>>>();
  CUDA_TRY(cudaGetLastError());
  CUDA_TRY(cudaStreamSynchronize(stream_));
}

void CudaTimer::hold_back() {
  auto* word = reinterpret_cast<volatile int*>(word_.get());
  word[0] = 0;
  word[1] = 0;
  wait_for_release<<<1, 1, 0, stream_>>>(word);
  CUDA_TRY(cudaGetLastError());
}

void CudaTimer::release() { *reinterpret_cast<volatile int*>(word_.get()) = 1; }

Duration CudaTimer::time(std::int64_t repetitions, const std::function<void(std::int64_t)>& launch,
                         const std::function<void()>& meanwhile) {
  Duration total{};
  for (std::int64_t first = 0; first < repetitions; first += queued_at_once) {
    const std::int64_t end = std::min(repetitions, first + queued_at_once);
    hold_back();
    try {
      CUDA_TRY(cudaEventRecord(start_.get(), stream_));
      for (std::int64_t i = first; i < end; ++i) launch(i);
      CUDA_TRY(cudaEventRecord(stop_.get(), stream_));
    } catch (...) {
      release();
      cudaStreamSynchronize(stream_);  // its word must not change under the waiting kernel
      throw;
    }
    release();
    if (end == repetitions) meanwhile();
    CUDA_TRY(cudaEventSynchronize(stop_.get()));
    if (reinterpret_cast<volatile int*>(word_.get())[1] != 0)
      throw InputError("timing", "the host took more than 10 s to queue 100 kernels",
                       "is this machine overloaded?");
    float milliseconds = 0;
    CUDA_TRY(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()));
    total += to_duration(static_cast<double>(milliseconds) * 1e-3);
  }
  return total;
}

Duration CudaTimer::time_launches(std::int64_t repetitions) {
  Duration total{};
  for (std::int64_t first = 0; first < repetitions; first += queued_at_once) {
    const std::int64_t end = std::min(repetitions, first + queued_at_once);
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = first; i < end; ++i) do_nothing<<<1, 1, 0, stream_>>>();
    total += since(start);
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaStreamSynchronize(stream_));
  }
  return total;
}

}  // namespace stepcast::calibrate
