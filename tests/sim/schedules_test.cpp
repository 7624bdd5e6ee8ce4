// Schedules of pipeline stages from the scenario file to the simulated step.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "engine/check.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/order_file.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"
#include "workloads/plan/pipeline.hpp"

namespace stepcast::sim {
namespace {

/// Eight stages on 8 GPUs, 16 micro-batches; the ends of the model cost next to nothing. Nothing
/// keeps a stage waiting but the pipeline.
Scenario eight_stages(const std::string& plan, const std::string& data = "ddp") {
  const std::string text =
      "[model]\nname = \"llama2-1b\"\nlayers = 32\nvocab = 128\n[cluster]\nnode = \"dgx-h100\"\n"
      "nodes = 1\n[batch]\nglobal = 16\nmicro_batch = 1\n[software]\nframework = "
      "\"torchtitan\"\nversion = \"2025\"\nschedules = [\"gpipe\", \"1f1b\", \"zb_h1\", \"zb_h2\", "
      "\"zb_v\", "
      "\"dualpipe\", \"dualpipe_v\", \"listed\"]\nlaunch_kernel = \"1 ns\"\nlaunch_collective = "
      "\"1 ns\"\nevent_call = \"1 ns\"\nunit_overhead = \"1 ns\"\nstep_overhead = \"1 ns\"\n"
      "[plan]\ndata = \"" +
      data + "\"\npipeline = 8\n" + plan;
  Scenario s = read_scenario(read_toml(text, "a.toml"), catalogue());
  s.run.without = {.interference = true, .latency = true, .bandwidth = true};
  return s;
}

StepReport report_of(const std::string& plan) { return session().step(eight_stages(plan)); }

double idle(const StepReport& report) { return seconds(report.bubble + report.wait); }

std::string refusal(const std::string& plan) {
  try {
    eight_stages(plan);
  } catch (const InputError& error) {
    return error.problem();
  }
  return "accepted";
}

/// A file of the orders that a plan has, gone with the test.
class OrderFile {
 public:
  explicit OrderFile(const Scenario& s)
      : path_((tests::own_folder() / "stepcast_orders_test.csv").string()) {
    workloads::ListedOrders orders{
        path_, s.plan.placement(), s.plan.virtual_stages, s.batch.micro_batches, {}};
    for (std::int64_t stage = 0; stage < s.plan.pipeline; ++stage)
      orders.stages.push_back(
          workloads::turns_of_stage(workloads::pipeline_shape(s.plan, s.batch), stage));
    write_whole(path_, write_orders(orders));
  }
  ~OrderFile() { std::filesystem::remove(path_); }
  std::string key() const { return "schedule = \"" + path_ + "\"\n"; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE(
    "weight gradients in the places where stages wait: the bubble shrinks as the orders say") {
  const double plain = idle(report_of("schedule = \"1f1b\"\n"));
  const double h1 = idle(report_of("schedule = \"zb_h1\"\n"));
  const double v = idle(report_of("schedule = \"zb_v\"\n"));
  const double dual = idle(report_of("schedule = \"dualpipe_v\"\n"));
  // (p-1)(F+I+W), (p-1)(F+I-W), and (p-1) I of half a stage, to a common end.
  CHECK(h1 < 0.5 * plain);
  CHECK(v < 0.6 * h1);
  CHECK(dual < h1);
  CHECK(dual > v);
}

TEST_CASE("an order from a file is the built-in one to the picosecond") {
  for (const char* schedule : {"1f1b", "gpipe", "zb_h1", "zb_h2", "zb_v", "dualpipe_v"}) {
    const Scenario s = eight_stages("schedule = \"" + std::string(schedule) + "\"\n");
    const OrderFile file(s);
    const Scenario listed = eight_stages(file.key());
    INFO(schedule);
    CHECK(session().step(listed).step_time == session().step(s).step_time);
    CHECK(session().step(listed).memory.total() == session().step(s).memory.total());
    // Written as its file's name, and read again.
    CHECK(read_scenario(resolved_document(listed), catalogue()).plan == listed.plan);
  }
}

TEST_CASE("ranks fold under every schedule, to the same picosecond") {
  for (const char* schedule : {"zb_h1", "zb_h2", "zb_v", "dualpipe", "dualpipe_v"})
    for (const char* data : {"ddp", "zero2", "zero3"}) {
      if (schedule == std::string("dualpipe") && data != std::string("ddp")) continue;
      Scenario s = eight_stages("schedule = \"" + std::string(schedule) + "\"\n", data);
      INFO(schedule << " " << data);
      s.run.check_fold = true;
      CHECK_NOTHROW(session().step(s));
    }
}

TEST_CASE("schedules say what they need") {
  CHECK(refusal("schedule = \"zb_v\"\nvirtual_stages = 4\n") == "zb_v with virtual_stages 4");
  CHECK(refusal("schedule = \"zb_h2\"\nvirtual_stages = 2\n") == "virtual_stages 2 with zb_h2");
  CHECK(refusal("schedule = \"zb_x\"\n").find("zb_x") != std::string::npos);
  CHECK(refusal("schedule = \"none_such.csv\"\n") != "accepted");
  CHECK(eight_stages("schedule = \"dualpipe\"\n").plan.parts() == 8);
  CHECK(eight_stages("schedule = \"dualpipe_v\"\n").plan.parts() == 16);
}

TEST_CASE("two copies of the model take twice the parameters, ZB-H1 more activations at the end") {
  const auto part = [](const std::string& plan, std::int64_t stage, const std::string& name) {
    const Scenario s = eight_stages(plan);
    const auto memory =
        workloads::memory_of_stage(s.model, s.plan, s.batch, s.precision, s.software, stage);
    for (const auto& each : memory.parts)
      if (each.name == name) return static_cast<double>(each.bytes.value);
    return 0.0;
  };
  const std::string plain = "schedule = \"1f1b\"\n", dual = "schedule = \"dualpipe\"\n";
  CHECK(part(dual, 3, "parameters") == Approx(2.0 * part(plain, 3, "parameters")));
  CHECK(part("schedule = \"zb_h1\"\n", 7, "activations") > 7 * part(plain, 7, "activations"));
}

TEST_CASE("a layout of stages is the layers of each part") {
  const Scenario s = eight_stages("stages = \"Et*4|(t*5|)*2(t*4|)*4ttL\"\n");
  CHECK(s.plan.stage_layers == std::vector<std::int64_t>{4, 5, 5, 4, 4, 4, 4, 2});
  CHECK(eight_stages("stages = \"Ett|(tt|)*14ttL\"\n").plan.virtual_stages == 2);
  CHECK(refusal("stages = \"Et*16|t*16L\"\n") == "'stages' in [plan] has 2 parts");
  CHECK(refusal("stages = \"Et*4|(t*4|)*6t*4mL\"\n") == "'stages' in [plan] has 1 modules m");
  CHECK(refusal("stages = \"Et*3|(t*4|)*6t*4L\"\n") == "stage_layers add up to 31");
}

}  // namespace stepcast::sim
