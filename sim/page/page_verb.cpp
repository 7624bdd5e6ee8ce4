#include "sim/page/page_verb.hpp"

#include <algorithm>
#include <cstdio>

#include "engine/check.hpp"
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

/// As they were given, without the file and without --out.
std::vector<std::string> words_of_question(const Arguments& arguments) {
  std::vector<std::string> out;
  const std::vector<std::string>& given = arguments.words();
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == "--out")
      ++i;
    else if (!given[i].starts_with("--out=") &&
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
PageQuestion asked_question(const Arguments& arguments, const Catalogue& catalogue) {
  PageQuestion out{.words = words_of_question(arguments)};
  if (out.words.empty() && arguments.positional().empty()) return out;
  const Study study = read_study(asked_document(page_verb(), arguments, catalogue));
  const std::string text = scenario_text(study.document_of(study.point(0)), catalogue);
  if (!arguments.positional().empty()) out = {{page_scenario}, text};
  return out;
}

int page(const Arguments& arguments, const Catalogue& catalogue) {
  const PageQuestion question = asked_question(arguments, catalogue);
  const std::string out = arguments.get("out", "stepcast.html");
  write_html(out, page_file(question, page_options(), catalogue));
  tell(stdout, out + "\n");
  return exit_ok;
}

}  // namespace

Command page_command() { return {page_verb(), page}; }

}  // namespace stepcast::sim
