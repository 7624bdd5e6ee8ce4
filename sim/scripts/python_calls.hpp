// Functions of Python that return a configuration by one call, read as text: what torchtitan calls
// its registry. Nothing is executed.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

/// Of each function its arguments by their path: "training.max_context_length" = "8192",
/// "activation_checkpoint" = "FullAC" of a call FullAC.Config(), "model_spec" = "8B" of a call
/// whose first argument is a text. Later lines (config.training.x = 1) and calls of functions above
/// it in the file are followed; conditions, loops and other statements are left out. Throws
/// InputError at `name`:line where a bracket or quote is never closed.
std::map<std::string, Settings> read_python_calls(std::string_view text, const std::string& name);

}  // namespace stepcast::sim
