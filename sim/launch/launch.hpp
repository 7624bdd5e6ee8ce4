// How to start a plan with its framework: a resolved scenario as the arguments or the configuration
// file that the framework itself reads. Knows no times, and nothing of data, learning rates and
// checkpoints, which no scenario says.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

struct LaunchFile {
  std::string name;  // "megatron.args", "torchtitan.toml", "fsdp.json", "deepspeed.json"
  std::string text;
  std::string use;  // one line: the command that reads it
};

/// Empty `files` with `why_not` where the framework has no such form or the plan has a part it
/// cannot say.
struct Launch {
  std::vector<LaunchFile> files;
  std::string why_not;
  std::vector<std::string> notes;  // sentences on what the files do not say of the scenario
};

/// Of a training step whose degrees are known.
Launch launch_of(const Scenario& scenario);

/// Writes each file into the folder, which is made where it is missing. Throws OutputError where a
/// file of that name stands there already and says something else.
void write_launch(const Launch& launch, const std::string& folder);

}  // namespace stepcast::sim
