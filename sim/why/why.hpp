// Answers `stepcast why`: what a step's length is made of, edge by edge.
#pragma once

#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "sim/why/levers.hpp"
#include "sim/why/named_path.hpp"
#include "sim/why/sensitivity.hpp"
#include "sim/why/slack.hpp"

namespace stepcast::sim {

struct Why {
  StepReport report;  // as `stepcast run` has it, without noise
  NamedPath path;
  Sensitivities slopes;
  std::vector<Lever> levers;
  PipelineSlack slack;
  std::vector<std::string> warnings;
};

/// A chain within so much of the step counts as nearly critical.
inline constexpr double near_tie = 0.01;

/// Throws what Session::step() throws. `timeline`, where one is given: the step from its begin to
/// its end, of ranks that are provably alike the first, with the critical path.
Why why(const Scenario& scenario, Session& session, Timeline* timeline = nullptr);

}  // namespace stepcast::sim
