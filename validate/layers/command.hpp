// The command `stepcast validate layers`.
#pragma once

#include "sim/command/program.hpp"

namespace stepcast::validate {

extern const sim::Verb layers_verb;
int run_layers(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
