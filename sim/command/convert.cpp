// stepcast convert: a run as one framework's file, into another's.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/scenario_input.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/command/tell_launch.hpp"
#include "sim/files/printable.hpp"
#include "sim/launch/job.hpp"
#include "sim/launch/own_words.hpp"

namespace stepcast::sim {
namespace {

constexpr Option own_convert_options[] = {
    {"to",
     "toml|megatron|bridge|torchtitan|deepspeed|trl|fsdp1|fsdp2|axolotl|llama-factory|"
     "llama-factory-v1|swift|verl",
     "", "what is written: a scenario, the files of that framework, or words to lay over your own"},
    job_option,
    job_time_option,
    job_partition_option,
    job_account_option,
    {"out", "DIR", "", "write the files into DIR, over no other file"},
};

const std::vector<Option>& convert_options() {
  static const std::vector<Option> options = with_scenario_options(
      {"model", "cluster", "plan", "batch", "precision"}, own_convert_options);
  return options;
}

Verb convert_verb() {
  return {"stepcast convert",
          "FILE ...",
          4,
          "Writes what one framework's launch file says as another's, and says what has no "
          "counterpart.",
          convert_options(),
          "stepcast convert train.yaml --to torchtitan --gpu h100 --nodes 2"};
}

struct Target {
  std::string_view word, framework;
  std::string_view others;  // frameworks whose file it is as well
};
constexpr Target targets[] = {
    {"megatron", "megatron-core", "megatron-lm megatron-deepspeed"},
    {"fsdp1", "pytorch-fsdp1", "pytorch-fsdp1-compiled"},
    {"fsdp2", "pytorch-fsdp2", ""},
    {"bridge", "nemo", ""},
    {"torchtitan", "torchtitan", ""},
    {"deepspeed", "deepspeed", ""},
    {"trl", "trl", "hf-trainer"},
};

/// Another framework runs it: what [software] said of the first one holds no longer. Whether it is
/// the same framework.
bool change_framework(TomlValue& document, const Target& target) {
  const TomlValue* said = find_path(document, "software.framework");
  const std::string from = said != nullptr && said->text() != nullptr ? *said->text() : "";
  const bool same = from == target.framework ||
                    (!from.empty() && target.others.find(from) != std::string_view::npos);
  if (same) return true;
  if (const TomlValue* software = document.find("software"); software != nullptr)
    for (const TomlEntry& entry : *software->table())
      if (entry.key != "framework" && entry.key != "version")
        tell(stderr, fmt::format("stepcast: software.{} is of {}: {} has its own.\n", entry.key,
                                 from, target.framework));
  document.erase("software");
  set_path(document, "software.framework", toml_text(std::string(target.framework), "--to"));
  return false;
}

int convert(const Arguments& arguments, const Catalogue& catalogue) {
  arguments.first("which file?");
  asked_job(arguments);  // before anything is read: mistakes
  const std::string to = arguments.choice("to");
  TomlValue document = asked_document(convert_verb(), arguments, catalogue);
  if (to == "toml") {
    launched(document, catalogue);  // is one
    return tell(stdout, write_toml(document)), exit_ok;
  }
  if (std::ranges::find(own_word_stacks, std::string_view(to)) != std::end(own_word_stacks)) {
    const bool states_optimizer = find_path(document, "plan.optimizer") != nullptr;
    const Scenario scenario = launched(std::move(document), catalogue);
    // Each of verl's trainers has words of its own.
    const std::string own = own_stack(arguments, catalogue);
    const std::string stack = to == "verl" && own.starts_with(to) ? own : to;
    return tell_launch(own_words_of(scenario, stack, states_optimizer), scenario, arguments,
                       catalogue);
  }
  const bool same = change_framework(document, *std::ranges::find(targets, to, &Target::word));
  const Scenario scenario = launched(std::move(document), catalogue);
  return tell_launch(same ? launch_in_kind(scenario, arguments, catalogue) : launch_of(scenario),
                     scenario, arguments, catalogue);
}

}  // namespace

Command convert_command() { return {convert_verb(), convert}; }

}  // namespace stepcast::sim
