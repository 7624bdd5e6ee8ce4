// stepcast sweep: all points of a [sweep], or a shard of them; what is there of it; the shards put
// together; a script that runs them under Slurm.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/command/answer_study.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/next_question.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/files/printable.hpp"
#include "sim/output/stored_study.hpp"
#include "sim/program/installation.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/table_view.hpp"

namespace stepcast::sim {
namespace {

constexpr Option partial_option{"partial", "", "", "of merge: without the points that are missing"};
constexpr Option sweep_only[] = {
    {"status", "", "", "run nothing: how many points in --out DIR are finished"},
    {"print-slurm", "N", "", "run nothing: print a script for sbatch that runs N shards"},
    partial_option,
};

/// Options that say what is run.
bool is_of_study(const Option& option) {
  constexpr std::string_view keyless[] = {"gpu",     "framework",  "nccl-env",     "set",
                                          "no-fold", "check-fold", "ignore-memory"};
  return *option.key != '\0' || std::ranges::count(keyless, option.name) > 0;
}

const std::vector<Option>& sweep_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out = run_options();
    out.insert(out.end(), std::begin(sweep_only), std::end(sweep_only));
    return out;
  }();
  return options;
}

/// Those of a sweep that do not say what to run.
const std::vector<Option>& merge_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out{partial_option, refused_option};
    for (const Option& option : run_options())
      for (const char* name : {"json", "threads", "quiet", "sort", "top", "columns", "csv"})
        if (std::string_view(option.name) == name) out.push_back(option);
    return out;
  }();
  return options;
}

Verb sweep_verb() {
  return {"stepcast sweep",
          "[SCENARIO.toml], or merge DIR",
          2,
          "Runs every point of a scenario's [sweep], or puts together what shards of it left in "
          "DIR: results.json and results.h5 there, and the table.",
          sweep_options(),
          "stepcast sweep scenarios/weak_scaling.toml --json"};
}

Verb merge_verb() {
  return {"stepcast sweep merge",
          "DIR",
          1,
          "Puts together what shards of a sweep left in DIR.",
          merge_options(),
          "stepcast sweep merge DIR --csv all.csv"};
}

/// Throws UsageError for an option that `what` would leave without effect: all but those
/// that say what is run and the ones named.
void refuse_idle(const Arguments& arguments, const std::string& what,
                 std::initializer_list<std::string_view> named) {
  for (const Option& option : sweep_options()) {
    if (arguments.has(option.name) && !is_of_study(option) &&
        std::ranges::count(named, option.name) == 0)
      throw UsageError(fmt::format("--{} does nothing with --{}", option.name, what));
  }
}

int merge(const Arguments& asked, const Catalogue& catalogue) {
  std::vector<std::string> words = asked.words();
  words.erase(std::ranges::find(words, "merge"));
  const Verb own = merge_verb();
  const Arguments arguments = parse_arguments(own, words);
  const std::string& folder = arguments.first("which folder?");
  StoredStudy stored = stored_study(folder);
  StudyRequest request{std::move(stored.document), stored.mark.options};
  request.output = {folder, true, "", stored.mark.options};
  request.merges = true;
  return answer_study(std::move(request), own, arguments, catalogue);
}

/// Of a given scenario its own files, also while they wait to replace another's.
std::string place_of(const std::string& folder, const TomlValue& document,
                     const std::vector<std::string>& options) {
  const std::string id = study_id(read_study(document), options);
  for (const std::string& place : {staging_in(folder), folder})
    if (const auto mark = read_mark(place); mark && mark->study == id) return place;
  throw InputError("--out", "'" + folder + "' has nothing of this sweep");
}

/// How many options say what is run.
std::ptrdiff_t study_options_in(const Arguments& arguments) {
  return std::ranges::count_if(sweep_options(), [&](const Option& option) {
    return arguments.has(option.name) && is_of_study(option);
  });
}

int show_status(const Arguments& arguments, const Catalogue& catalogue) {
  if (!arguments.has("out")) throw UsageError("--status of which folder?", "give its --out DIR");
  refuse_idle(arguments, "status", {"status", "out", "json"});
  std::string place = arguments.get("out");
  if (arguments.positional().empty()) {
    if (study_options_in(arguments) > 0)
      throw UsageError("--status of which scenario?", "without one it takes that of --out DIR");
  } else {
    const StudyRequest request =
        request_of(asked_document(sweep_verb(), arguments, catalogue), arguments);
    place = place_of(place, request.document, request.options);
  }
  const SweepStatus status = status_of(place, read_study(stored_study(place).document));
  const std::string text = arguments.has("json") ? status_json(status) : status_text(status);
  tell(stdout, text);
  return exit_ok;
}

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

/// Slurm signals the steps of a job, not its shell: hence srun. A job that ended by its limit goes
/// on where it is submitted once more.
int print_slurm(const Study& study, const Arguments& arguments) {
  if (!arguments.has("out")) throw UsageError("--print-slurm wants --out DIR for the points");
  if (arguments.get("out").find_first_of("\n\r") != std::string::npos)
    throw UsageError("--print-slurm: --out has a line break", "a comment of the script names it");
  refuse_idle(arguments, "print-slurm", {"print-slurm", "out", "threads", "resume", "quiet"});
  const std::size_t shards = static_cast<std::size_t>(arguments.count("print-slurm", 1));
  if (shards > study.num_points())
    throw UsageError(fmt::format("{} shards of {} points", shards, study.num_points()),
                     "at most one shard per point");
  const std::int64_t threads = arguments.count("threads", 1);
  tell(stdout,
       fmt::format(R"(#!/bin/sh
# {points} points in {shards} shards, after: sbatch --time 8:00:00 THIS_SCRIPT
# Submitted again, it goes on with what a time limit or a lost node left.
# Then: {merge}
#SBATCH --job-name=stepcast-sweep
#SBATCH --array=1-{shards}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={threads}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@60
exec srun --ntasks=1 --cpus-per-task={threads} {program} sweep{words}{set_threads} \
  --quiet --resume --shard "$SLURM_ARRAY_TASK_ID/{shards}"
)",
                   fmt::arg("points", study.num_points()), fmt::arg("shards", shards),
                   fmt::arg("merge", "stepcast sweep merge " + shell_word(arguments.get("out"))),
                   fmt::arg("threads", threads),
                   fmt::arg("program", shell_word(beside_program("stepcast"))),
                   fmt::arg("words", words_for_shards(arguments)),
                   fmt::arg("set_threads", arguments.has("threads") ? "" : " --threads 1")));
  return exit_ok;
}

int sweep(const Arguments& arguments, const Catalogue& catalogue) {
  stop_requested();  // before anything is read
  const std::vector<std::string>& files = arguments.positional();
  if (!files.empty() && files[0] == "merge") return merge(arguments, catalogue);
  if (files.size() > 1)
    throw UsageError("'" + files[1] + "' is one argument too many", "see stepcast sweep --help");
  if (arguments.has("partial")) throw UsageError("--partial is for stepcast sweep merge");
  if (arguments.has("status")) return show_status(arguments, catalogue);
  const Verb own = sweep_verb();
  TomlValue document = asked_document(own, arguments, catalogue);
  if (document.find("sweep") == nullptr)
    throw InputError(document.where, "has no [sweep]", "stepcast run answers a single scenario");
  if (arguments.has("print-slurm")) return print_slurm(read_study(std::move(document)), arguments);
  return answer_study(request_of(std::move(document), arguments), own, arguments, catalogue);
}

}  // namespace

Command sweep_command() { return {sweep_verb(), sweep}; }

}  // namespace stepcast::sim
