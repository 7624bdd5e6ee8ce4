// A device whose lanes really run beside each other, as far as their waits allow: what is called is
// put off until the host waits, then done in an order that is drawn anew. A wait that is missing
// shows as a wrong number. Ranks of one group draw alike, or their collectives would cross.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "tests/validate/rounded_kernels.hpp"
#include "validate/trainer/device/queued_communicator.hpp"
#include "validate/trainer/device/queued_kernels.hpp"
#include "validate/trainer/device/rank_device.hpp"

namespace stepcast::validate {

class DeferredLanes final : public QueueLanes {
 public:
  /// Odd seeds draw an order of the lanes, and a lane does all that it may before the next has its
  /// turn: one runs far ahead of the others. Even ones draw a lane for each piece of work.
  explicit DeferredLanes(std::uint32_t seed) : runs_ahead_(seed % 2 == 1), draw_(seed) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::shuffle(order_, draw_);
  }

  /// Work that waits for another rank (a message) is done when there is no other, in the order of
  /// the calls: a core waits with all its lanes.
  void put(std::function<void()> work, bool waits_for_rank) override {
    queues_[taken_].push_back({std::move(work), 0, waits_for_rank, count_++});
  }

  void take(workloads::Lane lane) override { taken_ = lane; }
  Mark mark() override {
    passed_.push_back(false);
    const auto mark = static_cast<Mark>(passed_.size() - 1);
    put([this, mark] { passed_[mark] = true; }, false);
    return mark;
  }
  void wait(Mark mark) override { queues_[taken_].push_back({{}, mark, false, count_++}); }
  void synchronize() override {
    while (Queue* queue = next()) {
      const Entry entry = std::move(queue->front());
      queue->pop_front();
      if (entry.work) entry.work();
    }
  }
  void start() override {
    synchronize();
    passed_.clear();
  }
  Duration time_of(Mark) override { return {}; }
  bool timing_costs() const override { return true; }

 private:
  struct Entry {
    std::function<void()> work;  // or else
    Mark awaited = 0;
    bool waits_for_rank = false;
    std::int64_t number = 0;
  };
  using Queue = std::deque<Entry>;

  Queue* next() {
    std::vector<Queue*> ready, waiting;
    bool empty = true;
    for (const std::size_t lane : order_) {
      Queue& queue = queues_[lane];
      empty &= queue.empty();
      if (queue.empty()) continue;
      const Entry& first = queue.front();
      if (first.waits_for_rank)
        waiting.push_back(&queue);
      else if (first.work || passed_.at(first.awaited))
        ready.push_back(&queue);
    }
    if (empty) return nullptr;
    if (!ready.empty()) return ready[runs_ahead_ ? 0 : draw_() % ready.size()];
    if (waiting.empty()) throw BrokenPromise("lanes wait for each other in a circle");
    return *std::ranges::min_element(waiting, {},
                                     [](const Queue* queue) { return queue->front().number; });
  }

  std::array<Queue, workloads::num_lanes> queues_;
  std::array<std::size_t, workloads::num_lanes> order_{};
  bool runs_ahead_;
  std::vector<bool> passed_;
  workloads::Lane taken_ = workloads::compute;
  std::int64_t count_ = 0;
  std::mt19937 draw_;
};

/// `processes` stays usable beside it.
template <class Real>
RankDevice<Real> make_deferred_device(const TrainerJob& job, Communicator& processes,
                                      std::unique_ptr<Kernels<Real>> kernels, std::uint32_t seed) {
  auto lanes = std::make_unique<DeferredLanes>(seed);
  RankDevice<Real> device;
  device.groups = make_groups(
      // Ranks of several stages draw differently, and would wait for each other in a circle if a
      // collective came before a message that is to be sent.
      std::make_unique<QueuedCommunicator>(processes.split(0), *lanes, job.plan.pipeline > 1),
      job.plan, job.model.experts.count > 0);
  device.kernels = std::make_unique<QueuedKernels<Real>>(std::move(kernels), *lanes);
  device.lanes = std::move(lanes);
  device.name = "deferred";
  return device;
}

}  // namespace stepcast::validate
