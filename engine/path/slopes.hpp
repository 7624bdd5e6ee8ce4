// How much longer a run's last step gets per unit of every number of its System: derivatives from
// one pass backwards through a log, exact where no two causes of an instant tie.
//
// An instant that is the latest of others has their derivative. A kernel's end has its begin's plus
// its duration's. A transfer that moves B bytes at rates r_1 .. r_n between t_0 < .. < t_n ends at
//   dt_n = (dB - sum_k dr_k (t_k - t_k-1) + r_1 dt_0 - sum_k<n (r_k - r_k+1) dt_k) / r_n,
// and t_k are starts and ends of others: the path splits, with weights that sum to 1. The same for
// a kernel that a communication beside it slows. Rates depend on caps, capacities and weights as
// max-min fairness has it (max_min.hpp). Which link holds whom, and who comes last, stays as it is.
#pragma once

#include <vector>

#include "engine/path/step_log.hpp"

namespace stepcast::engine {

/// In seconds of the step per unit of ...
struct Slopes {
  std::vector<double> works;                 // Work::duration, s
  std::vector<double> stretch;               // System::stretch
  std::vector<double> host_costs;            // s
  std::vector<double> bytes, caps;           // Transfer::bytes and cap, B and B/s
  std::vector<double> capacities;            // System::link_capacity, B/s
  std::vector<std::vector<double>> weights;  // [communicator][load]
};

Slopes slopes(const StepLog& log);

/// What `changed`, a system of the same make, adds to the step in first order.
double first_order(const Slopes& slopes, const System& system, const System& changed);

}  // namespace stepcast::engine
