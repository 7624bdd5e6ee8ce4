// The commands of stepcast-calibrate: what each needs, does and prints.
#pragma once

#include "calibrate/command/arguments.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::calibrate {

/// Returns the exit code. Throws UsageError where the call lacks something.
int run_command(const Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::calibrate
