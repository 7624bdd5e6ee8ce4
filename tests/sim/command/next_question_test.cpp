#include "sim/command/next_question.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/made_up_answers.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

constexpr Option asking[] = {
    {"model", "NAME", "model.name", "sets a key"},
    {"sequence-parallel", "", "plan.sequence_parallel", "a switch with a key"},
    {"stages", "LAYOUT", "plan.stages", "a plan's layout"},
    {"micro-batch", "N", "batch.micro_batch", "a knob of a search"},
    {"recipe", "NAME", "precision.recipe", "searched on request alone"},
    {"set", "KEY=VALUE", "", "sets any key"},
    {"gpu", "NAME", "", "becomes keys"},
    {"threads", "N", "", "says how to answer"},
    {"json", "", "", "says how to answer"},
};
const Verb asking_verb{"stepcast run", "[FILE]", 1, "Runs.", asking, ""};

std::string words(const std::vector<std::string>& given, Keys keys = Keys::all) {
  return scenario_words(asking_verb, parse_arguments(asking_verb, given), keys);
}
std::string question(const Answer& answer, const std::string& scenario) {
  return next_question(answer, scenario, scenario);
}

/// Of a step of one second; 40 GiB of 79.6 GiB are used.
StepReport report_with(Duration exposed, Duration bubble) {
  StepReport report;
  report.step_time = Duration(1'000'000'000'000);
  report.exposed.data = exposed;
  report.bubble = bubble;
  report.scenario.node.gpu.memory = 80_GiB;
  report.memory.parts = {{"parameters", 60_GiB}};
  return report;
}

constexpr Duration ms(std::int64_t count) { return Duration(count * 1'000'000'000); }

}  // namespace

TEST_CASE("a scenario's words are its file and its keys, as a shell reads them back") {
  CHECK(words({"a.toml"}) == " a.toml");
  CHECK(words({"--json", "--threads", "3", "a.toml", "--gpu", "h100"}) == " a.toml --gpu h100");
  CHECK(words({"--sequence-parallel", "--model=llama2-7b"}) ==
        " --model llama2-7b --sequence-parallel");
  CHECK(words({"my file.toml", "--set", "plan.tensor=2", "title=it's"}) ==
        " 'my file.toml' --set plan.tensor=2 --set 'title=it'\\''s'");
  CHECK(words({}) == "");
}

TEST_CASE("a run ends with what to ask next: why where communication shows, always search") {
  const std::string exposed = question(report_with(ms(240), ms(100)), " a.toml");
  CHECK(exposed ==
        "\nnext                  24.0 % of the step is exposed communication: stepcast why a.toml\n"
        "                      a faster plan: stepcast search a.toml\n");
  CHECK_THAT(question(report_with(ms(90), ms(300)), ""), Contains("30.0 % of the step is bubble"));
  CHECK(question(report_with(ms(90), ms(90)), " a.toml") ==
        "\nnext                  a faster plan: stepcast search a.toml\n");
  StepReport small = report_with(ms(0), ms(0));
  small.memory.parts = {{"parameters", 20_GiB}};
  CHECK_THAT(question(small, ""), Contains("75.0 % of the memory is free for a faster plan: "));
}

TEST_CASE("after a refusal the question is which plans fit, after a collective there is none") {
  CHECK(question(Refused{}, " a.toml") ==
        "\nnext                  plans that fit: stepcast search a.toml\n");
  CHECK(question(CollectiveReport{}, " a.toml").empty());
}

TEST_CASE("what a search chooses is not pinned to the plan that was run") {
  CHECK(
      words({"a.toml", "--sequence-parallel", "--stages=Et|tL", "--micro-batch=2", "--recipe=mxfp8",
             "--set", "plan.tensor=2", "software.framework=\"nemo\"", "plan.schedule=\"zb_h1\""},
            Keys::without_plan) ==
      " a.toml --recipe mxfp8 --set 'software.framework=\"nemo\"' --set "
      "'plan.schedule=\"zb_h1\"'");
  const std::string text =
      next_question(report_with(ms(240), ms(0)), " a.toml --tensor 2", " a.toml");
  CHECK_THAT(text, Contains("stepcast why a.toml --tensor 2\n"));
  CHECK_THAT(text, Contains("stepcast search a.toml\n"));
}
