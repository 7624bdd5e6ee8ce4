// The verb `validate trace`.
#pragma once

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

extern const sim::Verb trace_verb;

/// Returns the exit code; throws UsageError and InputError.
int run_trace(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
