// The verbs of the command. Each takes the words behind it, prints its result on standard output
// and returns the exit code; mistakes are thrown (UsageError, InputError, NoFeasiblePlan).
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

using Words = std::vector<std::string>;

int command_run(const Words& words, const Catalogue& catalogue);
int command_sweep(const Words& words, const Catalogue& catalogue);
int command_collective(const Words& words, const Catalogue& catalogue);
int command_show(const Words& words, const Catalogue& catalogue);
int command_explain(const Words& words);

/// `calibrate` and `validate` are programs of their own beside this one: stepcast-calibrate,
/// stepcast-validate. Replaces this process.
int command_sister(const std::string& name, const Words& words);

}  // namespace stepcast::sim
