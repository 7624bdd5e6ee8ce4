// The lanes of a rank's device (workloads::Lane), as the host thread fills them: what is called
// runs on the lane that was taken last, in order there, beside what runs on the others. CUDA
// streams and events on a GPU, threads on a host (thread_lanes.hpp); a processor core alone does
// everything at once, so that nothing is left to wait for.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/units.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::validate {

class Lanes {
 public:
  /// Where a lane had come to when mark() was called.
  using Mark = std::uint32_t;

  virtual ~Lanes() = default;

  /// What is called from here on runs there.
  virtual void take(workloads::Lane lane) = 0;
  /// Of all that was put on the taken lane so far. Marks are good until the next start().
  virtual Mark mark() = 0;
  /// The taken lane goes on when the mark is passed.
  virtual void wait(Mark mark) = 0;
  /// The host goes on when the mark is passed, whatever else is left to do.
  virtual void wait_on_host(Mark /*mark*/) { synchronize(); }
  /// The host goes on when all lanes are empty. Throws PeerLost where they do not become so.
  virtual void synchronize() = 0;
  /// Before the memory that the lanes work on goes: nothing runs any more, what is not done is left
  /// out.
  virtual void stop() {}

  /// A step begins: earlier marks are forgotten, and times count from here.
  virtual void start() = 0;
  /// When the mark was passed, since start(); after synchronize().
  virtual Duration time_of(Mark mark) = 0;
  /// Timing delays the work itself: not every step is to be timed.
  virtual bool timing_costs() const = 0;
};

/// This core, one thing after the other.
std::unique_ptr<Lanes> make_host_lanes();

}  // namespace stepcast::validate
