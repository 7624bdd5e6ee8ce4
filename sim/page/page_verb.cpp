#include "sim/page/page_verb.hpp"

#include <algorithm>
#include <cstdio>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/files/printable.hpp"
#include "sim/page/page_file.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {
namespace {

constexpr Option own_page_options[] = {
    {"out", "FILE.html", "", "the page (default: stepcast.html)"},
};

const std::vector<Option>& page_options() {
  static const std::vector<Option> options = with_scenario_options(step_tables, own_page_options);
  return options;
}

Verb page_verb() {
  return {"stepcast page",
          "[SCENARIO.toml]",
          1,
          "Writes the program itself as one HTML file that answers in a browser, without a network "
          "and to the same picosecond; it opens with the question of these options.",
          page_options(),
          "stepcast page --model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1"};
}

constexpr Option live_option{
    "live", "", "", "as a page of the program: the question can be changed, the report follows"};

/// As they were given, without the file, --out and --live.
std::vector<std::string> words_of_question(const Arguments& arguments) {
  std::vector<std::string> out;
  const std::vector<std::string>& given = arguments.words();
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == "--out")
      ++i;
    else if (!given[i].starts_with("--out=") && given[i] != "--live" &&
             std::ranges::count(arguments.positional(), given[i]) == 0)
      out.push_back(given[i]);
  }
  return out;
}

/// As its author wrote it, so that options change it as they change the file; whole, where it names
/// files that a page has not.
std::string scenario_text(const TomlValue& document, const Catalogue& catalogue) {
  const Scenario scenario = read_scenario(document, catalogue);
  const std::string text = write_toml(document);
  try {
    read_scenario(read_toml(text, page_scenario), catalogue);
    return text;
  } catch (const InputError&) {
    return write_toml(resolved_document(scenario));
  }
}

/// Throws InputError where the program would refuse the question.
PageQuestion asked_question(const Verb& verb, const Arguments& arguments,
                            const Catalogue& catalogue) {
  PageQuestion out{.words = words_of_question(arguments)};
  if (out.words.empty() && arguments.positional().empty()) return out;
  const TomlValue document = asked_document(verb, arguments, catalogue);
  const Study study = read_study(document);
  if (study.is_sweep)
    throw InputError(document.where, "has a [sweep], and a page opens with one question",
                     "leave it out: the page draws curves and maps of its own");
  const std::string text = scenario_text(study.document_of(study.point(0)), catalogue);
  if (!arguments.positional().empty()) out = {{page_scenario}, text};
  return out;
}

int write_page(const PageQuestion& question, const std::string& out, const Catalogue& catalogue) {
  write_html(out, page_file(question, page_options(), catalogue));
  tell(stdout, out + "\n");
  return exit_ok;
}

int page(const Arguments& arguments, const Catalogue& catalogue) {
  return write_page(asked_question(page_verb(), arguments, catalogue),
                    arguments.get("out", "stepcast.html"), catalogue);
}

int report(const Arguments& arguments, const Catalogue& catalogue) {
  const Command still = report_command();
  if (!arguments.has("live")) return still.run(arguments, catalogue);
  for (const char* option : {"svg", "no-alternatives", "threads", "scenario-out"})
    if (arguments.has(option))
      throw UsageError("--" + std::string(option) + " is of a report that stands still",
                       "leave out --live");
  if (arguments.positional().size() > 1)
    throw UsageError("a live report is of one step", "leave out --live, or give one scenario");
  PageQuestion question = asked_question(still.verb, arguments, catalogue);
  question.report = true;
  return write_page(question, arguments.get("out", "report.html"), catalogue);
}

}  // namespace

Command page_command() { return {page_verb(), page}; }

Command live_report_command() {
  Command out = report_command();
  static const std::vector<Option> options = [&] {
    std::vector<Option> all(out.verb.options.begin(), out.verb.options.end());
    all.push_back(live_option);
    return all;
  }();
  out.verb.options = options;
  out.run = report;
  return out;
}

}  // namespace stepcast::sim
