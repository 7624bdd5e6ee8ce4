#include "sim/handout/stage_times.hpp"

#include <catch2/catch.hpp>

#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {

TEST_CASE("the times of a stage add up to the step, and stages of alike size to the report's") {
  const std::string text =
      "[model]\nname = \"llama2-1b\"\nlayers = 4\n[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n"
      "[software]\nframework = \"megatron-lm\"\n[plan]\ndata = \"zero1\"\ntensor = 2\n"
      "pipeline = 2\n[batch]\nglobal = 16\nmicro_batch = 1\n";
  const Scenario scenario = read_scenario(read_toml(text, "a.toml"), catalogue());
  const StepReport report = session().step(scenario);
  const std::vector<StageTimes> stages = stage_times(scenario, session());
  REQUIRE(stages.size() == 2);
  double compute = 0, bubble = 0;
  for (const StageTimes& s : stages) {
    CHECK(s.compute_s + s.exposed_s + s.bubble_s + s.wait_s + s.host_s ==
          Approx(seconds(report.step_time)).epsilon(1e-9));
    compute += s.compute_s / 2;
    bubble += s.bubble_s / 2;
  }
  CHECK(compute == Approx(seconds(report.compute)).epsilon(1e-9));
  CHECK(bubble == Approx(seconds(report.bubble)).epsilon(1e-9));
  CHECK(stages[0].rank == 0);
  CHECK(stages[1].rank == 8);  // of 16 ranks two halves
}

}  // namespace stepcast::sim
