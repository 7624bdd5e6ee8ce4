// A script around a launch: where the nodes meet, the environment, the command. Knows no cluster
// but the scenario's.
#pragma once

#include <string>
#include <string_view>

#include "sim/launch/launch.hpp"

namespace stepcast::sim {

/// Kinds of --job.
inline constexpr const char* job_kinds = "slurm|torchrun";

struct JobRequest {
  std::string kind;                    // of job_kinds
  std::string time{};                  // as Slurm has it, "4:00:00"; empty: nobody says
  std::string time_source{};           // where it is from, for whoever reads the script
  std::string partition{}, account{};  // empty: the cluster's own
};

/// "job.sbatch" or "run.sh"; `launch` has files, one with a command. Arguments of whoever starts it
/// (data, learning rate, checkpoints) go behind those of the launch.
LaunchFile job_script(const Launch& launch, const Scenario& scenario, const JobRequest& job);

/// Whether a file of it says the command that starts it.
bool has_command(const Launch& launch);

/// Whether Slurm reads it as a time: "90" minutes, "90:00", "4:00:00", "1-4", "1-4:30",
/// "1-4:30:00".
bool is_slurm_time(std::string_view text);

/// "1-04:30:00": so many seconds, up to the next minute, as Slurm has it.
std::string slurm_time(double seconds);

}  // namespace stepcast::sim
