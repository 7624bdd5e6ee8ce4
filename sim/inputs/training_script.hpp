// Scripts of Python that a launcher starts and that say their settings themselves, by literals:
// of transformers' Trainer, TRL, accelerate.
#pragma once

#include <string_view>

#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

/// The setting that has the name of such a script, once it was read.
inline constexpr std::string_view training_script = "@script";

/// Under the names of their command line and configuration; empty where it names no model.
Settings training_script_settings(std::string_view text);

}  // namespace stepcast::sim
