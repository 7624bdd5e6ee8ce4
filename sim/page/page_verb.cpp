#include "sim/page/page_verb.hpp"

#include <algorithm>
#include <cstdio>

#include "sim/command/scenario_options.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/page/page_file.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"

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

int page(const Arguments& arguments, const Catalogue& catalogue) {
  const Verb verb = page_verb();
  PageQuestion question;
  question.words = words_of_question(arguments);
  if (!arguments.words().empty() && !(question.words.empty() && arguments.positional().empty())) {
    const TomlValue document = asked_document(verb, arguments, catalogue);
    const Study study = read_study(document);
    const Scenario scenario = read_scenario(study.document_of(study.point(0)), catalogue);
    if (!arguments.positional().empty()) {
      question.words = {page_scenario};
      question.scenario = write_toml(resolved_document(scenario));
    }
  }
  const std::string out = arguments.get("out", "stepcast.html");
  write_whole(out, page_file(question, verb.options, catalogue));
  tell(stdout, out + "\n");
  return exit_ok;
}

}  // namespace

Command page_command() { return {page_verb(), page}; }

}  // namespace stepcast::sim
