// The part of the CUDA runtime that the trainer's lanes call, on the host: a stream is a thread
// that does its jobs in order, an event remembers when it was passed, device memory is memory.
#include "tests/validate/nccl/emulated_runtime.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

using Clock = std::chrono::steady_clock;

struct CUstream_st {
  CUstream_st() : worker([this] { work(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    worker.join();  // after the last job, as a stream's work goes on when the stream is destroyed
  }

  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex);
    jobs.push_back(std::move(job));
    changed.notify_all();
  }
  bool is_empty() {
    const std::lock_guard lock(mutex);
    return jobs.empty();
  }
  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ending || !jobs.empty(); });
      if (jobs.empty()) return;
      const auto job = jobs.front();  // stays there until it is done
      lock.unlock();
      job();
      lock.lock();
      jobs.pop_front();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  bool ending = false;
  std::thread worker;
};

/// What a stream's jobs keep of an event: it may be destroyed before they are done.
struct Passing {
  std::mutex mutex;
  std::condition_variable changed;
  int recorded = 0, passed = 0;
  Clock::time_point when{};
};

struct CUevent_st {
  std::shared_ptr<Passing> passing = std::make_shared<Passing>();
};

void on_stream(cudaStream_t stream, std::function<void()> job) { stream->add(std::move(job)); }

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return stream->is_empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  int number = 0;
  {
    const std::lock_guard lock(event->passing->mutex);
    number = ++event->passing->recorded;
  }
  stream->add([number, passing = event->passing] {
    const std::lock_guard lock(passing->mutex);
    passing->passed = number;
    passing->when = Clock::now();
    passing->changed.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(event->passing->mutex);
  return event->passing->passed == event->passing->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  int number = 0;
  {
    const std::lock_guard lock(event->passing->mutex);
    number = event->passing->recorded;
  }
  stream->add([number, passing = event->passing] {
    std::unique_lock lock(passing->mutex);
    passing->changed.wait(lock, [&] { return passing->passed >= number; });
  });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(stop->passing->when - start->passing->when).count();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  stream->add([=] { std::memcpy(to, from, size); });
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, std::size_t size) {
  *memory = std::malloc(size);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, std::size_t size) { return cudaMalloc(memory, size); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30U;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an emulated error"; }

}  // extern "C"
