// What a script of Python says by literals: variables, and the named arguments of calls. For
// scripts whose author has written the settings into the code. Nothing is executed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

struct PythonCall {
  std::string function;  // its last name: "from_pretrained" of AutoModel.from_pretrained
  Settings arguments;    // "0" the first without a name; those alone that are literals
};

/// Calls of these functions, in the order of the text. A name stands for the first literal that it
/// was given above; a call within another is one of its own.
std::vector<PythonCall> python_calls_of(std::string_view text,
                                        const std::vector<std::string>& functions);

}  // namespace stepcast::sim
