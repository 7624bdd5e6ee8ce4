// The verb `diagnose`: of files, why a run is slower than expected; without any, how often that is
// right (`stepcast-validate diagnose`).
#pragma once

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

extern const sim::Verb diagnose_verb;

/// Returns the exit code; throws UsageError and InputError.
int run_diagnose(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
