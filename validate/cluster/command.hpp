// stepcast validate cluster: builds a scenario's cluster on this machine, measures it, trains in
// it, simulates the same and compares.
#pragma once

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

extern const sim::Verb cluster_verb;

/// Returns the exit code: 77 with a sentence where this machine allows no box, that of a program it
/// runs where one fails, 5 beyond --tolerance.
int command_cluster(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
