// A script around a launch: where the nodes meet, the environment, the command. Knows no cluster
// but the scenario's.
#pragma once

#include <string_view>

#include "sim/launch/launch.hpp"

namespace stepcast::sim {

/// Kinds of --job.
inline constexpr const char* job_kinds = "slurm|torchrun";

/// "job.sbatch" or "run.sh"; `launch` has files. Arguments of whoever starts it (data, learning
/// rate, checkpoints) go behind those of the launch.
LaunchFile job_script(const Launch& launch, const Scenario& scenario, std::string_view kind);

}  // namespace stepcast::sim
