// What stands beside each other in a comparison or a report: scenarios, and results that were kept.
#pragma once

#include <string>
#include <vector>

#include "sim/compare/comparison.hpp"
#include "sim/compare/runner.hpp"
#include "sim/program/command_line.hpp"

namespace stepcast::sim {

/// A folder that --out wrote, or JSON that is no configuration of a framework.
bool is_kept_result(const std::string& path);

/// A result; of a folder that --out wrote with the scenario that it was. Throws InputError.
Asked result_side(const std::string& path, const std::string& name, const Catalogue& catalogue);

/// A scenario under the options of `verb` as one side, or as many as its [sweep] has points; an
/// empty `file` is what the options say. Throws InputError.
void add_document_of(std::vector<Asked>& out, const Verb& verb, const Arguments& arguments,
                     const Catalogue& catalogue, const std::string& file, const std::string& name);

/// What `stepcast compare` is asked for. Throws InputError, and UsageError where that is nothing.
Comparison compare_asked(const Arguments& arguments, const Catalogue& catalogue, Runner& runner);

}  // namespace stepcast::sim
