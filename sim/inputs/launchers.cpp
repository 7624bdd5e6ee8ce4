#include "sim/inputs/launchers.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "sim/inputs/launch_arguments.hpp"
#include "sim/scripts/text_pieces.hpp"

namespace stepcast::sim {
namespace {

using Count = std::optional<std::int64_t>;

constexpr const char *nodes_word = "nnodes", *each_word = "nproc_per_node";

/// "8", "h100:8", "gpu:h100:8"
Count last_count(const std::string* said) {
  if (said == nullptr) return std::nullopt;
  const auto number = integer_in(said->substr(said->rfind(':') + 1));
  return number && *number > 0 ? number : std::nullopt;
}

bool is_open(const Settings& settings, const char* name) {
  const std::string* said = settings.find(name);
  return said != nullptr && said->find('$') != std::string::npos;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return says(text, word); });
}

}  // namespace

Settings slurm_head(std::string_view text) {
  constexpr std::string_view mark = "#SBATCH";
  std::vector<std::string> words;
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at)) {
    const bool begins = at == 0 || text[at - 1] == '\n';
    at += mark.size();
    std::string_view line = text.substr(at, std::min(text.find('\n', at), text.size()) - at);
    line = line.substr(0, line.find('#'));
    if (!begins) continue;
    for (const std::string_view word : words_of_text(line))
      words.emplace_back(word == "-N" ? "--nodes" : word == "-n" ? "--ntasks" : word);
  }
  Settings all, out;
  for (const LaunchArgument& argument : command_arguments(words))
    all.set(argument.name, argument.value);
  const Count nodes = last_count(all.find("nodes"));
  Count each;
  for (const char* name : {"gpus_per_node", "gres", "ntasks_per_node"})
    if (!each) each = last_count(all.find(name));
  for (const char* name : {"gpus", "ntasks"})
    if (const Count whole = last_count(all.find(name)); !each && whole && nodes)
      if (*whole % *nodes == 0) each = *whole / *nodes;
  if (nodes) out.set(nodes_word, std::to_string(*nodes));
  if (each) out.set(each_word, std::to_string(*each));
  return out;
}

ShellVariables slurm_variables(const Settings& head) {
  ShellVariables out;
  const std::string *nodes = head.find(nodes_word), *each = head.find(each_word);
  for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})
    if (nodes != nullptr) out[name] = {*nodes};
  for (const char* name : {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"})
    if (each != nullptr) out[name] = {*each};
  return out;
}

void add_slurm_head(Settings& settings, const Settings& head) {
  constexpr const char* others[] = {"num_gpus", "num_processes", "world_size",
                                    "trainer.n_gpus_per_node"};
  if (std::ranges::any_of(others, [&](const char* one) { return settings.has(one); })) return;
  const bool untold = !settings.has(each_word) || is_open(settings, each_word);
  if (const std::string* each = head.find(each_word); each != nullptr && untold)
    settings.set(each_word, *each);
  if (const std::string* nodes = head.find(nodes_word);
      nodes != nullptr && (is_open(settings, nodes_word) || (untold && !settings.has(nodes_word))))
    settings.set(nodes_word, *nodes);
}

void leave_out_runner(ShellCommand& command) {
  const auto program = [](std::string_view word) {
    const std::string_view file = word.substr(word.rfind('/') + 1);
    constexpr std::string_view programs[] = {"torchrun", "accelerate", "deepspeed", "bash", "sh"};
    return file.starts_with("python") || file.ends_with(".py") ||
           std::ranges::find(programs, file) != std::end(programs);
  };
  auto& words = command.words;
  for (auto at = words.begin(); at + 1 < words.end(); ++at) {
    if (*at != "uv" || at[1] != "run") continue;
    const auto called = std::find_if(at + 2, words.end(), program);
    if (called != words.end()) words.erase(at, called);
    return;
  }
}

std::string idle_program(const ShellCommand& command) {
  const auto& words = command.words;
  const auto at = std::ranges::find_if(
      words, [](const std::string& word) { return word.ends_with(".py") || word == "-m"; });
  if (at == words.end()) return "";
  const bool launcher = *at == "-m" && at + 1 < words.end() && at[1].starts_with("torch.");
  if (launcher) {
    ShellCommand rest;
    rest.words.assign(at + 2, words.end());
    return idle_program(rest);
  }
  const std::string& called = *at == "-m" && at + 1 < words.end() ? at[1] : *at;
  const std::string_view file = std::string_view(called).substr(called.rfind('/') + 1);
  const bool trains = has_any(file, {"train", "tune", "sft", "recipe", "grpo", "ppo", "dpo"});
  const bool other = has_any(
      file, {"generat", "inference", "convert", "checkpoint", "preprocess", "server", "export",
             "quantize", "prune", "mmlu", "eval", "validate", "merge", "extract"});
  return other && !trains ? called : "";
}

}  // namespace stepcast::sim
