// A bash script read as text: variables, arrays and sums of literals put in, conditions on them
// decided, here-documents apart. Nothing of it is executed, and no file or environment is looked
// at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepcast::sim {

struct ShellCommand {
  std::vector<std::string>
      words;  // without quotes; what needs the shell stays: "$1", "$(hostname)"
  std::vector<std::pair<std::string, std::string>> environment;  // NAME=value before it
  std::string input;   // of its here-document, or behind <<<
  std::string output;  // file that it goes to by '>'
  int line = 0;
};

using ShellVariables = std::map<std::string, std::vector<std::string>>;  // an array has several

struct ShellText {
  std::vector<ShellCommand> commands;  // in their order, of branches that are taken
  ShellVariables variables;            // at the end
  std::vector<std::string> notes;      // conditions that only a machine can decide
};

/// Throws InputError at `name`:line where a quote or bracket is open at the end, or the text is
/// nested or repeated beyond reason. `variables` are set before it begins.
ShellText read_shell(std::string_view text, const std::string& name, ShellVariables variables = {});

/// A sum, product, quotient of whole numbers: "8 * 2048", "(1024*2)+1". None: it is no such.
std::optional<std::int64_t> arithmetic(std::string_view text);

}  // namespace stepcast::sim
