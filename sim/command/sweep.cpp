// stepcast sweep: all points of a [sweep], or a shard of them; what is there of it; the shards put
// together; a script that runs them under Slurm.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/command/answer_study.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/command/shards.hpp"
#include "sim/files/printable.hpp"
#include "sim/output/stored_study.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/table_view.hpp"
#include "sim/told/json.hpp"

namespace stepcast::sim {
namespace {

constexpr Option sweep_only[] = {
    {"status", "", "", "run nothing: how many points in --out DIR are finished"},
    print_slurm_option,
    {"partial", "", "", "of merge: without the points that are missing"},
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
  static const std::vector<Option> options = options_named(
      sweep_options(),
      {"partial", "refused", "json", "threads", "quiet", "sort", "top", "columns", "csv"});
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

/// All but those that say what is run and the ones named.
auto idle_but_for(std::initializer_list<std::string_view> named) {
  return [named = std::vector<std::string_view>(named)](const Option& option) {
    return !is_of_study(option) && std::ranges::count(named, option.name) == 0;
  };
}

int merge(const std::vector<std::string>& words, const Catalogue& catalogue) {
  const Verb own = merge_verb();
  const Arguments arguments = parse_arguments(own, words);
  const std::string& folder = arguments.first("which folder?");
  StoredStudy stored = stored_study(folder, "sweep");
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
  refuse_idle(sweep_verb(), arguments, "status", idle_but_for({"status", "out", "json"}));
  std::string place = arguments.get("out");
  if (arguments.positional().empty()) {
    if (study_options_in(arguments) > 0)
      throw UsageError("--status of which scenario?", "without one it takes that of --out DIR");
  } else {
    const StudyRequest request =
        request_of(asked_document(sweep_verb(), arguments, catalogue), arguments);
    place = place_of(place, request.document, request.options);
  }
  const SweepStatus status = status_of(place, read_study(stored_study(place, "sweep").document));
  const std::string text = arguments.has("json") ? status_json(status) : status_text(status);
  tell(stdout, text);
  return exit_ok;
}

int print_sweep_slurm(const Study& study, const Arguments& arguments) {
  refuse_idle(sweep_verb(), arguments, "print-slurm",
              idle_but_for({"print-slurm", "out", "threads", "resume", "quiet"}));
  const std::size_t shards = static_cast<std::size_t>(arguments.count("print-slurm", 1));
  if (shards > study.num_points())
    throw UsageError(fmt::format("{} shards of {} points", shards, study.num_points()),
                     "at most one shard per point");
  return print_slurm(sweep_verb(), fmt::format("{} points", study.num_points()), arguments);
}

int sweep(const Arguments& arguments, const Catalogue& catalogue) {
  stop_requested();  // before anything is read
  const std::vector<std::string>& files = arguments.positional();
  if (const auto words = merge_words(arguments)) return merge(*words, catalogue);
  if (files.size() > 1)
    throw UsageError("'" + files[1] + "' is one argument too many", "see stepcast sweep --help");
  if (arguments.has("partial")) throw UsageError("--partial is for stepcast sweep merge");
  if (arguments.has("status")) return show_status(arguments, catalogue);
  const Verb own = sweep_verb();
  TomlValue document = asked_document(own, arguments, catalogue);
  if (document.find("sweep") == nullptr)
    throw InputError(document.where, "has no [sweep]", "stepcast run answers a single scenario");
  if (arguments.has("print-slurm"))
    return print_sweep_slurm(read_study(std::move(document)), arguments);
  return answer_study(request_of(std::move(document), arguments), own, arguments, catalogue);
}

}  // namespace

Command sweep_command() { return {.verb = sweep_verb(), .run = sweep, .schema = study_schema}; }

}  // namespace stepcast::sim
