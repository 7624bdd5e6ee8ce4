// A device whose times are a formula: what a session does with a device, without one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/device/device.hpp"
#include "calibrate/session/measure.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate {

/// Time that passes by what runs.
struct FakeTime {
  Duration now{};
  Clock clock() {
    return {.now = [this] { return now; }, .wait = [this](Duration d) { now += d; }};
  }
};

/// Products at 1 TFLOP/s, all else at 100 GB/s; hot twice as fast.
class FakePrepared : public Prepared {
 public:
  FakePrepared(FakeTime& time, double flops, Bytes bytes, double error, int& alive)
      : time_(time), flops_(flops), bytes_(bytes), error_(error), alive_(alive) {
    ++alive_;
  }
  ~FakePrepared() override { --alive_; }
  FakePrepared(const FakePrepared&) = delete;
  FakePrepared& operator=(const FakePrepared&) = delete;
  double relative_error() override { return error_; }
  double tolerance() const override { return 1e-2; }
  Batch run(std::int64_t repetitions, Cache cache) override {
    if (fails) throw InputError("NCCL, rank 1", "its process has ended");
    const double once = 1e-6 + flops_ / 1e12 + static_cast<double>(bytes_.value) / 1e11;
    Batch batch;
    batch.total =
        to_duration(once * static_cast<double>(repetitions) * (cache == Cache::hot ? 0.5 : 1.0));
    batch.beside = batch.total * 3;
    batch.throttled = throttled;
    time_.now += batch.total;
    return batch;
  }
  double flops() const override { return flops_; }
  Bytes bytes() const override { return bytes_; }
  bool throttled = false, fails = false;

 private:
  FakeTime& time_;
  double flops_;
  Bytes bytes_;
  double error_;
  int& alive_;
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(FakeTime& time) : time_(time) {}

  DeviceFacts facts() const override {
    return {.name = "NVIDIA H100 80GB HBM3",
            .driver = "580.1",
            .runtime = "CUDA 13.0",
            .gemm_library = "cuBLAS 13.1",
            .collective_library = "2.28.9",
            .clocks = "SM 1980 MHz",
            .ranks = ranks,
            .nodes = 1};
  }
  std::unique_ptr<Prepared> prepare(const Task& task, std::uint64_t seed) override {
    prepared.push_back(to_text(task));
    seeds.push_back(seed);
    if (before) before(task);
    auto made = std::make_unique<FakePrepared>(
        time_, flops_of(task), bytes_of(task),
        to_text(task).find(wrong) == std::string::npos || wrong.empty() ? 1e-3 : 0.5, alive);
    most_alive = std::max(most_alive, alive);
    made->fails = !failing.empty() && to_text(task).find(failing) == 0;
    made->throttled = !throttles.empty() && to_text(task).find(throttles) != std::string::npos;
    return made;
  }
  double watts_of(Prepared&, double) override { return watts; }
  double idle_watts(double) override { return watts / 10; }

  std::int64_t ranks = 1;
  double watts = 650.0;
  bool mute = false;              // does not say what an element-wise kernel moves
  std::string wrong, throttles;   // tasks with this word
  std::string failing;            // tasks that begin with it break while they run
  int alive = 0, most_alive = 0;  // prepared at once
  std::function<void(const Task&)> before;
  std::vector<std::string> prepared;
  std::vector<std::uint64_t> seeds;

 private:
  static double flops_of(const Task& task) {
    if (const auto* a = std::get_if<AttentionTask>(&task))
      return 2.0 * static_cast<double>(a->batch * a->heads * a->head_dim) *
             static_cast<double>(a->sequence) * static_cast<double>(a->sequence);
    const auto* g = std::get_if<GemmTask>(&task);
    return g == nullptr ? 0.0
                        : 2.0 * static_cast<double>(g->m) * static_cast<double>(g->n) *
                              static_cast<double>(g->k);
  }
  Bytes bytes_of(const Task& task) const {
    if (const auto* e = std::get_if<ElementwiseTask>(&task); e != nullptr && !mute)
      return Bytes(6 * e->tokens * e->width);
    if (const auto* c = std::get_if<CopyTask>(&task)) return Bytes(2 * c->bytes.value);
    if (const auto* c = std::get_if<CollectiveTask>(&task)) return c->bytes;
    return {};
  }
  FakeTime& time_;
};

}  // namespace stepcast::calibrate
