#include "calibrate/cuda/copy.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "calibrate/kernels/check.hpp"
#include "calibrate/kernels/random.hpp"

namespace stepcast::calibrate {
namespace {

class CudaCopy final : public CudaTask {
 public:
  CudaCopy(CudaContext& context, const CopyTask& task, std::uint64_t seed)
      : CudaTask(context), task_(task), seed_(seed), size_(task.bytes.value) {
    if (size_ < 4 || size_ % 4 != 0) throw Unsupported("copies are of whole fp32 elements");
    set_footprint(Bytes(2 * size_));
    const Bytes all(num_sets() * size_);
    from_device_ = task.kind != "host_to_device";
    to_device_ = task.kind != "device_to_host";
    if (!from_device_ || !to_device_) pinned_ = allocate_pinned(all);
    if (from_device_) source_ = allocate_device(all);
    if (to_device_) target_ = allocate_device(all);
    for (std::int64_t set = 0; set < num_sets(); ++set) fill(set, seed);
    warm_up();
  }

  double relative_error() override {
    ++seed_;
    fill(0, seed_);
    launch_on(context_.stream.get(), 0);
    CUDA_TRY(cudaStreamSynchronize(context_.stream.get()));
    std::vector<float> arrived(static_cast<std::size_t>(size_ / 4));
    CUDA_TRY(
        cudaMemcpy(arrived.data(), target(0), static_cast<std::size_t>(size_), cudaMemcpyDefault));
    double error = 0;
    for (std::size_t i = 0; i < arrived.size(); i += 1 + arrived.size() / 4096) {
      const double difference = std::abs(static_cast<double>(arrived[i] - random_value(seed_, i)));
      error = std::isnan(difference) ? INFINITY : std::max(error, difference);
    }
    return error;
  }
  double tolerance() const override { return 0; }
  Bytes bytes() const override { return Bytes(from_device_ && to_device_ ? 2 * size_ : size_); }

  void launch_on(cudaStream_t stream, std::int64_t set) override {
    CUDA_TRY(cudaMemcpyAsync(target(set), source(set), static_cast<std::size_t>(size_),
                             cudaMemcpyDefault, stream));
  }

 private:
  std::byte* source(std::int64_t set) const {
    return (from_device_ ? source_.get() : pinned_.get()) + set * size_;
  }
  std::byte* target(std::int64_t set) const {
    return (to_device_ ? target_.get() : pinned_.get()) + set * size_;
  }
  void fill(std::int64_t set, std::uint64_t seed) {
    if (from_device_) {
      fill_random(source(set), Element::fp32, size_ / 4, seed, context_.stream.get());
      return;
    }
    auto* values = reinterpret_cast<float*>(source(set));
    for (std::int64_t i = 0; i < size_ / 4; ++i)
      values[i] = random_value(seed, static_cast<std::uint64_t>(i));
  }

  CopyTask task_;
  std::uint64_t seed_;
  std::int64_t size_;
  bool from_device_ = true, to_device_ = true;
  DeviceMemory source_, target_;
  PinnedMemory pinned_;
};

class CudaLaunches final : public Prepared {
 public:
  explicit CudaLaunches(CudaContext& context) : context_(context) {}
  double relative_error() override { return 0; }
  double tolerance() const override { return 0; }
  Batch run(std::int64_t repetitions, Cache) override {
    Batch batch;
    batch.total = context_.timer.time_launches(repetitions);
    return batch;
  }

 private:
  CudaContext& context_;
};

class Idle final : public Prepared {
 public:
  double relative_error() override { return 0; }
  double tolerance() const override { return 0; }
  Batch run(std::int64_t repetitions, Cache) override {
    const auto slept = std::chrono::milliseconds(repetitions);
    std::this_thread::sleep_for(slept);
    return {.total = std::chrono::duration_cast<Duration>(slept)};
  }
};

}  // namespace

std::unique_ptr<Prepared> make_cuda_copy(CudaContext& context, const CopyTask& task,
                                         std::uint64_t seed) {
  if (task.kind == "idle") return std::make_unique<Idle>();
  if (task.kind != "memory" && task.kind != "host_to_device" && task.kind != "device_to_host")
    throw Unsupported("no such copy: " + task.kind);
  return std::make_unique<CudaCopy>(context, task, seed);
}

std::unique_ptr<Prepared> make_cuda_launches(CudaContext& context) {
  return std::make_unique<CudaLaunches>(context);
}

}  // namespace stepcast::calibrate
