#include "sim/resident/keeper.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/check.hpp"
#include "sim/command/asked_search.hpp"
#include "sim/command/asked_sides.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/output/study_run.hpp"
#include "sim/program/installation.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "sim/told/json.hpp"

namespace stepcast::sim {
namespace {

using Words = Keeper::Words;

/// Those whose --json is that of a study.
std::vector<Command> studies() { return {run_command(), sweep_command(), collective_command()}; }

std::vector<Command> answered_here() {
  std::vector<Command> out = studies();
  out.push_back(compare_command());
  out.push_back(search_command());
  return out;
}

/// Whether the options only say what is asked for: others write files, or change how it is
/// answered.
bool only_asks(const Verb& verb, const Arguments& arguments) {
  Words others{"gpu", "framework", "nccl-env", "set", "threads", "quiet", "json"};
  if (verb.word() == "compare")
    others.insert(others.end(), {"what-if", "without", "orders", "ignore-memory"});
  if (verb.word() == "search")
    others.insert(others.end(), {"objective", "space", "fix", "allow-tp-across-nodes", "top",
                                 "limit", "time", "all"});
  return std::ranges::all_of(verb.options, [&](const Option& option) {
    return !arguments.has(option.name) || *option.key != '\0' ||
           std::ranges::count(others, option.name) > 0;
  });
}

TomlValue document_of(const Verb& verb, const Arguments& arguments, const Catalogue& catalogue) {
  if (verb.word() != "collective") return asked_document(verb, arguments, catalogue);
  TomlValue document = toml_table("command line");
  set_path(document, "collective.kind", toml_text(arguments.first("which?"), "command line"));
  apply_options(document, verb, arguments, catalogue);
  return document;
}

}  // namespace

std::vector<std::string> resident_verbs() {
  Words out;
  for (const Command& command : answered_here()) out.push_back(command.verb.word());
  return out;
}

Keeper::Keeper(const std::string& program)
    : catalogue_((stand_for(program), Catalogue::standard())),
      session_(catalogue_),
      confidence_(std::make_shared<Confidence>(session_)) {}

std::optional<std::string> Keeper::refusal(const Words& words) const {
  try {
    const std::vector<Command> known = studies();
    const auto command = std::ranges::find_if(
        known, [&](const Command& each) { return !words.empty() && each.verb.word() == words[0]; });
    if (command == known.end()) return std::nullopt;
    const Arguments arguments = parse_arguments(command->verb, {words.begin() + 1, words.end()});
    const Study study = read_study(document_of(command->verb, arguments, catalogue_));
    read_scenario(study.document_of(study.point(0)), catalogue_);
  } catch (const UsageError& error) {
    return error_json(exit_usage, "", error.problem(), error.hint());
  } catch (const InputError& error) {
    return error_json(exit_bad_input, error.where(), error.problem(), error.hint());
  }
  return std::nullopt;
}

std::optional<std::string> Keeper::answer(const Words& words, const std::atomic<bool>& stop) {
  try {
    for (const Command& command : answered_here())
      if (!words.empty() && command.verb.word() == words[0])
        return answer_to(command.verb, {words.begin() + 1, words.end()}, stop);
    return std::nullopt;
  } catch (const std::exception&) {  // the program says which, and how to mend it
    return std::nullopt;
  }
}

std::optional<std::string> Keeper::answer_to(const Verb& verb, const Words& words,
                                             const std::atomic<bool>& stop) {
  const Arguments arguments = parse_arguments(verb, words);
  if (!arguments.has("json") || !only_asks(verb, arguments)) return std::nullopt;
  if (verb.word() == "compare") return compare(arguments, stop);
  if (verb.word() == "search") return search(verb, arguments, stop);
  return answer_study(verb, arguments, stop);
}

std::optional<std::string> Keeper::compare(const Arguments& arguments,
                                           const std::atomic<bool>& stop) {
  Runner runner(session_,
                {.threads = arguments.threads(),
                 .ignore_memory = arguments.has("ignore-memory"),
                 .stop = stop},
                confidence_);
  const Comparison out = compare_asked(arguments, catalogue_, runner);
  if (std::ranges::none_of(out.sides, &Side::answered)) return std::nullopt;
  return forms_of(told_of(out), "compare", {"sides"}).json();
}

std::optional<std::string> Keeper::search(const Verb& verb, const Arguments& arguments,
                                          const std::atomic<bool>& stop) {
  AskedSearch asked = open_search(asked_search(verb, arguments, catalogue_), arguments, catalogue_);
  SearchAnswer& answer = asked.answer;
  const auto own = own_plan(asked, catalogue_, [](const InputError& error) { throw error; });
  const SearchMachine machine = machine_of(answer, session_);
  find_plans(asked, machine, stop);
  if (answer.result.found.empty() || stop) return std::nullopt;
  complete_search(answer, own, machine, session_, confidence_);
  return search_json(answer);
}

std::optional<std::string> Keeper::answer_study(const Verb& verb, const Arguments& arguments,
                                                const std::atomic<bool>& stop) {
  Study study = read_study(document_of(verb, arguments, catalogue_));
  if (!study.references.empty() || (verb.word() == "sweep" && !study.is_sweep)) return std::nullopt;
  Results results =
      run_study(std::move(study),
                {.read = [&](const TomlValue& point) { return read_scenario(point, catalogue_); },
                 .simulator = simulator_of(session_, confidence_),
                 .threads = arguments.threads(),
                 .stop = stop});
  if (results.interrupted) return std::nullopt;
  if (const Order* order = confidence_->order()) results.order = *order;
  return to_json(results);
}

}  // namespace stepcast::sim
