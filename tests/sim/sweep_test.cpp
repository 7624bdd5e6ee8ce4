#include "sim/sweep.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "engine/check.hpp"
#include "made_up_answers.hpp"
#include "sim/answer.hpp"
#include "sim/scenario_file.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

Study study(const std::string& text) { return read_study(read_toml(text, "a.toml")); }

std::string refusal(const std::string& text) {
  try {
    study(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// "nodes=1 tensor=2 | nodes=1 tensor=4 | ..."
std::string points_of(const Study& s) {
  std::string out;
  for (const SweepPoint& point : s.points) {
    out += out.empty() ? "" : " | ";
    for (const Setting& setting : point)
      out += (&setting == &point.front() ? "" : " ") + setting.path + "=" +
             write_toml_value(setting.value);
  }
  return out;
}

Scenario scenario(const std::string& plan, std::int64_t nodes = 4,
                  const std::string& model = "llama2-7b") {
  static const Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  return read_scenario(
      read_toml("[model]\nname = \"" + model + "\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = " +
                    std::to_string(nodes) + "\n[plan]\n" + plan + "\n[batch]\nlocal = 1\n",
                "a.toml"),
      catalogue);
}

}  // namespace

TEST_CASE("a product runs in the order of the file, first key slowest") {
  const Study s = study("[sweep]\n\"b.x\" = [1, 2]\n\"a.y\" = [3, 4]\n");
  CHECK(points_of(s) == "b.x=1 a.y=3 | b.x=1 a.y=4 | b.x=2 a.y=3 | b.x=2 a.y=4");
  CHECK(s.keys == std::vector<std::string>{"b.x", "a.y"});
  CHECK(s.is_sweep);
}

TEST_CASE("keys set together are combined with the product") {
  const Study s = study(
      "[[sweep.point]]\n\"a.x\" = 1\n\"a.y\" = 2\n[[sweep.point]]\n\"a.x\" = 3\n[sweep]\nb.z = [5, "
      "6]\n");
  CHECK(points_of(s) == "a.x=1 a.y=2 b.z=5 | a.x=1 a.y=2 b.z=6 | a.x=3 b.z=5 | a.x=3 b.z=6");
}

TEST_CASE("without a sweep there is one point that sets nothing") {
  const Study s = study("title = \"x\"\n");
  CHECK_FALSE(s.is_sweep);
  REQUIRE(s.points.size() == 1);
  CHECK(s.points[0].empty());
}

TEST_CASE("a sweep with zero points is an error, and so is a key swept twice") {
  CHECK_THAT(refusal("[sweep]\n"), Contains("a.toml:1: [sweep] is empty"));
  CHECK_THAT(refusal("[sweep]\n\"a.x\" = []\n"), Contains("a.toml:2: 'a.x' in [sweep] is empty"));
  CHECK_THAT(refusal("[sweep]\n\"a.x\" = 3\n"), Contains("must be an array of values"));
  CHECK_THAT(refusal("[sweep]\npoint = []\n"), Contains("zero points"));
  CHECK_THAT(refusal("[sweep]\npoint = 3\n"), Contains("[[sweep.point]]"));
  CHECK_THAT(refusal("[[sweep.point]]\n"), Contains("without keys"));
  CHECK_THAT(refusal("[sweep]\n\"a.x\" = [1]\n[sweep.a]\nx = [2]\n"), Contains("swept twice"));
  CHECK_THAT(refusal("[[sweep.point]]\n\"a.x\" = 1\n[sweep]\n\"a.x\" = [1]\n"),
             Contains("swept twice"));
  CHECK_THAT(refusal("sweep = 3\n"), Contains("must be a table"));
  std::string huge = "[sweep]\n";
  for (int axis = 0; axis < 30; ++axis)
    huge += "\"a.x" + std::to_string(axis) + "\" = [1, 2, 3, 4]\n";
  CHECK_THAT(refusal(huge), Contains("more than a million points"));
}

TEST_CASE("a key set on the command line is swept no more") {
  TomlValue document = read_toml("[sweep]\n\"a.x\" = [1, 2]\nb.y = [3, 4]\n", "a.toml");
  override_key(document, "a.x", {std::int64_t{9}, "--set a.x"});
  Study s = read_study(document);
  CHECK(points_of(s) == "b.y=3 | b.y=4");
  override_key(document, "b.y", {std::int64_t{8}, "--set b.y"});
  s = read_study(document);
  CHECK_FALSE(s.is_sweep);
  CHECK(std::get<std::int64_t>(s.base.find("b")->find("y")->data) == 8);
  override_key(document, "sweep.b.y", read_setting("[1, 2]", "--set"));
  CHECK(points_of(read_study(document)) == "b.y=1 | b.y=2");
  TomlValue joint = read_toml("[[sweep.point]]\n\"a.x\" = 1\n", "a.toml");
  CHECK_THROWS_AS(override_key(joint, "a.x", {std::int64_t{9}, "--set"}), InputError);
}

TEST_CASE("known figures are read with their points") {
  const Study s = study(
      "[[reference]]\nmetric = \"mfu\"\nsource = \"x\"\nkeys = [\"a.x\"]\nat = {b.y = 2}\n"
      "change_from = {a.x = 1}\nrows = [[1, 0.5], [2, 3], [3]]\n");
  REQUIRE(s.references.size() == 1);
  REQUIRE(s.references[0].rows.size() == 3);
  CHECK(s.references[0].rows[1].at.size() == 2);
  CHECK(s.references[0].rows[1].value == 3.0);
  CHECK_FALSE(s.references[0].rows[2].value.has_value());  // no figure is known
  CHECK_THAT(
      refusal("[[reference]]\nmetric = \"mfu\"\nsource = \"x\"\nkeys = [\"a\"]\nrows = [[]]\n"),
      Contains("a.toml:5"));
  CHECK_THAT(refusal("[[reference]]\nmetric = \"mfu\"\nkeys = [\"a\"]\nrows = []\n"),
             Contains("missing key 'source'"));
}

TEST_CASE("best degrees: the fastest that fits, the smaller of equals") {
  // tensor 4 is fastest, tensor 8 just as fast; without parallelism it does not fit.
  const auto step = [](const Scenario& s) {
    if (s.plan.tensor == 1) throw NoFeasiblePlan("too big");
    StepReport report = made_up_report(s);
    report.step_time = s.plan.tensor >= 4 ? Duration(100) : Duration(200);
    return report;
  };
  const Answer a = answer(scenario("tensor = \"best\""), {step, made_up_collective});
  REQUIRE(std::holds_alternative<StepReport>(a));
  const Scenario& chosen = std::get<StepReport>(a).scenario;
  CHECK(chosen.plan.tensor == 4);
  CHECK(chosen.plan.pipeline == 1);
  CHECK(chosen.plan.data_degree == 8);
  CHECK_FALSE(chosen.best_tensor);
}

TEST_CASE("best degrees are powers of two that divide heads and GPUs, and respect a fixed degree") {
  std::vector<std::pair<std::int64_t, std::int64_t>> tried;
  const auto step = [&](const Scenario& s) {
    tried.emplace_back(s.plan.tensor, s.plan.pipeline);
    return made_up_report(s);
  };
  answer(scenario("tensor = \"best\"\npipeline = 2", 1), {step, made_up_collective});
  using P = std::pair<std::int64_t, std::int64_t>;
  CHECK(tried == std::vector<P>{{1, 2}, {2, 2}, {4, 2}});  // 8 GPUs: 8 x 2 do not fit
}

TEST_CASE("a plan that does not fit is refused with its reason, also when it is the best") {
  const auto full = [](const Scenario&) -> StepReport { throw NoFeasiblePlan("90 GiB of 80"); };
  const Answer plain = answer(scenario("tensor = 2"), {full, made_up_collective});
  REQUIRE(std::holds_alternative<Refused>(plain));
  CHECK(std::get<Refused>(plain).reason == "90 GiB of 80");
  const Answer best = answer(scenario("tensor = \"best\""), {full, made_up_collective});
  REQUIRE(std::holds_alternative<Refused>(best));
  CHECK_THAT(std::get<Refused>(best).reason, Contains("90 GiB of 80"));
}

TEST_CASE("points are answered in order, the same on one thread and on four") {
  std::vector<Scenario> scenarios;
  for (std::int64_t nodes = 1; nodes <= 12; ++nodes)
    scenarios.push_back(scenario("tensor = 1", nodes));
  const std::atomic<bool> stop = false;
  for (const unsigned threads : {1U, 4U}) {
    std::size_t calls = 0, last = 0;
    const Batched batch = answer_all(scenarios, made_up_simulator(), threads, stop,
                                     [&](std::size_t done) { ++calls, last = done; });
    CHECK(calls == 12);
    CHECK(last == 12);
    CHECK_FALSE(batch.interrupted);
    for (std::size_t i = 0; i < scenarios.size(); ++i)
      CHECK(scenario_of(*batch.answers[i]).nodes == static_cast<std::int64_t>(i) + 1);
  }
}

TEST_CASE("an interrupt keeps the finished points") {
  std::vector<Scenario> scenarios(5, scenario("tensor = 1"));
  std::atomic<bool> stop = false;
  const Batched batch = answer_all(scenarios, made_up_simulator(), 1, stop,
                                   [&](std::size_t done) { stop = done == 2; });
  CHECK(batch.interrupted);
  CHECK(batch.answers[1].has_value());
  CHECK_FALSE(batch.answers[2].has_value());
}

TEST_CASE("an error of one point ends the whole") {
  std::vector<Scenario> scenarios(5, scenario("tensor = 1"));
  const std::atomic<bool> stop = false;
  const auto broken = [](const Scenario&) -> StepReport { throw InputError("x.h5", "truncated"); };
  CHECK_THROWS_AS(answer_all(scenarios, {broken, made_up_collective}, 2, stop, [](std::size_t) {}),
                  InputError);
}
