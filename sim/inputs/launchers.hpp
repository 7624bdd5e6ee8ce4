// What starts a script's training program: Slurm's head, uv, and programs that train nothing. Knows
// no framework.
#pragma once

#include <string>
#include <string_view>

#include "sim/scripts/settings.hpp"
#include "sim/scripts/shell_text.hpp"

namespace stepcast::sim {

/// "#SBATCH --nodes=4", "#SBATCH --gpus-per-node=8": `nnodes` and `nproc_per_node` as torchrun
/// calls them, those that are said.
Settings slurm_head(std::string_view text);
/// What Slurm sets for such a head: SLURM_NNODES and its like.
ShellVariables slurm_variables(const Settings& head);
/// Adds the head's nodes and processes where the program is told neither, or a number that only a
/// shell knows.
void add_slurm_head(Settings& settings, const Settings& head);

/// `uv run --no-sync python train.py` is `python train.py`.
void leave_out_runner(ShellCommand& command);

/// The Python file or module that a command calls, if it is called after another purpose than
/// training: "tools/checkpoint/convert.py"; empty: it may train.
std::string idle_program(const ShellCommand& command);

}  // namespace stepcast::sim
