// The verb `validate confidence`: how often the error bars hold, and the data behind them made
// anew.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/confidence/evidence.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"
#include "validate/published/coverage.hpp"

namespace stepcast::validate {

extern const sim::Verb confidence_verb;

/// What error bars are of, and how often they hold.
struct Covered {
  std::string_view what;
  std::size_t rows = 0;
  Coverage coverage;
};
/// Of memory, one or none.
std::vector<Covered> covered_memory(const sim::Evidence& evidence, double level);
std::string coverage_text(const Covered& covered);
/// A row a source, and a row a kind of run.
std::string coverage_json(const std::vector<Covered>& all, double level);
/// That --confidence asks for. Throws UsageError.
double level_of(const sim::Arguments& arguments);

/// Returns the exit code; throws UsageError and InputError.
int run_confidence(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
