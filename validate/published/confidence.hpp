// The verb `validate confidence`: how often the error bars hold, and the data behind them made
// anew.
#pragma once

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

extern const sim::Verb confidence_verb;

/// Returns the exit code; throws UsageError and InputError.
int run_confidence(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
