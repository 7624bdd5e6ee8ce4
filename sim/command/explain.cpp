#include "sim/files/printable.hpp"
#include "sim/told/metrics.hpp"

#include <cstdio>

#include "sim/command/commands.hpp"
#include "sim/files/toml_table.hpp"

namespace stepcast::sim {
namespace {

int explain(const Arguments& arguments, const Catalogue&) {
  std::vector<std::string> known;
  for (const Metric& one : explanations()) known.emplace_back(one.key);
  if (arguments.positional().empty()) throw UsageError("which metric?", suggestion("", known));
  const std::string& key = arguments.positional()[0];
  const Metric* found = find_explanation(key);
  if (found == nullptr) throw UsageError("unknown metric '" + key + "'", suggestion(key, known));
  tell(stdout, explanation_text(*found));
  return exit_ok;
}

const char* metrics_text() {
  static const std::string text = [] {
    std::string out = "\nmetrics:\n";
    for (const Metric& one : explanations()) out += "  " + std::string(one.key) + "\n";
    return out;
  }();
  return text.c_str();
}

}  // namespace

Command explain_command() {
  return {{"stepcast explain",
           "METRIC",
           1,
           "Says what a reported number means.",
           {},
           "stepcast explain mfu",
           metrics_text()},
          explain};
}

}  // namespace stepcast::sim
