// What a shell completes: verbs, options, and values where the list is known. The shell's own part
// is a few lines that ask the program, so a GPU added to the catalogue is completed as well.
#pragma once

#include <string>
#include <vector>

#include "sim/command/program.hpp"

namespace stepcast::sim {

/// The words that may stand for the last one of `typed`, what is behind the program's name. bash
/// takes "--gpu=h1" for three words, of which the last is completed alone. None: a file is meant.
std::vector<std::string> completions(const Program& program, const std::vector<std::string>& typed,
                                     const Catalogue& catalogue);

/// What the value of an option may be, where the list is known: words of its key, or entries of the
/// catalogue.
std::vector<std::string> values_of_option(const Option& option, const Catalogue& catalogue);

/// For bash to source.
std::string completion_script(const Program& program);

}  // namespace stepcast::sim
