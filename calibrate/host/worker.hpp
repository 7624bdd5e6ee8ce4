// One busy rank: a thread's own buffers, large enough to rotate through, and the running of a task
// in them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "calibrate/host/task.hpp"
#include "engine/units.hpp"

namespace stepcast::calibrate::host {

/// Floats in [-1, 1], made when first asked for; pages that nobody asked for cost nothing.
class Arena {
 public:
  std::span<float> first(std::size_t count);

 private:
  std::unique_ptr<float[]> floats_;
  std::size_t capacity_ = 0, filled_ = 0;
};

class Worker {
 public:
  Worker(const HostTask& task, Arena& inputs, Arena& outputs, Bytes cold_span);
  /// Another repetition, in the next of the sets or always in the first.
  void run_once(Cache cache);
  std::size_t sets() const { return sets_; }

 private:
  const HostTask& task_;
  std::size_t sets_ = 1, next_ = 0;
  std::size_t in_stride_ = 0, out_stride_ = 0;
  std::span<float> in_, out_;
};

/// Threads that run a task over and over while somebody else is timed.
class Companions {
 public:
  Companions(const HostTask& task, std::span<std::unique_ptr<Arena>> arenas, Bytes cold_span);
  ~Companions();
  Companions(const Companions&) = delete;
  Companions& operator=(const Companions&) = delete;
  /// Returns when all of them run.
  void start(Cache cache);
  void stop();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace stepcast::calibrate::host
