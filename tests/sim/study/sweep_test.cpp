#include "sim/study/sweep.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>

#include "engine/check.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"
#include "sim/told/json.hpp"
#include "sim/told/text.hpp"
#include "tests/sim/made_up_answers.hpp"

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
  for (std::size_t i = 0; i < s.num_points(); ++i) {
    const SweepPoint point = s.point(i);
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
  REQUIRE(s.num_points() == 1);
  CHECK(s.point(0).empty());
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
  CHECK_THAT(refusal(huge), Contains("points of a sweep are more than the budget"));
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
  CHECK(chosen.open.empty());
}

TEST_CASE("best degrees are those that divide heads and GPUs, and respect a fixed degree") {
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
  CHECK_THAT(std::get<Refused>(best).reason,
             Contains("none of ") && Contains("plans fits; the nearest, tensor "));
}

TEST_CASE("a million points take no memory until they are asked for") {
  std::string thousand = "1";
  for (int i = 2; i <= 1000; ++i) thousand += ", " + std::to_string(i);
  const Study s = study("[sweep]\n\"a.x\" = [" + thousand + "]\n\"a.y\" = [" + thousand + "]\n");
  CHECK(s.num_points() == 1'000'000);
  const SweepPoint point = s.point(123'456);
  CHECK(std::get<std::int64_t>(point[0].value.data) == 124);
  CHECK(std::get<std::int64_t>(point[1].value.data) == 457);
}

namespace {

Study steps(const std::string& plan, const std::string& sweep) {
  return study(
      "[model]\nname = \"llama2-7b\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = 4\n[plan]\n" + plan +
      "\n[batch]\nlocal = 1\n[sweep]\n" + sweep + "\n");
}

Results run(Study s, const Simulator& simulator = made_up_simulator(), unsigned threads = 1) {
  static const std::atomic<bool> stop = false;
  return run_study(
      std::move(s),
      {.read = read_shipped, .simulator = simulator, .threads = threads, .stop = stop});
}

using State = PointRows::State;

}  // namespace

TEST_CASE("points are answered in order, the same on one thread and on four") {
  const Study s =
      steps("tensor = 1", "\"cluster.nodes\" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]");
  const Results one = run(s), four = run(s, made_up_simulator(), 4);
  CHECK_FALSE(one.interrupted);
  CHECK(to_json(one) == to_json(four));
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(four.rows.row(i).number("nodes") == static_cast<double>(i) + 1);
}

TEST_CASE("an interrupt keeps the finished points") {
  std::atomic<bool> stop = false;
  const Results results = run_study(steps("tensor = 1", "\"cluster.nodes\" = [1, 2, 3, 4, 5]"),
                                    {.read = read_shipped,
                                     .simulator = made_up_simulator(),
                                     .stop = stop,
                                     .finished = [&](std::size_t done) { stop = done == 2; }});
  CHECK(results.interrupted);
  CHECK(results.rows.has(1));
  CHECK_FALSE(results.rows.has(2));
}

TEST_CASE("what a point's values do not allow is its row, and the others are kept") {
  const Results results = run(steps("",
                                    "\"plan.tensor\" = [3, 2, 5]\n\"model.name\" = "
                                    "[\"llama2-7b\", \"lama\"]"));
  CHECK(results.rows.count(State::refused) == 5);
  CHECK(results.rows.count(State::answered) == 1);
  CHECK_THAT(*results.rows.row(0).unanswered(), Contains("refused: a.toml:"));
  CHECK_THAT(*results.rows.row(1).unanswered(), Contains("lama"));
  CHECK_THAT(report_text(results, refused_shown()), Contains("refused: a.toml:"));
}

TEST_CASE("an exception of one point is its row, and the others are kept") {
  const auto broken = [](const Scenario& s) -> StepReport {
    if (s.nodes == 2) throw BrokenPromise("no such link");
    return made_up_report(s);
  };
  const Results results =
      run(steps("tensor = 1", "\"cluster.nodes\" = [1, 2, 4]"), {broken, made_up_collective}, 2);
  CHECK(results.rows.count(State::answered) == 2);
  CHECK(results.rows.row(1).unanswered() == "failed: no such link");
  CHECK_THAT(to_json(results), Contains("\"failed\": \"no such link\""));
}

TEST_CASE("a mistake that all points share is the document's") {
  const auto never = [](const Scenario&) -> StepReport { throw BrokenPromise("was simulated"); };
  const std::string nodes = "\"cluster.nodes\" = [1, 2, 4]";
  CHECK_THROWS_WITH(run(steps("tensr = 2", nodes), {never, made_up_collective}),
                    Contains("a.toml:7") && Contains("tensr"));
  CHECK_THROWS_AS(run(steps("", "\"cluster.nodez\" = [1, 2]")), InputError);
  const auto damaged = [](const Scenario&) -> StepReport { throw InputError("x.h5", "truncated"); };
  CHECK_THROWS_WITH(run(steps("", nodes), {damaged, made_up_collective}), Contains("x.h5"));
}

TEST_CASE("shards share the points among them") {
  const Study s = steps("tensor = 1", "\"cluster.nodes\" = [1, 2, 3, 4, 5]");
  const std::atomic<bool> stop = false;
  std::size_t all = 0;
  for (std::size_t index = 1; index <= 3; ++index) {
    const Results results = run_study(s, {.read = read_shipped,
                                          .simulator = made_up_simulator(),
                                          .stop = stop,
                                          .shard = {index, 3}});
    CHECK(results.rows.has(index - 1));
    CHECK(results.rows.count(State::answered) == num_points(s, {index, 3}));
    all += results.rows.count(State::answered);
  }
  CHECK(all == 5);
  CHECK(read_shard("2/8").index == 2);
  for (const char* wrong : {"", "2", "0/4", "5/4", "1/", "/2", "1/2/3", "-1/2", "x/2"})
    CHECK_THROWS_AS(read_shard(wrong), UsageError);
}
