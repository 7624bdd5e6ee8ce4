// stepcast mcp: the verbs that only answer, as tools of an agent.
#include <algorithm>
#include <filesystem>

#include "sim/agent/server.hpp"
#include "sim/command/commands.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::sim {
namespace {

constexpr Option mcp_options[] = {
    {"folder", "DIR", "", "agents may write with --out into folders below this one"},
    {"at-once", "N", "", "calls to answer at once (default: 2), others wait"},
};
constexpr Verb mcp_verb{
    "stepcast mcp",
    "",
    0,
    "Answers an agent's questions over standard input and output (Model Context Protocol).",
    mcp_options,
    "stepcast mcp --folder answers",
    "Tools are the verbs that only answer, each with a schema of what it takes and gives.\n"
    "docs/mcp.md says how to add stepcast to an agent, SKILL.md when to ask what.\n"};

struct Offered {
  const char* verb;
  const char* about;
  const char* too_long = "";
};
constexpr Offered offered[] = {
    {"run", "Ask it how long a step of a known plan takes, whether it fits, what a run costs."},
    {"search", "Ask it which plan is best for a model on a machine."},
    {"why", "Ask it what limits a step and what would make it shorter.", "edges"},
    {"sweep", "Ask it how a figure changes over a list of values (a scenario with [sweep])."},
    {"compare", "Ask it what a change brings, or which of several machines is faster."},
    {"collective", "Ask it how long NCCL takes for one collective."},
    {"goodput", "Ask it what failures cost, and how often to write checkpoints."},
    {"design", "Ask it which machine to rent or buy for a goal."},
    {"show", "Ask it what the catalogue knows: GPUs, models, nodes, keys of a scenario."},
    {"explain", "Ask it what a reported number means."},
};

const char* instructions =
    "stepcast forecasts one step of distributed LLM training: time, memory, energy, cost. It "
    "simulates; it runs nothing on a cluster. Give a model, a GPU, how many, and a plan (run), or "
    "leave the plan to search. step_time_low_s to step_time_high_s is the band to quote beside "
    "step_time_s; p_fits is the probability that memory suffices. 'refused' says why a plan is "
    "impossible. Names of models and GPUs: the tool show with words [\"models\"] or [\"gpus\"]; "
    "any "
    "key of a scenario goes into set: {\"plan.tensor\": 4}.";

int mcp(const Arguments& arguments, const Catalogue&) {
  AgentServer server;
  if (arguments.has("folder")) {
    std::error_code error;
    if (!std::filesystem::is_directory(arguments.get("folder"), error))
      throw UsageError("'" + arguments.get("folder") + "' is no folder", "mkdir it first");
  }
  for (const Command& command : all_commands())
    for (const Offered& one : offered) {
      if (command.verb.word() != one.verb) continue;
      AgentTool tool{.verb = command.verb, .about = one.about, .output = {}};
      if (command.schema != nullptr) tool.output = command.schema();
      tool.too_long = one.too_long;
      if (arguments.has("folder")) tool.folder = arguments.get("folder");
      server.tools.push_back(std::move(tool));
    }
  server.program = beside_program("stepcast");
  server.instructions = instructions;
  const std::string version = version_text();  // "stepcast 0.1.0\n"
  server.version = version.substr(version.find(' ') + 1, version.size() - version.find(' ') - 2);
  server.at_once = static_cast<std::size_t>(arguments.count("at-once", 2));
  serve_agent(server);
  return exit_ok;
}

}  // namespace

Command mcp_command() { return {mcp_verb, mcp}; }

}  // namespace stepcast::sim
