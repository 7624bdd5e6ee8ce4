// stepcast launch: how to start a plan with its framework.
#include <fmt/format.h>

#include <cstdio>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/scenario_input.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/command/tell_launch.hpp"
#include "sim/files/printable.hpp"
#include "sim/launch/job.hpp"
#include "sim/launch/launch.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {
namespace {

constexpr Option own_launch_options[] = {
    {"job", job_kinds, "", "also a whole script around it: meeting place, environment, command"},
    {"out", "DIR", "", "write the files into DIR, over no other file"},
};

const std::vector<Option>& launch_options() {
  static const std::vector<Option> options =
      with_scenario_options({"model", "cluster", "plan", "batch", "precision"}, own_launch_options);
  return options;
}

Verb launch_verb() {
  return {"stepcast launch",
          "[SCENARIO.toml | FILE ...]",
          4,
          "Writes how to start a plan with its framework: Megatron-LM's arguments, a recipe's "
          "overrides, torchtitan's Python or TOML, TRL's YAML, FSDP's or DeepSpeed's JSON.",
          launch_options(),
          "stepcast launch --model llama3-8b --gpu h100 --nodes 2 --global-batch 64 --data zero3"};
}

/// "# megatron.args: torchrun ... $(cat megatron.args)", then the file.
void print_launch(const Launch& launch) {
  for (const LaunchFile& file : launch.files)
    tell(stdout, fmt::format("# {}: {}\n{}", file.name, file.use, file.text));
}

int run_launch(const Arguments& arguments, const Catalogue& catalogue) {
  const Scenario scenario =
      launched(asked_document(launch_verb(), arguments, catalogue), catalogue);
  return tell_launch(launch_in_kind(scenario, arguments, catalogue), scenario, arguments);
}

}  // namespace

Scenario launched(TomlValue document, const Catalogue& catalogue) {
  const std::string where = document.where;
  const Study study = read_study(std::move(document));
  if (study.is_sweep)
    throw InputError(where, "has a [sweep]: one plan is launched at a time",
                     "take out [sweep], or write the point that you want");
  Scenario scenario = read_scenario(study.base, catalogue);
  if (scenario.collective)
    throw InputError(where, "asks for a collective", "a training step is launched");
  if (!scenario.open.empty())
    throw InputError(scenario.plan_origin, "a degree is \"best\"",
                     "stepcast run says which it is: write that");
  return scenario;
}

int tell_launch(Launch launch, const Scenario& scenario, const Arguments& arguments) {
  if (launch.files.empty()) throw InputError("stepcast launch", launch.why_not);
  if (arguments.has("job"))
    launch.files.push_back(job_script(launch, scenario, arguments.choice("job")));
  for (const std::string& note : launch.notes) tell(stderr, "stepcast: " + note + "\n");
  if (!arguments.has("out")) return print_launch(launch), exit_ok;
  write_launch(launch, arguments.get("out"));
  for (const LaunchFile& file : launch.files)
    tell(stdout, fmt::format("{}: {}\n", file.name, file.use));
  return exit_ok;
}

Command launch_command() { return {launch_verb(), run_launch}; }

}  // namespace stepcast::sim
