// Who wants to see a run's last step kernel by kernel and transfer by transfer. Knows no names:
// works and transfers are indexes into the System's tables.
#pragma once

#include <cstdint>

#include "engine/units.hpp"

namespace stepcast::engine {

class TimelineSink {
 public:
  virtual ~TimelineSink() = default;
  /// A run begins: what came before is void (run() may need a longer one).
  virtual void start() = 0;
  virtual void work(std::uint32_t rank, std::uint8_t lane, std::uint32_t work, Time from,
                    Time to) = 0;
  /// One member's part: it arrived, the last member came at `started`. `transfer` is
  /// Instruction::arg.
  virtual void transfer(std::uint32_t rank, std::uint8_t lane, std::uint32_t transfer, Time arrived,
                        Time started, Time ended) = 0;

  // Of every step, in order, for who asks what decided an instant (step_log.hpp).

  /// The lane has its next instruction behind it and stands at `clock`.
  virtual void passed(std::uint32_t, std::uint8_t, Time) {}
  /// The host thread enters its next epoch (what it launches until it waits) at `when`.
  virtual void host(std::uint32_t, Time) {}
  /// Beside the kernel that is next to pass on the compute lane, the state of System::stretch is
  /// `state` from `when` on; 0 at first.
  virtual void beside(std::uint32_t, Time, std::uint32_t) {}
};

}  // namespace stepcast::engine
