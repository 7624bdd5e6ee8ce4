// The command line: verbs, their options, and what they mean as keys of a scenario. Wraps
// Boost.Program_options, without prefix guessing and with messages and suggestions of our own.
#pragma once

#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/program/exit_codes.hpp"

namespace stepcast::sim {

/// A command line that means nothing: exit code 2.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(std::string problem, std::string hint = {});
  const std::string& problem() const { return problem_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string problem_, hint_;
};

struct Option {
  const char* name;      // "local-batch"
  const char* argument;  // "N"; empty: a switch
  const char* key;       // the scenario key that it sets, "batch.local"; empty: none
  const char* help;
};

/// One verb: `positional` names what stands without a dash, "[SCENARIO.toml]".
struct Verb {
  const char* name;
  const char* positional;
  std::size_t max_positional;
  const char* summary;
  std::span<const Option> options;
  const char* example;
};

class Arguments {
 public:
  bool has(const std::string& option) const { return values_.contains(option); }
  const std::vector<std::string>& all(const std::string& option) const;
  /// The value, or `otherwise` when the option was not given.
  std::string get(const std::string& option, const std::string& otherwise = {}) const;
  const std::vector<std::string>& positional() const { return positional_; }

 private:
  friend Arguments parse_arguments(const Verb&, const std::vector<std::string>&);
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
};

/// Throws UsageError.
Arguments parse_arguments(const Verb& verb, const std::vector<std::string>& words);

std::string help_text(const Verb& verb);
std::string version_text();

/// The keys that options and --set name, in the order: options of `verb`, then --set.
std::vector<std::pair<std::string, TomlValue>> settings_of(const Verb& verb,
                                                           const Arguments& arguments);

}  // namespace stepcast::sim
