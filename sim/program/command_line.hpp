// The command line: verbs, their options, and what they mean as keys of a scenario. Wraps
// Boost.Program_options, without prefix guessing and with messages and suggestions of our own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

/// What `argument` says holds: "KEY=VALUE" may be repeated, "FILE ..." takes several words as well,
/// "mpi|processes" is one of these.
struct Option {
  const char* name;      // "local-batch"
  const char* argument;  // "N"; empty: a switch
  const char* key;       // the scenario key that it sets, "batch.local"; empty: none
  const char* help;
};

/// One verb: `positional` names what stands without a dash, "[SCENARIO.toml]".
struct Verb {
  const char* name;  // as it is called: "stepcast run"; a program without verbs: its name
  const char* positional;
  std::size_t max_positional;
  const char* summary;
  std::span<const Option> options;
  const char* example;
  const char* notes = "";  // further lines of its help

  /// "run"
  std::string word() const;
};

/// The words of "mpi|processes|threads", of "gpus|models [NAME]"; none of "N".
std::vector<std::string> choices_in(const char* argument);

class Arguments {
 public:
  bool has(const std::string& option) const { return values_.contains(option); }
  const std::vector<std::string>& all(const std::string& option) const;
  /// The value, or `otherwise` when the option was not given.
  std::string get(const std::string& option, const std::string& otherwise = {}) const;
  const std::vector<std::string>& positional() const { return positional_; }
  /// All words as they were given.
  const std::vector<std::string>& words() const { return words_; }

  // Each throws UsageError where the value is none.

  /// The first word without a dash; without it asks `question`, "which file?".
  const std::string& first(const char* question) const;
  /// A whole number, at least `least` and below 10^9.
  std::int64_t count(const std::string& option, std::int64_t otherwise,
                     std::int64_t least = 1) const;
  /// A percentage as a share: "20" is 0.2.
  std::optional<double> share(const std::string& option) const;
  /// One of the words in the option's argument, the first when it was not given.
  std::string choice(const std::string& option) const;
  /// --seed, any whole number; by default 1.
  std::uint64_t seed() const;
  /// --threads, by default all cores.
  unsigned threads() const;

 private:
  friend Arguments parse_arguments(const Verb&, const std::vector<std::string>&);
  std::span<const Option> options_;
  const char* example_ = "";
  std::vector<std::string> words_;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
};

/// Throws UsageError.
Arguments parse_arguments(const Verb& verb, const std::vector<std::string>& words);

std::string help_text(const Verb& verb);
std::string version_text();
/// "  NAME   TEXT" for a list of names, the text broken and set below itself,
/// below a name that is too long for it.
std::string list_item(const std::string& name, std::size_t width, const std::string& text);

/// The keys that options and --set name, in the order: options of `verb`, then --set.
std::vector<std::pair<std::string, TomlValue>> settings_of(const Verb& verb,
                                                           const Arguments& arguments);

}  // namespace stepcast::sim
