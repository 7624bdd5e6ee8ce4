// The verb `validate goodput`.
#pragma once

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

extern const sim::Verb goodput_verb;

/// Returns the exit code; throws UsageError and InputError.
int run_goodput(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
