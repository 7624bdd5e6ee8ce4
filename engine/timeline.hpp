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
};

}  // namespace stepcast::engine
