#include "calibrate/import/nccl_debug_log.hpp"

#include <algorithm>

#include "calibrate/import/import_files.hpp"
#include "tests/calibrate/mutations.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using namespace stepcast::literals;
using Catch::Contains;

namespace {

NcclDebugTables tables_of(const std::string& text, const std::string& gpu = "H100-SXM5-80GB",
                          std::int64_t nodes = 0) {
  ClusterFacts facts;
  facts.gpu = gpu;
  if (nodes > 0) facts.nodes = nodes;
  Ignored ignored;
  return parse_nccl_debug_log(parse_text("damaged", text), facts, ignored);
}

}  // namespace

TEST_CASE("NCCL's table comes with its communicator's shape, in two blocks of three algorithms") {
  const auto tables = tables_of(read_bytes(fixture("nccl-2.20-2x8.log")));
  REQUIRE(tables.tuning.size() == 19);  // what NCCL offers: bandwidths above 0
  const auto tree = std::find_if(tables.tuning.begin(), tables.tuning.end(), [](const auto& row) {
    return row.collective == "allreduce" && row.algorithm == "nvls_tree";
  });
  REQUIRE(tree != tables.tuning.end());
  CHECK((tree->protocol == "simple" && tree->ranks == 16 && tree->nodes == 2));
  CHECK(tree->latency == to_duration(66.8e-6));
  CHECK(tree->bandwidth == 384_GBps);
  CHECK(tree->nccl == "2.20.5");
}

TEST_CASE("choices are read in words and in numbers") {
  const auto tables = tables_of(read_bytes(fixture("nccl-2.20-2x8.log")));
  REQUIRE(tables.choices.size() == 5);
  CHECK((tables.choices[1].algorithm == "tree" && tables.choices[1].protocol == "ll128"));
  CHECK((tables.choices[1].bytes == 1_MiB && tables.choices[1].channels == 16));
  CHECK((tables.choices[4].collective == "allgather" && tables.choices[4].algorithm == "ring"));
  CHECK(tables.choices[4].estimate == to_duration(78.2e-6));
}

TEST_CASE("the layout of one line per protocol is read too, nodes have to be named") {
  const std::string log = read_bytes(fixture("nccl-2.12-8.log"));
  CHECK_THROWS_WITH(tables_of(log, "A100-SXM4-80GB"), Contains("damaged:5") && Contains("--nodes"));
  const auto tables = tables_of(log, "A100-SXM4-80GB", 1);
  CHECK(tables.tuning.size() == 18);
  CHECK((tables.tuning[0].collective == "broadcast" && tables.tuning[0].algorithm == "ring"));
}

TEST_CASE("what cannot be read is told with its line") {
  const std::string log = read_bytes(fixture("nccl-2.20-2x8.log"));
  CHECK_THROWS_WITH(tables_of(log, ""), Contains("damaged:7") && Contains("--gpu"));
  CHECK_THROWS_WITH(tables_of("x NCCL INFO nothing here\n"), Contains("damaged:1: holds no"));
  const auto swapped = [&](const std::string& from, const std::string& to) {
    std::string text = log;
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK_THROWS_WITH(tables_of(swapped("CollNetDirect", "Hypercube")), Contains("'Hypercube'"));
  CHECK_THROWS_WITH(tables_of(swapped("66.8/ 384.0", "66.8 384.0")), Contains("66.8 384.0"));
  CHECK_THROWS_WITH(tables_of(swapped("{0..15}", "{15..0}")), Contains("no range of channels"));
  CHECK_THROWS_WITH(tables_of(swapped("NCCL version 2.20.5", "no version")), Contains("--nccl"));
}

TEST_CASE("NCCL's figures survive the calibration file") {
  const auto tables = tables_of(read_bytes(fixture("nccl-2.20-2x8.log")));
  sim::CalibrationTable table;
  table.nccl_tuning = tables.tuning;
  table.nccl_choices = tables.choices;
  const std::string path = std::string(STEPCAST_BINARY_DIR) + "/nccl-figures.h5";
  sim::write_calibration(path, table);
  CHECK(sim::read_calibration(path) == table);
}

TEST_CASE("damaged logs of NCCL are refused, never a crash") {
  survives_damage(read_bytes(fixture("nccl-2.20-2x8.log")),
                  [](const std::string& text) { tables_of(text); });
  survives_damage(read_bytes(fixture("nccl-2.12-8.log")),
                  [](const std::string& text) { tables_of(text, "A100-SXM4-80GB", 1); });
}
