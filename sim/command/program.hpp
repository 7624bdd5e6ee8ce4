// The main function of every program of stepcast: its verbs as one table, --help, --version,
// suggestions, messages, exit codes. Knows no verb.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

struct Command {
  Verb verb;
  /// Prints its result on standard output and returns the exit code; mistakes are thrown
  /// (UsageError, InputError, NoFeasiblePlan, Failure).
  int (*run)(const Arguments&, const Catalogue&);
  /// Instead of `run`: the program beside this one that takes all further words.
  const char* sister = "";
  /// Its verb that they are for, where they do not begin with one; such a verb needs words.
  const char* sister_verb = "";
  /// The schema of what it prints with --json; null: it prints none.
  nlohmann::ordered_json (*schema)() = nullptr;
};

struct Program {
  const char* name;
  const char* about;  // behind the name: "forecasts one step of ..."
  /// One whose verb has the program's own name stands alone: there is no verb to give.
  std::span<const Command> commands;
  /// Messages about "file:line" begin with the name too; else they stand alone, as compilers print
  /// them, so that editors find the place.
  bool signs_all = false;
  /// Commands to try first, a line each, for who calls the program alone.
  const char* first_steps = "";

  bool has_verbs() const;
};

/// The exit code. Each message is one line on standard error; with --json it is also an object on
/// standard output.
int program_main(const Program& program, int argc, char** argv);

/// Goes on as the program of that name beside this one. Throws InputError where it cannot.
[[noreturn]] void become_sister(const std::string& name, const std::vector<std::string>& words);

/// What `program --help` prints.
std::string usage_of(const Program& program);
/// What the program says when it is called alone: at a terminal its first steps, where it has any.
std::string opening_of(const Program& program, bool terminal);
/// The command of this verb; none: null.
const Command* command_of(const Program& program, const std::string& verb);
/// The words that its verbs are called by.
std::vector<std::string> verbs_of(const Program& program);

}  // namespace stepcast::sim
