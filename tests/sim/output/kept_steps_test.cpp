// Steps from a folder are the session's own, to the last digit; a folder of plans gives way to
// none.
#include "sim/output/kept_steps.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <limits>

#include "engine/check.hpp"
#include "sim/output/answer_files.hpp"
#include "sim/scenario/file.hpp"
#include "sim/told/json.hpp"
#include "sim/told/step_row.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"
#include "tests/sim/made_up_answers.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

/// A folder that is gone at the end.
class PlanFolder {
 public:
  PlanFolder() { fs::remove_all(path_); }
  ~PlanFolder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string text(const std::string& name) const {
    std::ifstream file(path_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
  }

 private:
  std::string path_ = tests::own_folder() / ("stepcast-plans-" + std::to_string(getpid()));
};

TomlValue document_of(const std::string& more = "") {
  return read_toml(
      "[model]\nname = \"llama2-7b\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n"
      "[batch]\nlocal = 1\n" +
          more,
      "a.toml");
}

OutputFolder opened(const PlanFolder& folder, bool resume, const std::string& part = "",
                    const std::string& verb = "search", const TomlValue& document = document_of()) {
  return {{folder.path(), resume, part, {}, verb}, document, catalogue().directory()};
}

/// Whatever a report says.
std::string all_of(const StepReport& report) {
  StepReport shown = report;
  return to_json(Answer(shown)) + step_row(report, 0);
}

}  // namespace

TEST_CASE("a kept step is the session's to the last digit, with its warnings, and simulated once") {
  const PlanFolder folder;
  std::vector<Scenario> scenarios;
  for (const char* plan :
       {"[plan]\ndata = \"zero3\"\n", "[plan]\ndata = \"zero2\"\ntensor = 2\npipeline = 2\n",
        "[plan]\noptimizer_offload = 0.5\ndata = \"zero2\"\n[software]\nframework = "
        "\"deepspeed\"\n",
        "[plan]\ndata = \"zero1\"\ntensor = 4\nsequence_parallel = true\n[run]\nfold = true\n"})
    try {
      scenarios.push_back(read_scenario(document_of(plan), catalogue()));
    } catch (const InputError&) {
      continue;  // a key of another framework
    }
  REQUIRE(scenarios.size() >= 3);
  scenarios.push_back(scenarios[0]);
  scenarios.back().run.check_fold = true;  // its simulation has a warning
  std::vector<std::string> simulated;
  {
    OutputFolder own = opened(folder, false);
    KeptSteps steps(own, session());
    for (const Scenario& scenario : scenarios) {
      CHECK_FALSE(steps.knows(scenario));
      simulated.push_back(all_of(steps.step(scenario)));
      CHECK(simulated.back() == all_of(session().step(scenario)));
      CHECK(all_of(steps.step(scenario)) == simulated.back());
    }
    CHECK(steps.simulated() == scenarios.size());
    CHECK(steps.recalled() == scenarios.size());
  }
  CHECK(simulated.back().find("fold checked") != std::string::npos);
  OutputFolder again = opened(folder, true);
  KeptSteps steps(again, session());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    CHECK(steps.knows(scenarios[i]));
    CHECK(all_of(steps.step(scenarios[i])) == simulated[i]);
  }
  CHECK(steps.simulated() == 0);
}

TEST_CASE("a row holds every member that a simulation fills in, also infinite ones") {
  const Scenario scenario = read_scenario(document_of(), catalogue());
  StepReport made = made_up_report(scenario);
  made.exposed.expert = Duration(7);
  made.exposed.offload = Duration(8);
  made.step_deviation = Duration(9);
  made.tokens_per_second = 0.1 + 0.2;
  made.tokens_per_joule = std::numeric_limits<double>::infinity();
  StepReport read;
  read.scenario = scenario;
  read.memory = made.memory;
  read_step_row(step_row(made, 0), read);
  CHECK(step_row(read, 0) == step_row(made, 0));
  CHECK(read.warnings == made.warnings);
  made.tokens_per_joule = read.tokens_per_joule = 1;
  CHECK(to_json(Answer(read)) == to_json(Answer(made)));
  CHECK_THROWS_AS(read_step_row("{\"step_ps\":1}", read), InputError);
}

TEST_CASE("a folder of plans knows which of its shards are finished") {
  const PlanFolder folder;
  using Parts = std::vector<std::string>;
  CHECK(opened(folder, false).unfinished() == Parts{"the whole"});
  opened(folder, false, "1-of-3").note_finished();
  {
    OutputFolder second = opened(folder, false, "2-of-3");
    CHECK(second.unfinished() == Parts{"2/3", "3/3"});
    second.note_finished();
  }
  CHECK_THROWS_AS(opened(folder, false, "2-of-3"), InputError);
  opened(folder, true, "2-of-3").note_finished();  // once is enough
  CHECK(folder.text("results.2-of-3.jsonl").find('\n') + 1 ==
        folder.text("results.2-of-3.jsonl").size());
  opened(folder, false, "3-of-3").note_finished();
  CHECK(opened(folder, true).unfinished().empty());
}

TEST_CASE("a folder of plans is no other study's, unless nothing is in it") {
  const PlanFolder folder;
  const TomlValue other = document_of("[plan]\ntensor = 2\n");
  opened(folder, false);
  opened(folder, false, "", "search", other);  // nothing was there
  opened(folder, false, "", "search", other).note_finished();
  CHECK_THROWS_AS(opened(folder, false, "", "search", other), InputError);
  CHECK_THROWS_AS(opened(folder, true), InputError);
  CHECK_THROWS_AS(opened(folder, false), InputError);
  CHECK_THROWS_AS(opened(folder, true, "", "design", other), InputError);
  CHECK_THROWS_AS(opened(folder, false, "", "", other), InputError);
  opened(folder, true, "", "search", other);
}

TEST_CASE("an answer takes the place of its own earlier files, and of no others") {
  const PlanFolder folder;
  OutputFolder own = opened(folder, false);
  own.write_answer({{"search.json", "1"}, {"fsdp.json", "of an earlier best"}});
  own.write_answer({{"search.json", "2"}, {"megatron.args", "of another"}});
  CHECK(folder.text("search.json") == "2");
  CHECK_FALSE(fs::exists(folder.path() + "/fsdp.json"));
  folder.put("search.json", "the user's");
  CHECK_THROWS_AS(own.write_answer({{"search.json", "3"}}), InputError);
  CHECK(folder.text("search.json") == "the user's");
  CHECK(folder.text("megatron.args") == "of another");
}

}  // namespace stepcast::sim
