#include "sim/run/residuals.hpp"

#include <unistd.h>
#include <catch2/catch.hpp>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/confidence/evidence.hpp"
#include "sim/files/whole_file.hpp"
#include "tests/own_folder.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

std::string temporary(const char* name) {
  return (tests::own_folder() / (std::to_string(getpid()) + name)).string();
}

}  // namespace

TEST_CASE("residuals read back as they were written") {
  const std::vector<Residual> rows{
      {"A", "A-1", -0.0123, {"hopper", "megatron-lm", "nodes", 0.25, 0.5, "MoE fp8"}},
      {"B, of two", "line 3", 0.5, {"volta", "from 1 MiB", "one node", 0, 1}}};
  const std::string path = temporary("residuals.csv");
  write_whole(path, residuals_csv(rows));
  const auto read = read_residuals(path);
  CHECK(residuals_csv(read) == residuals_csv(rows));
  CHECK(read.at(1).source == "B, of two");
  CHECK(read.at(0).of.unmeasured == 0.5);
  CHECK(read.at(0).of.kind == "MoE fp8");
  CHECK(read.at(1).of.kind == dense_16_bit);
  std::filesystem::remove(path);
}

TEST_CASE("a residual that is no number is refused with its line") {
  const std::string path = temporary("broken.csv");
  write_whole(path,
              "source,row,log_ratio,generation,family,reach,host,unmeasured\n"
              "A,A-1,much,hopper,x,nodes,0,0\n");
  CHECK_THROWS_WITH(read_residuals(path), Contains("broken.csv:2: 'much' in column log_ratio"));
  std::filesystem::remove(path);
}

TEST_CASE("evidence keeps its date until something else changes") {
  const std::string folder = temporary("evidence");
  Evidence evidence;
  evidence.steps = {{"A", "A-1", 0.1, {"hopper", "x", "nodes", 0, 0}}};
  evidence.memory = evidence.collectives = evidence.steps;
  evidence.pairs = {{"A", 0.02, 10, 7.5}};
  evidence.shift = 2.5;
  evidence.date = "2026-01-01";
  evidence.version = "stepcast 0";
  write_evidence(folder, evidence);
  evidence.date = "2026-02-02";
  write_evidence(folder, evidence);
  CHECK(read_evidence(folder).date == "2026-01-01");
  CHECK(read_evidence(folder).pairs.at(0).in_order == 7.5);
  CHECK(read_evidence(folder).shift == 2.5);
  evidence.steps[0].log_ratio = 0.2;
  write_evidence(folder, evidence);
  CHECK(read_evidence(folder).date == "2026-02-02");
  std::filesystem::remove_all(folder);
}
