// A text as people paste it into an issue: prose with configurations, command lines and logs in it,
// fenced or not. Knows no framework: whether a piece is of one is asked of sim/inputs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/inputs/launch_file.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

struct PastedText {
  std::vector<sim::NamedText> configurations;  // of formats that are known, at "issue.md:12"
  std::string others;                          // all lines, those of the configurations empty
};

/// Configurations and command lines are told by their shape: fenced blocks, keys with values, an
/// object of JSON, a command with its arguments, a call of Python with the arguments of a trainer.
PastedText read_pasted(std::string_view text, const std::string& path,
                       const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
