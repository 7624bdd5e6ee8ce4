#include "sim/command/scenario_input.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/inputs/document.hpp"
#include "sim/launch/own_words.hpp"

namespace stepcast::sim {
namespace {

/// Tables that a scenario has and no launch file.
bool is_scenario(const TomlValue& document) {
  for (const char* table : {"cluster", "plan", "batch", "sweep", "collective", "run"})
    if (document.find(table) != nullptr) return true;
  return false;
}

/// A line of YAML that the plan's do not have, or the model's, which the plan has by our name.
void add_line(Launch& launch, const std::string& line) {
  std::string& text = launch.files[0].text;
  const std::string name = line.substr(0, line.find(':') + 1);
  const std::size_t at = ("\n" + text).find("\n" + name);
  if (at == std::string::npos) {
    text += line + "\n";
  } else if (name == "model_name_or_path:") {
    text.replace(at, text.find('\n', at) - at, line);
    std::erase_if(launch.notes, [&](const std::string& note) { return note.starts_with(name); });
  }
}

void add_lacking(Launch& launch, const char* what, const std::vector<std::string>& all) {
  if (!all.empty()) launch.notes.push_back(fmt::format("{}: {}.", what, fmt::join(all, ", ")));
}

/// What the files say beside a plan: before Megatron-LM's arguments in its command, in DeepSpeed's
/// configuration.
void add_own(Launch& launch, const LaunchInput& input, const Scenario& scenario) {
  if (launch.files.empty()) return;
  LaunchFile& first = launch.files[0];
  if (first.name == "deepspeed.json" && !input.json.empty()) {
    const TomlValue* theirs = input.facts.find("plan.optimizer");
    const std::string named = theirs != nullptr ? *theirs->text() : "adam";
    first.text = deepspeed_over(input.json, first.text,
                                named == word_for(optimizer_form_names, scenario.plan.optimizer));
  }
  if (first.name == "trl.yaml") {
    for (const std::string& line : input.own_lines) add_line(launch, line);
    add_lacking(launch, "trl.yaml lacks what is not known as one line", input.open_arguments);
  }
  constexpr std::string_view plan = "$(cat megatron.args)";
  const std::size_t at = first.use.find(plan);
  if (at == std::string::npos) return;
  add_lacking(launch, "own.args lacks what only your shell knows", input.open_arguments);
  add_lacking(launch, "own.args lacks what $(cat own.args) would take apart, put it behind",
              input.cut_arguments);
  if (input.own_arguments.empty()) return;
  first.use.insert(at, "$(cat own.args) ");
  launch.files.push_back({"own.args", fmt::format("{}\n", fmt::join(input.own_arguments, "\n")),
                          "what your files say beside the plan"});
}

}  // namespace

ScenarioInput read_scenario_input(std::span<const std::string> paths, const Catalogue& catalogue) {
  ScenarioInput out;
  std::vector<NamedText> files;
  std::string names;
  for (const std::string& path : paths) {
    const std::size_t function = path.rfind(".py#");
    files.push_back(
        {path,
         read_toml_text(function == std::string::npos ? path : path.substr(0, function + 3))});
    names += (names.empty() ? "" : ", ") + path;
  }
  if (files.size() == 1) {
    try {
      out.document = read_toml(files[0].text, names);
      if (is_scenario(out.document)) return out;
      out.launch = torchtitan_input(out.document, names, catalogue);
      if (out.launch) out.document = facts_document(out.launch->facts, names);
      return out;
    } catch (const InputError&) {
      if (names.ends_with(".toml")) throw;
    }
  }
  out.launch = read_launch_files(files, catalogue);
  if (!out.launch)
    throw InputError(names, "is neither a scenario nor a launch file of a format that is known",
                     "docs/inputs.md lists them");
  out.document = facts_document(out.launch->facts, names);
  return out;
}

void complete_input(ScenarioInput& input, const Arguments& arguments, const Catalogue& catalogue) {
  const auto write_out = [&](const std::string& origin) {
    if (arguments.has("scenario-out"))
      write_whole(arguments.get("scenario-out"),
                  "# " + origin + ".\n" + write_toml(input.document));
  };
  if (!input.launch) {
    const std::string files = fmt::format("{}", fmt::join(arguments.positional(), ", "));
    return write_out("Scenario of " + (files.empty() ? "" : files + " and ") + "the command line");
  }
  complete_machine(input.document, input.launch->facts, catalogue);
  for (const std::string& sentence : sentences_on(*input.launch))
    tell(stderr, "stepcast: " + sentence + "\n");
  std::string keys, options;
  const auto missing = missing_keys(input.document, input.launch->facts, catalogue);
  for (const MissingKey& one : missing) {
    keys += (keys.empty() ? "" : ", ") + one.key;
    options += (options.empty() ? "" : " ") + one.option;
  }
  if (!keys.empty()) {
    const std::string besides =
        refusal_besides(input.document, input.launch->facts, catalogue, missing);
    throw InputError(input.document.where, "does not say " + keys,
                     "give it: " + options + (besides.empty() ? "" : "; and besides: " + besides));
  }
  write_out("Read by stepcast from " + input.document.where + ", " + input.launch->format);
}

namespace {

/// Of files that are launch files of others, and not for another framework than theirs.
std::optional<LaunchInput> own_launch_input(const Arguments& arguments,
                                            const Catalogue& catalogue) {
  const auto& files = arguments.positional();
  std::error_code error;  // of shards that are merged the folder alone is named
  if (files.empty() || std::filesystem::is_directory(files[0], error) || arguments.has("framework"))
    return std::nullopt;
  return read_scenario_input(files, catalogue).launch;
}

}  // namespace

std::string own_stack(const Arguments& arguments, const Catalogue& catalogue) {
  const auto input = own_launch_input(arguments, catalogue);
  return input ? input->stack : "";
}

Launch launch_in_kind(const Scenario& scenario, const Arguments& arguments,
                      const Catalogue& catalogue) {
  const auto input = own_launch_input(arguments, catalogue);
  if (input && !input->stack.empty()) {
    const bool states_optimizer = input->facts.find("plan.optimizer") != nullptr;
    return own_words_of(scenario, input->stack, states_optimizer);
  }
  Launch out = launch_of(scenario);
  if (input) add_own(out, *input, scenario);
  return out;
}

}  // namespace stepcast::sim
