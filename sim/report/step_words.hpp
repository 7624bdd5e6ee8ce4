// The phrases of a step's report that more than one form of it says: the cluster, the plan, what an
// error bar is and rests on.
#pragma once

#include <string>

#include "sim/run/step_report.hpp"

namespace stepcast::sim {

/// "2,048 x H100 SXM (256 x DGX H100, rail-optimised, NCCL 2.20)"
std::string cluster_text(const Scenario& scenario);
/// "zero2 64 x tensor 4 x pipeline 8 (1f1b); 1,024 sequences of 4,096 tokens in ..."
std::string plan_text(const Scenario& scenario);
std::string software_text(const Scenario& scenario);
/// "80 %"
std::string level_text(const ErrorBar& bar);
/// "errors of 12 sources (nodes), widened 1.4 x beyond them"
std::string origin_text(const ErrorBar& bar);

}  // namespace stepcast::sim
