#include "sim/confidence/confidence.hpp"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/confidence/own_runs.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

const std::string small = R"([model]
name = "small"
sequence = 512
layers = 4
hidden = 1024
heads = 16
ffn_hidden = 4096
vocab = 32000
[cluster]
node = "dgx-a100"
nodes = 2
[plan]
data = "ddp"
[batch]
local = 4
)";

Scenario read(const std::string& text) {
  return read_scenario(read_toml(text, "own.toml"), catalogue());
}

StepReport judged(const Scenario& scenario) {
  static const Simulator simulator = simulator_of(session());
  return std::get<StepReport>(answer(scenario, simulator));
}

/// A file that is gone with the test.
struct Table {
  explicit Table(const std::string& text)
      : path((tests::own_folder() / (std::to_string(getpid()) + "own.csv")).string()) {
    write_whole(path, text);
  }
  ~Table() { std::filesystem::remove(path); }
  std::string path;
};

}  // namespace

TEST_CASE("a bar holds the forecast's level, and a surer one is wider") {
  Scenario scenario = read(small);
  const StepReport at80 = judged(scenario);
  REQUIRE(at80.step_bar);
  CHECK(at80.step_bar->low < 1.0);
  CHECK(at80.step_bar->high > 1.0);
  CHECK(at80.step_bar->level == 0.8);
  scenario.run.confidence = 0.9;
  const StepReport at90 = judged(scenario);
  CHECK(at90.step_bar->high / at90.step_bar->low > at80.step_bar->high / at80.step_bar->low);
  CHECK(at90.step_time == at80.step_time);
  scenario.run.confidence = 0.99;
  CHECK_THROWS_WITH(judged(scenario), Contains("own.toml") && Contains("at most"));
}

TEST_CASE("however low its level, a bar holds the forecast that it is about") {
  Scenario scenario = read(small);
  for (const double level : {0.01, 0.1, 0.3}) {
    scenario.run.confidence = level;
    const StepReport report = judged(scenario);
    CAPTURE(level);
    CHECK((report.step_bar->low <= 1.0 && report.step_bar->high >= 1.0));
    CHECK((report.memory_bar->low <= 1.0 && report.memory_bar->high >= 1.0));
  }
}

TEST_CASE("what nobody has measured has a wider bar") {
  const Case hopper{"hopper", "megatron-lm", "nodes"},
      blackwell{"blackwell", "megatron-lm", "nodes"};
  const Evidence shipped = read_evidence(STEPCAST_SOURCE_DIR "/scenarios/confidence");
  const auto known = interval_for(hopper, shipped.steps, 0.8, shipped.shift),
             unknown = interval_for(blackwell, shipped.steps, 0.8, shipped.shift);
  CHECK(unknown->high - unknown->low > 1.5 * (known->high - known->low));
}

TEST_CASE("own runs of a step that takes longer than forecast move and narrow its bar") {
  Scenario scenario = read(small);
  const StepReport before = judged(scenario);
  const double measured = 1.3 * seconds(before.step_time);
  const Table table("id,step_time_s\na," + std::to_string(measured) + "\nb," +
                    std::to_string(measured) + "\nc," + std::to_string(measured) + "\n");
  scenario.runs = {table.path};
  const StepReport after = judged(scenario);
  CHECK(after.step_time == before.step_time);
  CHECK(after.step_bar->own_runs == 3);
  const auto centre = [](const ErrorBar& b) { return 0.5 * std::log(b.low * b.high); };
  const auto width = [](const ErrorBar& b) { return std::log(b.high / b.low); };
  CHECK(centre(*after.step_bar) > centre(*before.step_bar) + 0.25 * std::log(1.3));
  CHECK(centre(*after.step_bar) < std::log(1.3));
  CHECK(width(*after.step_bar) < width(*before.step_bar));
}

TEST_CASE("an own run says what it differs in by the columns of published runs or by keys") {
  const Table table(
      "gpus,seq_len,global_batch_seqs,tp,plan.prefetch,step_time_s,tokens_per_s_per_gpu,notes\n"
      "8,256,64,2,3,0.5,,first\n"
      ",,,,,,1000,second\n");
  const auto runs = read_own_runs(table.path, read(small), catalogue());
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].scenario.nodes == 1);
  CHECK(runs[0].scenario.batch.sequence == 256);
  CHECK(runs[0].scenario.global_batch == 64);
  CHECK(runs[0].scenario.plan.tensor == 2);
  CHECK(runs[0].scenario.plan.prefetch == 3);
  CHECK(seconds(runs[0].step) == 0.5);
  // 16 GPUs x 4 sequences of 512 tokens, a thousand tokens per second and GPU.
  CHECK(runs[1].scenario.gpus == 16);
  CHECK(seconds(runs[1].step) == Approx(4 * 512 / 1000.0));
}

TEST_CASE("mistakes in own runs name file and line") {
  const auto error_of = [](const std::string& text) {
    const Table table(text);
    try {
      read_own_runs(table.path, read(small), catalogue());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(error_of("tp,step_time_s\n2,fast\n"),
             Contains("own.csv:2: 'fast' in column step_time_s"));
  CHECK_THAT(error_of("tp\n2\n"), Contains("own.csv:2: says nothing that was measured"));
  CHECK_THAT(error_of("tp,step_time_s\n2,1\n3,1\n"),
             Contains("own.csv:3: ") && Contains("tensor 3"));
  CHECK_THAT(error_of("tps,step_time_s\n2,1\n"), Contains("own.csv:1: unknown column"));
  CHECK_THAT(error_of("gpus,step_time_s\n12,1\n"), Contains("own.csv:2: '12' in column gpus"));
  CHECK_THAT(error_of("tp,step_time_s\n"), Contains("holds no run"));
}

TEST_CASE("degrees that were chosen say how sure it is that the next best are slower") {
  Scenario scenario = read(small);
  CHECK_FALSE(judged(scenario).runner_up);
  scenario.open = {"plan.tensor"};
  const StepReport report = judged(scenario);
  REQUIRE(report.runner_up);
  CHECK(report.runner_up->plan != "tensor " + std::to_string(report.scenario.plan.tensor));
  CHECK_THAT(report.runner_up->plan, Catch::Matchers::StartsWith("tensor "));
  CHECK(report.runner_up->step_time >= report.step_time);
  REQUIRE(report.runner_up->slower);
  CHECK(*report.runner_up->slower >= 0.5);
}

TEST_CASE("bars are the same whatever was judged before") {
  const auto bars = [](Confidence& confidence, StepReport report) {
    confidence.judge(report);
    return std::array{report.step_bar->low, report.step_bar->high, report.memory_bar->low,
                      report.memory_bar->high};
  };
  StepReport one = judged(read(small));
  StepReport other = one;  // a larger share launches, and more than any residual's rests on nothing
  other.host = one.step_time * 9 / 10;
  other.kernel_provenance = {};
  other.kernel_provenance[static_cast<std::size_t>(Provenance::datasheet)] = 1.0;
  Confidence forward(session()), backward(session());
  const auto first = bars(forward, one), second = bars(forward, other);
  CHECK(bars(backward, other) == second);
  CHECK(bars(backward, one) == first);
  CHECK(first != second);
}
