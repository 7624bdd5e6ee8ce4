// The command line of Megatron-LM and Megatron-DeepSpeed as the names under which their logs print
// it. Knows no meaning of a name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

struct LaunchArgument {
  std::string name, value;  // "num_layers", "True" of a switch
};

/// Those of a line that begins with one, or that calls a script with them; the last line of a
/// command or not. A shell's variable is no value.
std::vector<LaunchArgument> launch_arguments(std::string_view line);

/// Those of a command's words: an argument of several has them in one text.
std::vector<LaunchArgument> command_arguments(std::span<const std::string> words);

/// What the parser has where nothing is said: megatron/training/arguments.py (000c4ac2) and
/// megatron/arguments.py (00129014) of NVIDIA/Megatron-LM.
void set_usual_arguments(Settings& settings);

}  // namespace stepcast::sim
