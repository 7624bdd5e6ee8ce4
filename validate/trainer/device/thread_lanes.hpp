// The lanes of a rank on a host whose collectives run beside compute: a thread for each lane that
// is used, as a GPU has a stream for each.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "validate/trainer/device/queue_lanes.hpp"

namespace stepcast::validate {

class ThreadLanes final : public QueueLanes {
 public:
  /// What a lane's work throws ends the work of all: `failed` hears of it once, on that lane's
  /// thread, and is to wake the lanes that wait for other ranks; synchronize() throws it.
  explicit ThreadLanes(std::function<void(std::exception_ptr)> failed)
      : failed_(std::move(failed)) {}
  ~ThreadLanes() override { stop(); }
  ThreadLanes(const ThreadLanes&) = delete;
  ThreadLanes& operator=(const ThreadLanes&) = delete;

  void put(std::function<void()> work, bool waits_for_rank) override;

  void take(workloads::Lane lane) override { taken_ = lane; }
  Mark mark() override;
  void wait(Mark mark) override;
  void wait_on_host(Mark mark) override;
  void synchronize() override;
  void stop() override;
  void start() override;
  Duration time_of(Mark mark) override;
  bool timing_costs() const override { return false; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::function<void()> work;  // or else
    std::optional<Mark> passes, awaits;
  };
  struct Queue {
    std::deque<Entry> entries;
    std::condition_variable changed;
    std::thread thread;
  };

  void push(Entry entry);
  bool ready(const Queue& queue) const;
  void run(Queue& queue);
  void pass(Mark mark);
  void fail(std::exception_ptr cause);

  const std::function<void(std::exception_ptr)> failed_;
  workloads::Lane taken_ = workloads::compute;  // of the host thread alone

  std::mutex mutex_;  // of what follows
  std::array<Queue, workloads::num_lanes> queues_;
  std::condition_variable all_done_, mark_passed_;
  std::size_t left_ = 0;  // entries that are not done
  std::vector<std::optional<Clock::time_point>> passed_;
  Clock::time_point start_ = Clock::now();
  std::exception_ptr cause_;
  bool stopping_ = false;
};

}  // namespace stepcast::validate
