// The verb `validate memory`: how often the bars of memory hold, and how often plans fit of which
// that was said to be so likely.
#pragma once

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

extern const sim::Verb memory_verb;

/// Returns the exit code; throws UsageError and InputError.
int run_memory(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
