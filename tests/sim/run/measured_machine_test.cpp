#include "sim/run/measured_machine.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/run/power.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using Catch::Contains;

namespace {

sim::Scenario scenario(const std::string& calibration) {
  return sim::read_scenario(
      sim::read_toml("title = \"t\"\n[model]\nname = \"llama2-7b\"\nsequence = 4096\n[cluster]\n"
                     "node = \"dgx-h100\"\nnodes = 1\nfabric = \"rail-optimized\"\n[plan]\n"
                     "data = \"zero2\"\n[batch]\nlocal = 1\n[software]\nframework = "
                     "\"pytorch-fsdp2\"\nversion = \"2.3\"\n" +
                         calibration,
                     "t.toml"),
      catalogue());
}

sim::CalibrationTable measured() {
  sim::CalibrationTable table;
  table.launches = {{"H100-SXM5-80GB", "kernel", 2500_ns, {}, {}},
                    {"A100-SXM4-80GB", "kernel", 9_us, {}, {}}};
  table.powers = {{"H100-SXM5-80GB", "gemm bf16 8192x8192x8192 NT", Watts(690), {}},
                  {"H100-SXM5-80GB", "idle", Watts(120), {}},
                  {"A100-SXM4-80GB", "idle", Watts(66), {}}};
  return table;
}

}  // namespace

TEST_CASE("a scenario pays the software's launch unless it asks for the measured one") {
  sim::Scenario s = scenario("");
  const Duration software = s.software.host.launch_kernel;
  sim::use_measurements(s, measured());
  CHECK(s.software.host.launch_kernel == software);
  s = scenario("[calibration]\nlaunch = \"measured\"\n");
  sim::use_measurements(s, measured());
  CHECK(s.software.host.launch_kernel == 2500_ns);
  CHECK(software != 2500_ns);
}

TEST_CASE("a launch that was not measured on this GPU is an error, another word as well") {
  sim::Scenario s = scenario("[calibration]\nlaunch = \"measured\"\n");
  sim::CalibrationTable table = measured();
  table.launches.erase(table.launches.begin());
  CHECK_THROWS_WITH(sim::use_measurements(s, table),
                    Contains("t.toml") && Contains("no table has one of h100-sxm5-80gb"));
  CHECK_THROWS_WITH(scenario("[calibration]\nlaunch = \"guessed\"\n"),
                    Contains("cannot be 'guessed'"));
}

TEST_CASE("a GPU at rest draws what was measured of it, with its context") {
  sim::Scenario s = scenario("");
  const topology::GpuSpec as_shipped = s.node.gpu;
  sim::use_measurements(s, measured());
  CHECK(sim::mean_power(s.node.gpu, {}).value == Approx(120));
  CHECK(sim::mean_power(as_shipped, {}).value != Approx(120));
  sim::use_measurements(s, measured());  // again: the same
  CHECK(sim::mean_power(s.node.gpu, {}).value == Approx(120));
  sim::Scenario untouched = scenario("");
  sim::use_measurements(untouched, {});
  CHECK(untouched.node.gpu == as_shipped);
}
