// stepcast validate run: calibrates what is missing, trains, simulates the same, compares.
#pragma once

#include <string>
#include <vector>

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

extern const sim::Verb run_verb;

/// Returns the exit code: that of a program it runs where one fails, 5 beyond --tolerance.
int command_run(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
