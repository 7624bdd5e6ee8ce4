// stepcast compare: scenarios, kept results and measured traces side by side; what-ifs of one
// scenario; one scenario on several machines.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "engine/check.hpp"
#include "sim/command/asked_sides.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/compare/compare.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/split.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/handout/points_page.hpp"
#include "sim/inputs/launch_file.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/output_place.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {
namespace {

void check_step_scenario(const TomlValue& document) {
  if (document.find("collective") != nullptr)
    throw InputError(document.where, "asks for a collective", "training steps are compared");
}

/// A document as one side, or as many as its [sweep] has points.
void add_document(std::vector<Asked>& out, TomlValue document, const std::string& name) {
  constexpr std::size_t most_points = 100;
  check_step_scenario(document);
  const std::string where = document.where;
  const Study study = read_study(std::move(document));
  if (!study.is_sweep) return out.push_back({name, study.base});
  if (study.num_points() > most_points)
    throw InputError(where, fmt::format("its [sweep] has {} points", study.num_points()),
                     fmt::format("{} can be compared; stepcast sweep answers more", most_points));
  for (std::size_t i = 0; i < study.num_points(); ++i) {
    std::string point;
    for (const Setting& setting : study.point(i))
      point += (point.empty() ? "" : ", ") + setting.path.substr(setting.path.rfind('.') + 1) +
               " " +
               (setting.value.text() ? *setting.value.text() : write_toml_value(setting.value));
    out.push_back({point, study.document_of(study.point(i))});
  }
}

}  // namespace

bool is_kept_result(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return true;
  if (!is_json_file(path)) return false;
  const bool there = std::filesystem::is_regular_file(path, error);  // else a point, "a.json#2"
  return !there || !is_launch_json({path, read_input(path)});
}

Asked result_side(const std::string& path, const std::string& name, const Catalogue& catalogue) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  const fs::path file = folder ? fs::path(path) / "results.json" : fs::path(path);
  Side side = read_side(file.string());
  side.name = name;
  const fs::path scenario = file.parent_path() / "scenario.toml";
  const bool ours = file.filename() == "results.json" && fs::exists(scenario, error) &&
                    read_mark(file.parent_path().string());
  if (ours) side.scenario = read_scenario(read_toml_file(scenario.string()), catalogue);
  return {name, std::nullopt, std::move(side)};
}

void add_document_of(std::vector<Asked>& out, const Verb& verb, const Arguments& arguments,
                     const Catalogue& catalogue, const std::string& file, const std::string& name) {
  const std::vector<std::string> files(file.empty() ? 0U : 1U, file);
  add_document(out, asked_document(verb, arguments, catalogue, files, ""), name);
}

namespace {

constexpr Option compare_options[] = {
    {"what-if", "KEY=VALUE", "",
     "a changed key: \"node.nic = 800 Gbit/s\", or a factor: \"gpu.tensor_peak x2\"; may be "
     "repeated"},
    {"without", "WHAT[,WHAT]", "",
     "what the step would be without interference, latency, bandwidth, jitter, sharing; or all"},
    {"orders", "N", "", "random orders that share out more than six changes (default: 50)"},
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
    {"svg", "PATH", "",
     "also draw the way from the first to the last as a waterfall, FILE.svg; or every chart, DIR"},
    report_option,
    json_option,
    rows_option,
    {"threads", "N", "", "scenarios to run at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

/// Of these an option may name several, each a side of its own.
constexpr const char* listed_options[] = {"gpu", "model", "node", "fabric", "framework"};

const std::vector<Option>& verb_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out = with_scenario_options(step_tables, compare_options);
    std::erase_if(out, [](const Option& option) {  // of run's two of that name, compare's own stays
      return option.name == std::string_view("without") && *option.key != '\0';
    });
    return out;
  }();
  return options;
}

Verb compare_verb() {
  return {
      "stepcast compare",
      "[A B ...]",
      99,
      "Side by side: scenarios (TOML), results (what --json or --out wrote), measured traces "
      "(what validate trace --json wrote), in any mix; what-ifs of one scenario; or one scenario "
      "on several machines (--gpu a100,h100).",
      verb_options(),
      "stepcast compare --model llama2-7b --nodes 16 --local-batch 2 --gpu a100,h100,b200"};
}

/// The option that names several, if one does.
std::optional<std::string> listed_option(const Arguments& arguments) {
  std::optional<std::string> out;
  for (const char* option : listed_options) {
    if (arguments.get(option).find(',') == std::string::npos) continue;
    if (out)
      throw UsageError(fmt::format("both --{} and --{} name several", *out, option),
                       "one of them can be compared");
    out = option;
  }
  return out;
}

/// The same words with one value of a listed option.
Arguments with_value(const Verb& verb, const Arguments& arguments, const std::string& option,
                     const std::string& value) {
  std::vector<std::string> words = arguments.words();
  const std::string list = arguments.get(option), name = "--" + option;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name + "=" + list) words[i] = name + "=" + value;
    if (i > 0 && words[i - 1] == name && words[i] == list) words[i] = value;
  }
  return parse_arguments(verb, words);
}

void add_scenario(std::vector<Asked>& out, const Arguments& arguments, const Catalogue& catalogue,
                  const std::string& file, const std::string& name) {
  const Verb verb = compare_verb();
  const auto several = listed_option(arguments);
  if (!several) return add_document_of(out, verb, arguments, catalogue, file, name);
  const std::string values = arguments.get(*several);
  for (const std::string_view each : split(values, ',')) {
    const std::string value(each);
    add_document_of(out, verb, with_value(verb, arguments, *several, value), catalogue, file,
                    file.empty() ? value : name + " " + value);
  }
}

bool sets_keys(const Arguments& arguments) {
  return arguments.has("gpu") || arguments.has("framework") ||
         !settings_of(compare_verb(), arguments).empty();
}

/// The file's name alone where that tells the sides apart.
std::string name_of(const std::string& file, const Arguments& arguments) {
  const auto last = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  const auto alike = std::ranges::count(arguments.positional(), last(file), last);
  return alike == 1 && !last(file).empty() ? last(file) : file;
}

std::vector<Asked> asked_of(const Arguments& arguments, const Catalogue& catalogue) {
  std::vector<Asked> out;
  bool scenarios = false;
  for (const std::string& file : arguments.positional()) {
    if (is_kept_result(file)) {
      out.push_back(result_side(file, name_of(file, arguments), catalogue));
    } else {
      add_scenario(out, arguments, catalogue, file, name_of(file, arguments));
      scenarios = true;
    }
  }
  if (arguments.positional().empty() && sets_keys(arguments)) {
    add_scenario(out, arguments, catalogue, "", "as given");
    scenarios = true;
  }
  if (!scenarios && sets_keys(arguments))
    throw UsageError("options change scenarios, and a result is what it is",
                     "give a scenario (TOML) beside the results");
  return out;
}

OrderDraw draw_of(const Arguments& arguments) {
  return {static_cast<std::size_t>(arguments.count("orders", 50)), arguments.seed()};
}

/// Of one scenario: --what-if or --without.
Comparison changes_of(std::vector<Asked> asked, Runner& runner, const Arguments& arguments) {
  const bool what_ifs = arguments.has("what-if");
  const char* option = what_ifs ? "--what-if" : "--without";
  if (what_ifs && arguments.has("without"))
    throw UsageError("both --what-if and --without", "give one of them");
  if (asked.size() != 1 || !asked.front().document)
    throw UsageError(std::string(option) + " changes one scenario",
                     "give one, as a file without [sweep] or as options");
  const auto changes = what_ifs ? what_if_changes(arguments.all("what-if"))
                                : ablation_changes(arguments.get("without"));
  return compare_changes(*asked.front().document, asked.front().name, changes,
                         what_ifs ? About::what_ifs : About::ablations, runner, draw_of(arguments));
}

Comparison comparison_of(std::vector<Asked> asked, Runner& runner, const Arguments& arguments) {
  if (arguments.has("what-if") || arguments.has("without"))
    return changes_of(std::move(asked), runner, arguments);
  if (asked.size() < 2)
    throw UsageError("what is there to compare?",
                     "give two files, --what-if, --without all, or --gpu a100,h100");
  return compare_sides(std::move(asked), runner, draw_of(arguments));
}

}  // namespace

Comparison compare_asked(const Arguments& arguments, const Catalogue& catalogue, Runner& runner) {
  return comparison_of(asked_of(arguments, catalogue), runner, arguments);
}

namespace {

/// False after a message; the answer is printed whatever becomes of it.
bool write_picture(const Comparison& comparison, const std::string& path) {
  const auto answered = std::ranges::count_if(comparison.sides, &Side::answered);
  try {
    if (answered < 2) throw OutputError(path, "not written", "fewer than two sides have an answer");
    write_whole(path, difference_chart(comparison).svg);
    return true;
  } catch (const OutputError& error) {
    tell(stderr, std::string(error.what()) + "\n");
    return false;
  }
}

int compare(const Arguments& arguments, const Catalogue& catalogue) {
  stop_requested();  // before anything is read
  check_forms(arguments);
  Session session(catalogue);
  Runner runner(session, {arguments.threads(), Progress::style_for(arguments.has("quiet")),
                          arguments.has("ignore-memory")});
  const Comparison out = compare_asked(arguments, catalogue, runner);
  const ToldSection told = told_of(out);
  const bool printed = print_answer(arguments, forms_of(told, "compare", {"sides"}));
  if (std::ranges::none_of(out.sides, &Side::answered)) return exit_no_feasible_plan;
  const std::string svg = arguments.get("svg");
  bool written = (!svg.ends_with(".svg") || write_picture(out, svg)) && printed;
  const HandoutFiles files{arguments.get("report"), svg.ends_with(".svg") ? "" : svg};
  if (files.any())
    written =
        handed_out(files,
                   [&] {
                     return comparison_page(out, catalogue, origin_of(compare_verb(), arguments));
                   }) &&
        written;
  return written ? exit_ok : exit_unwritten;
}

}  // namespace

Command compare_command() {
  return {.verb = compare_verb(), .run = compare, .schema = compare_schema};
}

}  // namespace stepcast::sim
