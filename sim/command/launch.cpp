// stepcast launch: how to start a plan with its framework.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/scenario_input.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/command/tell_launch.hpp"
#include "sim/files/printable.hpp"
#include "sim/launch/job.hpp"
#include "sim/launch/launch.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {
namespace {

constexpr Option own_launch_options[] = {
    job_option,
    job_time_option,
    job_partition_option,
    job_account_option,
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

/// A word of the command line in a script that a shell reads.
std::string plain_word(const Arguments& arguments, const char* option) {
  const std::string word = arguments.get(option);
  const bool plain = std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == ':' || c == ',';
  });
  if (!plain)
    throw UsageError(fmt::format("--{} {} is no word of Slurm's", option, word),
                     "letters, digits and _ - . : , alone");
  return word;
}

/// What the tokens of [run_goal] take at most of its band; why there is none.
std::string forecast_time(JobRequest& job, const Scenario& scenario, const Catalogue& catalogue) {
  Session session(catalogue);
  const Answer found = answer(scenario, simulator_of(session));
  if (const auto* refused = std::get_if<Refused>(&found)) return refused->reason;
  const StepReport& report = std::get<StepReport>(found);
  if (!report.whole_run) return "";
  const Band& days = report.whole_run->days;
  constexpr double day = 86400;
  job.time = slurm_time(days.high * day);
  job.time_source = fmt::format("forecast of run_goal, not measured: the upper end of {} to {}",
                                slurm_time(days.low * day), job.time);
  return "";
}

void add_forecast_time(JobRequest& job, Launch& launch, const Scenario& scenario,
                       const Catalogue& catalogue) {
  std::string why;
  try {
    why = forecast_time(job, scenario, catalogue);
  } catch (const InputError& error) {
    why = error.what();
  }
  if (!why.empty())
    launch.notes.push_back(
        fmt::format("no time of the job is forecast: {}; --job-time says it.", why));
}

int run_launch(const Arguments& arguments, const Catalogue& catalogue) {
  asked_job(arguments);  // before anything is read: mistakes
  const Scenario scenario =
      launched(asked_document(launch_verb(), arguments, catalogue), catalogue);
  return tell_launch(launch_in_kind(scenario, arguments, catalogue), scenario, arguments,
                     catalogue);
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

JobRequest asked_job(const Arguments& arguments) {
  const bool slurm = arguments.has("job") && arguments.choice("job") == "slurm";
  for (const char* option : {"job-time", "job-partition", "job-account"})
    if (!slurm && arguments.has(option))
      throw UsageError(fmt::format("--{} is of --job slurm", option), "give that too");
  if (!arguments.has("job")) return {};
  JobRequest job{arguments.choice("job"), plain_word(arguments, "job-time"), "",
                 plain_word(arguments, "job-partition"), plain_word(arguments, "job-account")};
  if (!job.time.empty() && !is_slurm_time(job.time))
    throw UsageError(fmt::format("--job-time {} is no time of Slurm's", job.time),
                     "90 (minutes), 90:00, 4:00:00, 1-4, 1-4:30 or 1-4:30:00");
  return job;
}

void add_job(Launch& launch, const Scenario& scenario, const Arguments& arguments,
             const Catalogue& catalogue) {
  JobRequest job = asked_job(arguments);
  if (job.kind.empty()) return;
  if (!has_command(launch))
    throw InputError("--job", "these words are laid over your own configuration",
                     "your own script starts it, --framework names one that is written whole");
  if (job.kind == "slurm" && job.time.empty() && scenario.goal.on())
    add_forecast_time(job, launch, scenario, catalogue);
  launch.files.push_back(job_script(launch, scenario, job));
}

int tell_launch(Launch launch, const Scenario& scenario, const Arguments& arguments,
                const Catalogue& catalogue) {
  if (launch.files.empty()) throw InputError(scenario.origin, launch.why_not);
  add_job(launch, scenario, arguments, catalogue);
  for (const std::string& note : launch.notes) tell(stderr, "stepcast: " + note + "\n");
  if (!arguments.has("out")) return print_launch(launch), exit_ok;
  write_launch(launch, arguments.get("out"));
  for (const LaunchFile& file : launch.files)
    tell(stdout, fmt::format("{}: {}\n", file.name, file.use));
  return exit_ok;
}

Command launch_command() { return {launch_verb(), run_launch}; }

}  // namespace stepcast::sim
