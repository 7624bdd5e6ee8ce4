#include "sim/command/next_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/files/text_table.hpp"
#include "sim/search/knobs.hpp"

namespace stepcast::sim {
namespace {

/// Options that say what is asked, and not how to answer.
bool is_of_scenario(const Option& option) {
  constexpr std::string_view others[] = {"gpu", "framework", "nccl-env", "set"};
  return *option.key != '\0' || std::ranges::count(others, option.name) > 0;
}

/// What a search is free to choose: said on its command line, it would be the only value.
bool is_of_plan(std::string_view key) {
  if (key == "plan.stages") return true;
  const Knob* knob = find_knob(key);
  return knob != nullptr && !knob->on_request && !key.starts_with("software.");
}

constexpr double worth_asking = 0.1;  // of the step: less is not what makes it slow

/// The largest part of the step that is no computation, in words; none where all are small.
std::string loss_of(const StepReport& report) {
  const std::pair<Duration, const char*> parts[] = {
      {report.exposed.total(), "exposed communication"},
      {report.bubble, "bubble"},
      {report.wait, "waiting"},
      {report.host, "the host"}};
  const auto& [span, name] =
      *std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; });
  const double step = seconds(report.step_time);
  const double share = step > 0 ? seconds(span) / step : 0;
  return share < worth_asking ? "" : fmt::format("{} of the step is {}", percent(share), name);
}

std::string lines_of(const std::vector<std::pair<std::string, std::string>>& questions) {
  std::string out = "\n";
  for (const auto& [question, command] : questions)
    out += fmt::format("{:<22}{}: {}\n", out.size() == 1 ? "next" : "", question, command);
  return out;
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char letter : word)
    if (letter == '\'')
      out += "'\\''";
    else
      out += letter;
  return out + "'";
}

std::string scenario_words(const Verb& verb, const Arguments& arguments, Keys keys) {
  const auto told = [&](std::string_view key) { return keys == Keys::all || !is_of_plan(key); };
  std::string out;
  for (const std::string& word : arguments.positional()) out += " " + shell_word(word);
  for (const Option& option : verb.options) {
    if (!is_of_scenario(option) || !arguments.has(option.name) || !told(option.key)) continue;
    const std::string name = " --" + std::string(option.name);
    if (*option.argument == '\0') out += name;
    for (const std::string& value : arguments.all(option.name))
      if (option.name != std::string_view("set") || told(value.substr(0, value.find('='))))
        out += name + " " + shell_word(value);
  }
  return out;
}

std::string command_words(const Verb& verb, const Arguments& arguments) {
  std::string out = verb.name;
  for (const std::string& word : arguments.words()) out += " " + shell_word(word);
  return out;
}

std::string next_question(const Answer& answer, const std::string& scenario,
                          const std::string& open_scenario) {
  const std::string search = "stepcast search" + open_scenario;
  if (std::holds_alternative<Refused>(answer)) return lines_of({{"plans that fit", search}});
  const auto* report = std::get_if<StepReport>(&answer);
  if (report == nullptr) return {};
  std::vector<std::pair<std::string, std::string>> questions;
  if (const std::string loss = loss_of(*report); !loss.empty())
    questions.emplace_back(loss, "stepcast why" + scenario);
  const Scenario& s = report->scenario;
  if (s.goal.on() && s.plan.pipeline > 1 && !s.noise.on())
    questions.emplace_back("stages that may go slower, and what that saves",
                           "stepcast why" + scenario);
  const double used = static_cast<double>(report->memory.total().value) /
                      static_cast<double>(report->scenario.node.gpu.memory.value);
  questions.emplace_back(
      used < 0.5 ? percent(1 - used) + " of the memory is free for a faster plan" : "a faster plan",
      search);
  return lines_of(questions);
}

}  // namespace stepcast::sim
