// The processes between which collectives are measured: stepcast-host-ranks under mpirun, started
// once and told by lines what to do. MPI is theirs alone; this program does not know it.
#pragma once

#include <cstdint>
#include <string>

#include "calibrate/device/device.hpp"
#include "sim/processes/child.hpp"

namespace stepcast::calibrate::host {

/// What mpirun says of its version; empty where there is none.
std::string ranks_library();

class Ranks {
 public:
  /// Starts them. `program` empty: stepcast-host-ranks beside the running program. Throws
  /// Unsupported with the reason where they do not come up within the limit.
  Ranks(std::int64_t count, std::string program, Duration limit);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Relative error of one collective on random floats of this seed.
  double check(const CollectiveTask& task, std::uint64_t seed);
  /// Of all repetitions back to back, by the slowest rank's median.
  Duration time(const CollectiveTask& task, std::int64_t repetitions);

 private:
  double ask(const std::string& question);
  std::string answer();
  void end();

  std::int64_t count_;
  Duration limit_;
  sim::Child mpirun_;
};

}  // namespace stepcast::calibrate::host
