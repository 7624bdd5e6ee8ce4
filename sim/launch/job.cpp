#include "sim/launch/job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

/// The command of a launch, in words.
struct Command {
  std::string environment;  // NAME=value before it, a line each
  std::string program;      // torchrun's or accelerate's own words left out
  bool accelerate = false;
};

Command command_of(const Launch& launch, const Scenario& s) {
  const auto main = std::ranges::find_if(launch.files, [](const LaunchFile& file) {
    return file.use.find("torchrun ") != std::string::npos ||
           file.use.find("accelerate launch ") != std::string::npos;
  });
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

std::string slurm_script(const Command& command, const Scenario& s) {
  return fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name=stepcast-plan\n"
      "#SBATCH --nodes={}\n"
      "#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --gpus-per-node={}\n"
      "#SBATCH --exclusive\n"
      "# sbatch job.sbatch [your own arguments: data, learning rate, checkpoints]\n"
      "set -euo pipefail\n"
      "export MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
      "export MASTER_PORT=${{MASTER_PORT:-29500}}\n"
      "{}{}"
      "srun --kill-on-bad-exit=1 bash -c '{} \"$@\"' job \"$@\"\n",
      s.nodes, s.gpus / s.nodes, command.environment, environment_of(s), started(command, s, true));
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

LaunchFile job_script(const Launch& launch, const Scenario& s, std::string_view kind) {
  const Command command = command_of(launch, s);
  if (kind == "slurm") return {"job.sbatch", slurm_script(command, s), "sbatch job.sbatch"};
  return {"run.sh", torchrun_script(command, s), "bash run.sh, on every node"};
}

}  // namespace stepcast::sim
