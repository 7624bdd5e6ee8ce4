// Stages of a pipeline that need not go as fast as they can: by how much their tensor cores may
// slow down at the same step, and what that saves. Found by simulating, not read off the critical
// path.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/run/session.hpp"
#include "sim/why/logged_step.hpp"

namespace stepcast::sim {

struct StageSlack {
  std::int64_t stage = 0;
  Duration slack{};       // its kernels on tensor cores may take that much longer in a step, alone
  bool at_least = false;  // they may take longer still; the law of clocks ends there
  double pace = 1.0;      // of those kernels, all stages at theirs
  Hertz clock{};          // that gives it
  Watts now{}, then{};    // of one GPU, mean over the step
};

struct PipelineSlack {
  std::vector<StageSlack> stages;
  Duration step{}, slowed{};  // now, and with every stage at its pace
  double saved = 0.0;         // of the GPUs' energy
};

/// The step may become so much longer and counts as the same.
inline constexpr double same_step = 0.001;

/// Clocks per stage as Perseus sets them (arXiv 2312.06902), two for the step: the usual one in the
/// first and the last micro-batch, which fill and drain the pipeline, and a lower one between. The
/// lowest of each stage alone, then all moved back towards the usual clock alike until the step is
/// the same. How
/// rate and power follow the clock: power_law.hpp, of low confidence. Empty without a pipeline, and
/// where a part's clock is not known (export versions).
PipelineSlack pipeline_slack(const LoggedStep& step, Session& session);
/// The same of a step that was not logged.
PipelineSlack pipeline_slack(const Scenario& scenario, Session& session);

}  // namespace stepcast::sim
