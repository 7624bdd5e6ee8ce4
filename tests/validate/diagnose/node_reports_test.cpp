#include "validate/diagnose/node_reports.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <sstream>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "tests/validate/trace_writer.hpp"
#include "validate/diagnose/network_tests.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

std::vector<Sign> dmon(const std::string& text) {
  DmonReader reader;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) reader.line(line);
  return reader.signs("dmon.txt");
}

/// Three seconds of four GPUs; one with its own clock and load.
std::string four_gpus(int odd_clock, int odd_sm) {
  std::string out =
      "# gpu    pwr  gtemp     sm    mem   mclk   pclk\n# Idx      W      C      %      %    MHz   "
      " "
      "MHz\n";
  for (int second = 0; second < 3; ++second)
    for (int gpu = 0; gpu < 4; ++gpu)
      out += fmt::format("    {}    400     50     {}     40   2619   {}\n", gpu,
                         gpu == 2 ? odd_sm : 98, gpu == 2 ? odd_clock : 1700 + gpu);
  return out;
}

std::vector<std::string> topology_signs(const char* file, const char* node) {
  Surroundings around;
  std::vector<std::string> notes;
  const sim::Scenario s = sim::read_scenario(
      sim::read_toml(fmt::format("[model]\nname = \"llama2-1b\"\n[cluster]\nnode = \"{}\"\nnodes = "
                                 "1\n[batch]\nlocal = 1\n",
                                 node),
                     "a test"),
      catalogue());
  const std::string path = fmt::format("{}/tests/calibrate/fixtures/{}", STEPCAST_SOURCE_DIR, file);
  CHECK(is_topology(path));
  add_topology(path, s, around, notes);
  std::vector<std::string> out;
  for (const Sign& sign : around.signs) out.push_back(sign.evidence);
  return out;
}

}  // namespace

TEST_CASE("nvidia-smi dmon: the GPU whose clock is lower under load") {
  const auto signs = dmon(four_gpus(1200, 97));
  REQUIRE(signs.size() == 1);
  CHECK(signs[0].kind == CauseKind::slow_rank);
  CHECK(signs[0].evidence.find("GPU 2 runs at 1200 MHz under load, the median one at 17") == 0);
  CHECK(dmon(four_gpus(1690, 97)).empty());
  CHECK(dmon(four_gpus(345, 0)).empty());  // idle: its clock says nothing
  CHECK(dmon("# gpu  a\n 0 1\n").empty());
  CHECK(dmon("").empty());
}

TEST_CASE("nvidia-smi dmon: power, heat, errors, idle SMs, columns and times as asked for") {
  const auto signs = dmon(
      "#Time        gpu     sm  pviol  tviol  sbecc  dbecc    pci\n"
      "#HH:MM:SS    Idx      %      %   bool   errs   errs   errs\n"
      " 10:00:01      0     30     40      1      0      1      2\n"
      " 10:00:02      0     30     40      1      0      1      2\n"
      " 10:00:03      0     30     40      1      0      1      2\n");
  REQUIRE(signs.size() == 5);
  CHECK(signs[0].evidence.find("power holds GPU 0 back 40 %") == 0);
  CHECK(signs[1].evidence.find("heat holds GPU 0 back 100 %") == 0);
  CHECK(signs[2].kind == CauseKind::slow_rank);
  CHECK(signs[3].kind == CauseKind::slow_link);
  CHECK(signs[4].evidence.find("some kernel runs 30 % of the time") == 0);
}

TEST_CASE("nvidia-smi topo -m beside the scenario's node") {
  CHECK(topology_signs("dgx-a100.topo", "dgx-a100").empty());
  CHECK(topology_signs("dgx-h100.topo", "dgx-h100").empty());
  const auto fewer = topology_signs("dgx-a100.topo", "dgx-h100");
  REQUIRE(fewer.size() == 1);
  CHECK(fewer[0].find("two GPUs share 12 NVLinks, those of dgx-h100 have 18") == 0);
  const auto none = topology_signs("dgx-1v.topo", "dgx-h100");
  REQUIRE_FALSE(none.empty());
  CHECK(none[0].find("some GPUs are not joined by NVLink") == 0);
}

TEST_CASE("nccl-tests as text, JSON and CSV; other files are none") {
  const auto at = [](const char* file) { return std::string(STEPCAST_SOURCE_DIR "/") + file; };
  CHECK(is_network_test(at("tests/calibrate/fixtures/all_reduce_a100_8.log")));
  CHECK(is_network_test(at("tests/calibrate/fixtures/reduce_scatter_h100_8.json")));
  CHECK(is_network_test(at("tests/calibrate/fixtures/all_reduce_2x8.csv")));
  CHECK_FALSE(is_network_test(at("tests/validate/trace/megatron.log")));
  CHECK_FALSE(is_network_test(at("scenarios/launch/deepspeed_auto.json")));
  CHECK_FALSE(is_network_test(at("calibrate/published/kernels.csv")));
}
