#include <cstdio>

#include "sim/command/commands.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/program/command_line.hpp"
#include "sim/report/explain.hpp"

namespace stepcast::sim {

int command_explain(const Words& words) {
  const Verb verb{
      "explain", "METRIC", 1, "Says what a reported number means.", {}, "stepcast explain mfu"};
  const Arguments arguments = parse_arguments(verb, words);
  std::vector<std::string> known;
  for (const Explanation& one : explanations()) known.emplace_back(one.key);
  if (arguments.has("help") || arguments.positional().empty()) {
    std::string text = help_text(verb) + "\nmetrics:\n";
    for (const std::string& key : known) text += "  " + key + "\n";
    std::fputs(text.c_str(), arguments.has("help") ? stdout : stderr);
    return arguments.has("help") ? exit_ok : exit_usage;
  }
  const std::string& key = arguments.positional()[0];
  const Explanation* found = find_explanation(key);
  if (found == nullptr) throw UsageError("unknown metric '" + key + "'", suggestion(key, known));
  std::fputs(explanation_text(*found).c_str(), stdout);
  return exit_ok;
}

}  // namespace stepcast::sim
