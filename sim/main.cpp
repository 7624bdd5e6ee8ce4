// stepcast: forecasts one step of distributed LLM training on a GPU cluster.
// The way through the program: main -> sim/command/run.cpp -> sim/scenario/file.cpp (read) ->
// answer.cpp -> simulate.cpp -> engine/run.cpp (the event loop), and back through
// sim/report/text.cpp.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/command_line.hpp"
#include "sim/report/json.hpp"

namespace {

using namespace stepcast;
using sim::Words;

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Words&, const sim::Catalogue&);
};

const Command commands[] = {
    {"run", "forecast one training step, or every point of a sweep", sim::command_run},
    {"sweep", "run every point of a scenario's [sweep]", sim::command_sweep},
    {"collective", "time one NCCL collective", sim::command_collective},
    {"show", "print the catalogue, a cluster, a calibration table", sim::command_show},
    {"explain", "say what a reported number means",
     [](const Words& words, const sim::Catalogue&) { return sim::command_explain(words); }},
    {"calibrate", "measure this machine (stepcast-calibrate)",
     [](const Words& words, const sim::Catalogue&) {
       return sim::command_sister("calibrate", words);
     }},
    {"validate", "measured beside simulated (stepcast-validate)",
     [](const Words& words, const sim::Catalogue&) {
       return sim::command_sister("validate", words);
     }},
};

std::string usage() {
  std::string out = "usage: stepcast VERB [arguments]\n\n";
  for (const Command& command : commands) {
    std::string name = command.name;
    name.resize(12, ' ');
    out += "  " + name + command.summary + "\n";
  }
  return out + "\nstepcast VERB --help says more; stepcast --version\n" + sim::exit_codes_text();
}

int dispatch(const Words& words) {
  if (words.empty()) {
    std::fputs(usage().c_str(), stderr);
    return sim::exit_usage;
  }
  const std::string& verb = words.front();
  if (verb == "--help" || verb == "-h" || verb == "help")
    return std::fputs(usage().c_str(), stdout), 0;
  if (verb == "--version") return std::fputs(sim::version_text().c_str(), stdout), 0;
  std::vector<std::string> known;
  for (const Command& command : commands) {
    if (verb == command.name)
      return command.run({words.begin() + 1, words.end()}, sim::Catalogue::standard());
    known.emplace_back(command.name);
  }
  throw sim::UsageError("unknown command '" + verb + "'", sim::suggestion(verb, known));
}

/// One message on standard error; with --json also an object on standard output.
int report_error(const Words& words, int code, const std::string& where, const std::string& what,
                 const std::string& hint) {
  const std::string line =
      (where.empty() ? "" : where + ": ") + what + (hint.empty() ? "" : ", ") + hint;
  // "file:line: message" stands alone, as compilers print it, so that editors find the place.
  std::fprintf(stderr, "%s%s\n", where.empty() ? "stepcast: " : "", line.c_str());
  for (const std::string& word : words)
    if (word == "--json")
      std::fprintf(stdout, "%s\n", sim::error_json(code, where, what, hint).c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const Words words(argv + 1, argv + argc);
  try {
    const int code = dispatch(words);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return report_error({}, sim::exit_unwritten, "", "standard output cannot be written", "");
    return code;
  } catch (const sim::UsageError& error) {
    return report_error(words, sim::exit_usage, "", error.problem(), error.hint());
  } catch (const sim::OutputError& error) {
    return report_error(words, sim::exit_unwritten, error.where(), error.problem(), error.hint());
  } catch (const InputError& error) {
    return report_error(words, sim::exit_bad_input, error.where(), error.problem(), error.hint());
  } catch (const NoFeasiblePlan& error) {
    return report_error(words, sim::exit_no_feasible_plan, "", error.what(), "");
  } catch (const std::exception& error) {
    return report_error(words, sim::exit_internal, "",
                        std::string("internal error: ") + error.what(), "please report it");
  }
}
