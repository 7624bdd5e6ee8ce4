// The manual page of a program, from the same tables as its help.
#pragma once

#include <string>

#include "sim/command/program.hpp"

namespace stepcast::sim {

/// In troff with the man macros, as for section 1.
std::string manual_text(const Program& program);

}  // namespace stepcast::sim
