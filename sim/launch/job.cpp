#include "sim/launch/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

/// The command of a launch, in words.
struct Command {
  std::string environment;  // NAME=value before it, a line each
  std::string program;      // torchrun's or accelerate's own words left out
  bool accelerate = false;
};

auto file_with_command(const Launch& launch) {
  return std::ranges::find_if(launch.files, [](const LaunchFile& file) {
    return file.use.find("torchrun ") != std::string::npos ||
           file.use.find("accelerate launch ") != std::string::npos;
  });
}

Command command_of(const Launch& launch, const Scenario& s) {
  const auto main = file_with_command(launch);
  expects(main != launch.files.end(), "a launch with a command");
  Command out;
  std::string_view rest = main->use;
  while (!rest.starts_with("torchrun ") && !rest.starts_with("accelerate ")) {
    const std::size_t end = rest.find(' ');
    out.environment += "export " + std::string(rest.substr(0, end)) + "\n";
    rest.remove_prefix(end + 1);
  }
  out.accelerate = rest.starts_with("accelerate ");
  const std::string own = out.accelerate ? "accelerate launch "
                                         : fmt::format("torchrun --nnodes {} --nproc-per-node {} ",
                                                       s.nodes, s.gpus / s.nodes);
  expects(rest.starts_with(own), "a launch whose command is of this machine");
  out.program = rest.substr(own.size());
  return out;
}

/// What the scenario says of a process's environment.
std::string environment_of(const Scenario& s) {
  std::string out;
  if (s.software.memory.expandable)
    out += "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n";
  for (const NcclVariable& variable : s.nccl_variables)
    out += fmt::format("export {}={}\n", variable.name, variable.value);
  return out;
}

/// Under Slurm a node's number is known to its task alone: single quotes keep it for that shell.
std::string started(const Command& command, const Scenario& s, bool slurm) {
  const std::string rank = slurm ? "$SLURM_NODEID" : "$NODE_RANK";
  if (command.accelerate)
    return fmt::format(
        "accelerate launch --num_machines {} --machine_rank {} --main_process_ip $MASTER_ADDR "
        "--main_process_port $MASTER_PORT {}",
        s.nodes, rank, command.program);
  return fmt::format(
      "torchrun --nnodes {} --nproc-per-node {} --node-rank {} --master-addr $MASTER_ADDR "
      "--master-port $MASTER_PORT {}",
      s.nodes, s.gpus / s.nodes, rank, command.program);
}

/// A line of Slurm's below a remark; without a value it stays a comment, for the user to fill in.
std::string sbatch_line(std::string_view name, std::string_view value, std::string_view remark) {
  const std::string because = remark.empty() ? "" : fmt::format("# {}\n", remark);
  return fmt::format("{}{}SBATCH --{}={}\n", because, value.empty() ? "##" : "#", name, value);
}

std::string slurm_script(const Command& command, const Scenario& s, const JobRequest& job) {
  const bool says_time = !job.time.empty();
  return fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name=stepcast-plan\n"
      "#SBATCH --nodes={}\n"
      "#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --gpus-per-node={}\n"
      "#SBATCH --exclusive\n"
      "{}{}{}"
      "# sbatch job.sbatch [your own arguments: data, learning rate, checkpoints]\n"
      "set -euo pipefail\n"
      "export MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
      "export MASTER_PORT=${{MASTER_PORT:-29500}}\n"
      "{}{}"
      "srun --kill-on-bad-exit=1 bash -c '{} \"$@\"' job \"$@\"\n",
      s.nodes, s.gpus / s.nodes,
      sbatch_line("time", job.time, says_time ? job.time_source : "not known: give --job-time"),
      sbatch_line("partition", job.partition,
                  job.partition.empty() ? "not known: give --job-partition" : ""),
      job.account.empty() ? "" : sbatch_line("account", job.account, ""), command.environment,
      environment_of(s), started(command, s, true));
}

std::string torchrun_script(const Command& command, const Scenario& s) {
  return fmt::format(
      "#!/bin/bash\n"
      "# On every node: NODE_RANK=0 MASTER_ADDR=first-node ./run.sh [your own arguments]\n"
      "set -euo pipefail\n"
      "export NODE_RANK=${{NODE_RANK:-0}}\n"
      "export MASTER_ADDR=${{MASTER_ADDR:-localhost}}\n"
      "export MASTER_PORT=${{MASTER_PORT:-29500}}\n"
      "{}{}"
      "{} \"$@\"\n",
      command.environment, environment_of(s), started(command, s, false));
}

}  // namespace

bool has_command(const Launch& launch) { return file_with_command(launch) != launch.files.end(); }

bool is_slurm_time(std::string_view text) {
  const std::size_t dash = text.find('-');
  const bool days = dash != std::string_view::npos;
  std::string_view clock = text;
  const auto is_number = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (days) {
    if (!is_number(text.substr(0, dash))) return false;
    clock = text.substr(dash + 1);
  }
  constexpr int most_parts = 3;  // hours, minutes, seconds
  for (int parts = 1; parts <= most_parts; ++parts) {
    const std::size_t colon = clock.find(':');
    if (!is_number(clock.substr(0, colon))) return false;
    if (colon == std::string_view::npos) return true;
    clock = clock.substr(colon + 1);
  }
  return false;
}

std::string slurm_time(double seconds) {
  const auto minutes = static_cast<std::int64_t>(std::ceil(seconds / 60));
  constexpr std::int64_t day = 24 * 60;
  const std::string clock = fmt::format("{:02}:{:02}:00", minutes % day / 60, minutes % 60);
  return minutes < day ? clock : fmt::format("{}-{}", minutes / day, clock);
}

LaunchFile job_script(const Launch& launch, const Scenario& s, const JobRequest& job) {
  const Command command = command_of(launch, s);
  if (job.kind == "slurm")
    return {"job.sbatch", slurm_script(command, s, job), "sbatch job.sbatch"};
  return {"run.sh", torchrun_script(command, s), "bash run.sh, on every node"};
}

}  // namespace stepcast::sim
