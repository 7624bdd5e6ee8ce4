#include "validate/trainer/device/thread_lanes.hpp"

#include <utility>

#include "engine/check.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

void ThreadLanes::push(Entry entry) {
  Queue& queue = queues_[taken_];
  const std::lock_guard lock(mutex_);
  expects(!stopping_, "lanes that still run");
  queue.entries.push_back(std::move(entry));
  ++left_;
  if (!queue.thread.joinable()) queue.thread = std::thread([this, &queue] { run(queue); });
  if (queue.entries.size() == 1) queue.changed.notify_one();
}

void ThreadLanes::put(std::function<void()> work, bool) {
  push({std::move(work), std::nullopt, std::nullopt});
}

auto ThreadLanes::mark() -> Mark {
  Mark mark = 0;
  {
    const std::lock_guard lock(mutex_);
    mark = static_cast<Mark>(passed_.size());
    passed_.emplace_back();
  }
  push({{}, mark, std::nullopt});
  return mark;
}

void ThreadLanes::wait(Mark mark) { push({{}, std::nullopt, mark}); }

void ThreadLanes::wait_on_host(Mark mark) {
  std::unique_lock lock(mutex_);
  mark_passed_.wait(lock, [&] { return passed_.at(mark) || cause_; });
  if (cause_) std::rethrow_exception(cause_);
}

bool ThreadLanes::ready(const Queue& queue) const {
  if (queue.entries.empty()) return false;
  const auto& awaited = queue.entries.front().awaits;
  return !awaited || passed_.at(*awaited) || cause_;
}

void ThreadLanes::run(Queue& queue) {
  std::unique_lock lock(mutex_);
  for (;;) {
    queue.changed.wait(lock, [&] { return stopping_ || ready(queue); });
    if (stopping_) return;
    Entry entry = std::move(queue.entries.front());
    queue.entries.pop_front();
    if (entry.work && !cause_) {
      lock.unlock();
      try {
        entry.work();
      } catch (...) {
        fail(std::current_exception());
      }
      entry.work = nullptr;  // what it kept goes without the lock
      lock.lock();
    }
    if (entry.passes) pass(*entry.passes);
    if (--left_ == 0) all_done_.notify_all();
  }
}

void ThreadLanes::pass(Mark mark) {
  passed_[mark] = Clock::now();
  mark_passed_.notify_all();
  for (Queue& queue : queues_)
    if (!queue.entries.empty() && queue.entries.front().awaits == mark) queue.changed.notify_one();
}

void ThreadLanes::fail(std::exception_ptr cause) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_) return;
    cause_ = cause;
    for (Queue& queue : queues_) queue.changed.notify_one();
    mark_passed_.notify_all();
  }
  failed_(std::move(cause));
}

void ThreadLanes::synchronize() {
  std::unique_lock lock(mutex_);
  all_done_.wait(lock, [this] { return left_ == 0; });
  if (cause_) std::rethrow_exception(cause_);
}

void ThreadLanes::stop() {
  bool busy = false;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    busy = left_ > 0;
    for (Queue& queue : queues_) queue.changed.notify_one();
  }
  if (busy) fail(std::make_exception_ptr(PeerLost("this rank has ended")));
  for (Queue& queue : queues_)
    if (queue.thread.joinable()) queue.thread.join();
}

void ThreadLanes::start() {
  synchronize();
  const std::lock_guard lock(mutex_);
  passed_.clear();
  start_ = Clock::now();
}

Duration ThreadLanes::time_of(Mark mark) {
  const std::lock_guard lock(mutex_);
  return passed_.at(mark).value() - start_;
}

}  // namespace stepcast::validate
