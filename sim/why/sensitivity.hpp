// What a step's length does when one quantity of the machine changes: at once, to first order, by
// the slopes of one backward pass with all of NCCL's choices as they are; and at half and at twice
// as much, simulated anew with NCCL choosing again; and what holds the step back then.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/path/slopes.hpp"
#include "sim/run/session.hpp"
#include "sim/why/logged_step.hpp"

namespace stepcast::sim {

/// Twice as much of a rate brings less than its slope promises: what is in the way then.
struct BindsNext {
  std::string what;   // a parameter's name
  double factor = 1;  // of the rate, from which more of it brings (nearly) nothing
  std::string from;   // the rate there: "504 Gbit/s"
};

struct Sensitivity {
  std::string name, now;
  bool is_rate = true;
  /// d ln step / d ln quantity; none: on both sides NCCL chooses otherwise at once, or other links
  /// become narrow enough to be shared.
  std::optional<double> elasticity;
  std::optional<Duration> at_half, at_twice;  // the step; none: no such machine or plan
  std::optional<BindsNext> next;
  /// Nothing of the three moves the step by a picosecond.
  bool without_effect(Duration step) const;
};

struct Sensitivities {
  std::vector<Sensitivity> rows;    // the largest elasticity first
  std::vector<std::string> frozen;  // "tensor all_gather: ring, simple, 24 channels"
};

Sensitivities sensitivities(const LoggedStep& step, Session& session);

}  // namespace stepcast::sim
