#include "sim/command/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "sim/command/next_question.hpp"
#include "sim/files/printable.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::sim {
namespace {

/// The words of this command line, but for what the script says itself.
std::string words_for_shards(const Arguments& arguments) {
  std::string out;
  bool value_follows = false;
  for (const std::string& word : arguments.words()) {
    const bool left_out = value_follows || word.starts_with("--print-slurm") ||
                          word == "--resume" || word == "--quiet";
    value_follows = word == "--print-slurm";
    if (!left_out) out += " " + shell_word(word);
  }
  return out;
}

}  // namespace

std::vector<Option> options_named(std::span<const Option> options,
                                  std::initializer_list<std::string_view> names) {
  std::vector<Option> out;
  for (const Option& option : options)
    if (std::ranges::count(names, option.name) > 0) out.push_back(option);
  return out;
}

std::optional<std::vector<std::string>> merge_words(const Arguments& arguments) {
  const std::vector<std::string>& files = arguments.positional();
  if (files.empty() || files.front() != "merge") return std::nullopt;
  std::vector<std::string> words = arguments.words();
  words.erase(std::ranges::find(words, "merge"));
  return words;
}

void refuse_idle(const Verb& verb, const Arguments& arguments, const std::string& with,
                 const std::function<bool(const Option&)>& is_idle) {
  for (const Option& option : verb.options)
    if (arguments.has(option.name) && is_idle(option))
      throw UsageError(fmt::format("--{} does nothing with --{}", option.name, with));
}

/// Slurm signals the steps of a job, not its shell: hence srun. A job that ended by its limit goes
/// on where it is submitted once more.
int print_slurm(const Verb& verb, const std::string& what, const Arguments& arguments) {
  if (!arguments.has("out")) throw UsageError("--print-slurm wants --out DIR for the shards");
  if (arguments.get("out").find_first_of("\n\r") != std::string::npos)
    throw UsageError("--print-slurm: --out has a line break", "a comment of the script names it");
  const std::int64_t threads = arguments.count("threads", 1);
  const std::string out = shell_word(arguments.get("out"));
  tell(stdout,
       fmt::format(R"(#!/bin/sh
# {what} in {shards} shards, after: sbatch --time 8:00:00 THIS_SCRIPT
# Submitted again, it goes on with what a time limit or a lost node left.
# Then: {merge}
#SBATCH --job-name=stepcast-{verb}
#SBATCH --array=1-{shards}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={threads}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@60
exec srun --ntasks=1 --cpus-per-task={threads} {program} {verb}{words}{set_threads} \
  --quiet --resume --shard "$SLURM_ARRAY_TASK_ID/{shards}"
)",
                   fmt::arg("what", what), fmt::arg("shards", arguments.count("print-slurm", 1)),
                   fmt::arg("merge", fmt::format("{} merge {}", verb.name, out)),
                   fmt::arg("verb", verb.word()), fmt::arg("threads", threads),
                   fmt::arg("program", shell_word(beside_program("stepcast"))),
                   fmt::arg("words", words_for_shards(arguments)),
                   fmt::arg("set_threads", arguments.has("threads") ? "" : " --threads 1")));
  return exit_ok;
}

}  // namespace stepcast::sim
