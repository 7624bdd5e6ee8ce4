#include "sim/command/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

#include "engine/check.hpp"
#include "sim/command/completion.hpp"
#include "sim/command/manual.hpp"
#include "sim/files/colour.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/processes/child.hpp"
#include "sim/program/heap.hpp"
#include "sim/program/installation.hpp"
#include "sim/told/json.hpp"

namespace stepcast::sim {
namespace {

using Words = std::vector<std::string>;

int print(const std::string& text) {
  tell(stdout, text);
  return exit_ok;
}

/// What the sister program is called with.
Words handed_on(const Command& command, const Words& words) {
  Words out = words;
  if (*command.sister_verb != '\0') out.insert(out.begin(), command.sister_verb);
  return out;
}

int run_command(const Command& command, const Words& words) {
  if (*command.sister != '\0') {
    if (*command.sister_verb != '\0' && words.empty())
      throw UsageError(fmt::format("{} needs {}", command.verb.name, command.verb.positional),
                       command.verb.example);
    become_sister(command.sister, handed_on(command, words));
  }
  const Arguments arguments = parse_arguments(command.verb, words);
  if (arguments.has("help")) return print(help_text(command.verb));
  return command.run(arguments, Catalogue::standard());
}

/// What is not for users to call, and in no help: the shell asks for completions, the build for the
/// rest.
std::optional<std::string> documents(const Program& program, const Words& words) {
  const std::string call = words.size() < 2 ? "" : words[0] + " " + words[1];
  if (call == "manual troff") return manual_text(program);
  if (call == "completion bash") return completion_script(program);
  if (words.size() == 2 && words[0] == "schema")
    if (const Command* command = command_of(program, words[1]); command && command->schema)
      return json_text(command->schema(), 2) + "\n";
  if (call != "completion reply" || words.size() < 3) return std::nullopt;
  const Words typed(words.begin() + 2, words.end());
  const Command* command = program.has_verbs() ? command_of(program, typed[0]) : nullptr;
  if (typed.size() > 1 && command != nullptr && *command->sister != '\0') {
    Words handed = handed_on(*command, {typed.begin() + 1, typed.end()});
    handed.insert(handed.begin(), {"completion", "reply"});
    become_sister(command->sister, handed);
  }
  std::string out;
  for (const std::string& word : completions(program, typed, Catalogue::standard()))
    out += word + "\n";
  return out;
}

int dispatch(const Program& program, const Words& words) {
  const std::string first = words.empty() ? "" : words.front();
  if (first == "--version")
    return print(program.name + version_text().substr(sizeof "stepcast" - 1));
  if (const auto written = documents(program, words)) return print(*written);
  if (!program.has_verbs()) return run_command(program.commands.front(), words);
  if (words.empty()) {
    tell(stderr, opening_of(program, isatty(STDERR_FILENO) != 0));
    return exit_usage;
  }
  if (first == "help" && words.size() > 1) {  // "help run" is "run --help"
    Words asked(words.begin() + 1, words.end());
    asked.emplace_back("--help");
    return dispatch(program, asked);
  }
  if (first == "--help" || first == "-h" || first == "help") return print(usage_of(program));
  if (const Command* command = command_of(program, first))
    return run_command(*command, {words.begin() + 1, words.end()});
  throw UsageError("unknown command '" + first + "'", suggestion(first, verbs_of(program)));
}

int report_error(const Program& program, const Words& words, int code, const std::string& where,
                 const std::string& what, const std::string& hint) {
  const bool sign = program.signs_all || where.empty();
  const std::string said =
      fmt::format("{}{}{}{}{}{}{}", sign ? program.name : "", sign ? ": " : "", where,
                  where.empty() ? "" : ": ", what, hint.empty() ? "" : ", ", hint);
  if (code == exit_no_feasible_plan)
    tell_refused(stderr, said);
  else
    tell(stderr, said);
  tell(stderr, "\n");
  if (std::ranges::count(words, "--json") > 0)
    tell(stdout, error_json(code, where, what, hint) + "\n");
  return code;
}

const char* dying_program = "";

/// Where memory ends while a JSON document is being taken down (nlohmann's destructor allocates),
/// no exception can get out: the sentence of one that does, and its code, all the same.
void out_of_memory_is_said() {
  try {
    if (const std::exception_ptr failure = std::current_exception())
      std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    for (const char* part : {dying_program, ": out of memory, ask for less, or more of it\n"})
      if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
    _exit(exit_internal);
  } catch (...) {
  }
  std::abort();
}

}  // namespace

[[noreturn]] void become_sister(const std::string& name, const std::vector<std::string>& words) {
  const std::string program = beside_program(name);
  std::vector<std::string> command{program};
  command.insert(command.end(), words.begin(), words.end());
  become(command);
  throw InputError(name, "does not stand beside the program that calls it",
                   "build it with ./dev build");
}

bool Program::has_verbs() const {
  return commands.size() != 1 || commands.front().verb.name != std::string(name);
}

std::vector<std::string> verbs_of(const Program& program) {
  Words out;
  for (const Command& command : program.commands) out.push_back(command.verb.word());
  return out;
}

const Command* command_of(const Program& program, const std::string& verb) {
  const auto found = std::ranges::find(program.commands, verb,
                                       [](const Command& command) { return command.verb.word(); });
  return found == program.commands.end() ? nullptr : &*found;
}

std::string usage_of(const Program& program) {
  if (!program.has_verbs()) return help_text(program.commands.front().verb);
  std::string out =
      fmt::format("usage: {0} VERB [arguments]\n{0} {1}.\n\n", program.name, program.about);
  std::size_t longest = 0;
  for (const std::string& verb : verbs_of(program)) longest = std::max(longest, verb.size());
  for (const Command& command : program.commands)
    out += list_item(command.verb.word(), longest + 4, command.verb.summary);
  return out + fmt::format("\n{0} VERB --help says more; {0} --version\n\n", program.name) +
         exit_codes_text();
}

std::string opening_of(const Program& program, bool terminal) {
  if (!terminal || *program.first_steps == '\0') return usage_of(program);
  return fmt::format("{0} {1}. Try:\n\n{2}\n{0} --help names all commands\n", program.name,
                     program.about, program.first_steps);
}

int program_main(const Program& program, int argc, char** argv) {
  use_large_pages();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes: like a full disk, an error of the write
  dying_program = program.name;
  std::set_terminate(out_of_memory_is_said);
  const Words words(argv + 1, argv + argc);
  const auto fails = [&](int code, const std::string& where, const std::string& what,
                         const std::string& hint) {
    return report_error(program, words, code, where, what, hint);
  };
  try {
    const int code = dispatch(program, words);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return report_error(program, {}, exit_unwritten, "", "standard output cannot be written", "");
  } catch (const UsageError& error) {
    return fails(exit_usage, "", error.problem(), error.hint());
  } catch (const OutputError& error) {
    return fails(exit_unwritten, error.where(), error.problem(), error.hint());
  } catch (const InputError& error) {
    return fails(exit_bad_input, error.where(), error.problem(), error.hint());
  } catch (const NoFeasiblePlan& error) {
    return fails(exit_no_feasible_plan, "", error.what(), "");
  } catch (const Failure& error) {
    return fails(error.code(), "", error.what(), "");
  } catch (const BeyondClock& error) {
    return fails(exit_bad_input, "", error.what(), "a rate is far too low or a size far too large");
  } catch (const std::bad_alloc&) {
    return fails(exit_internal, "", "out of memory", "ask for less, or more of it");
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again)
      return fails(exit_internal, "", std::string("internal error: ") + error.what(),
                   "please report it");
    return fails(exit_internal, "", "no thread can be started",
                 "is there a limit (ulimit -v, -u)?");
  } catch (const std::exception& error) {
    return fails(exit_internal, "", std::string("internal error: ") + error.what(),
                 "please report it");
  }
}

}  // namespace stepcast::sim
