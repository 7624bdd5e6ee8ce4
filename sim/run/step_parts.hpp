// What of a bound step does not depend on who meets whom: times of its kernels, how they suffer,
// what its roles do. For step_system.hpp and folded_step.hpp.
#pragma once

#include <vector>

#include "sim/run/step_system.hpp"
#include "sim/run/step_transfers.hpp"

namespace stepcast::sim {

class StepParts {
 public:
  /// All are borrowed. Collectives that wait for SMs are told so.
  StepParts(const Scenario&, const workloads::StepProgram&, const KernelModel&, StepTransfers&);

  const std::vector<RoleCalls>& calls() const { return calls_; }
  /// Fills in all but groups, transfers and links, once transfers count by flow.
  void finish(StepSystem&) const;

 private:
  const Scenario& scenario_;
  const workloads::StepProgram& program_;
  StepTransfers& transfers_;
  std::vector<RoleCalls> calls_;
  std::vector<KernelTime> times_;
};

}  // namespace stepcast::sim
