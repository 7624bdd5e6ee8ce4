#include "calibrate/import/nccl_comparison.hpp"

#include <algorithm>
#include <cmath>

#include "calibrate/import/import_files.hpp"
#include "sim/network/nccl/choice.hpp"
#include "sim/scenario/catalogue.hpp"
#include "tests/calibrate/mutations.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using Catch::Contains;

namespace {

struct Machine {
  const sim::Catalogue& catalogue = stepcast::catalogue();
  std::string directory = catalogue.directory() + "/nccl";
  topology::NodeSpec node = catalogue.node(sim::toml_text("dgx-h100", "test"));
};

}  // namespace

TEST_CASE("a table written from our own restatement agrees with it everywhere") {
  const Machine m;
  const auto tuning = sim::nccl_tuning_of(m.directory, "2.20.5");
  const auto machine = sim::nccl_machine(m.node, {.ranks = 16, .nodes = 2, .ranks_per_node = 8});
  sim::CalibrationTable table;
  const Bytes long_message(std::int64_t{16} << 30), short_message(64);
  for (const auto& [name, kind] : {std::pair("allreduce", workloads::CollectiveKind::all_reduce),
                                   std::pair("allgather", workloads::CollectiveKind::all_gather)})
    for (const auto& large :
         sim::nccl_options(tuning, machine, {.kind = kind, .bytes = long_message}))
      for (const auto& small :
           sim::nccl_options(tuning, machine, {.kind = kind, .bytes = short_message}))
        if (small.algorithm == large.algorithm && small.protocol == large.protocol)
          table.nccl_tuning.push_back({.gpu = "H100-SXM5-80GB",
                                       .nccl = "2.20.5",
                                       .collective = name,
                                       .algorithm = std::string(sim::name_of(large.algorithm)),
                                       .protocol = std::string(sim::name_of(large.protocol)),
                                       .ranks = 16,
                                       .nodes = 2,
                                       .latency = small.estimate - short_message / small.bandwidth,
                                       .bandwidth = large.bandwidth,
                                       .source = {}});
  const auto comparisons = compare_tuning(table, m.node, m.directory);
  REQUIRE(comparisons.size() == 1);
  REQUIRE(comparisons[0].figures.size() > 6);
  for (const TuningLine& line : comparisons[0].figures) {
    INFO(line.collective << " " << line.algorithm << " " << line.protocol);
    CHECK(line.nccl.latency == line.ours.latency);
    CHECK(line.nccl.bandwidth == line.ours.bandwidth);
  }
  for (const ChoiceLine& line : comparisons[0].choices) {
    INFO(line.collective << " " << line.bytes.value << " " << line.nccl << " / " << line.ours);
    CHECK(line.agree());
  }
}

TEST_CASE("our latencies are those that NCCL itself printed on 2 x 8 H100") {
  // The latencies of these lines of the log are those of NVIDIA/nccl issue 1519 (2024-11), a
  // communicator of 16 H100 on 2 nodes, rounded there to tenths of a microsecond.
  const Machine m;
  ClusterFacts facts;
  facts.gpu = "H100-SXM5-80GB";
  const auto table = import_files(std::vector{fixture("nccl-2.20-2x8.log")}, facts).table;
  const auto comparisons = compare_tuning(table, m.node, m.directory);
  int compared = 0;
  for (const TuningLine& line : comparisons.at(0).figures) {
    const bool published =
        line.collective == "allgather" || line.collective == "reducescatter" ||
        (line.collective == "allreduce" && line.algorithm == "tree") ||
        (line.collective == "allreduce" && line.algorithm == "ring" && line.protocol != "simple");
    if (!published) continue;
    INFO(line.collective << " " << line.algorithm << " " << line.protocol);
    CHECK(std::abs(seconds(line.nccl.latency) - seconds(line.ours.latency)) <= 0.051e-6);
    ++compared;
  }
  CHECK(compared == 11);
}

TEST_CASE("a log's figures stand beside ours, and what only one side offers is seen") {
  const Machine m;
  ClusterFacts facts;
  facts.gpu = "H100-SXM5-80GB";
  auto table = import_files(std::vector{fixture("nccl-2.20-2x8.log")}, facts).table;
  std::erase_if(table.nccl_tuning, [](const auto& row) {
    return row.collective == "allreduce" && row.algorithm == "ring";
  });
  const auto comparisons = compare_tuning(table, m.node, m.directory);
  REQUIRE(comparisons.size() == 1);
  CHECK((comparisons[0].ranks == 16 && comparisons[0].nodes == 2));
  const auto ours_alone = std::count_if(
      comparisons[0].figures.begin(), comparisons[0].figures.end(),
      [](const TuningLine& l) { return l.nccl.bandwidth.value == 0 && l.algorithm == "ring"; });
  CHECK(ours_alone >= 2);
  const auto calls = std::count_if(comparisons[0].choices.begin(), comparisons[0].choices.end(),
                                   [](const ChoiceLine& l) { return l.logged; });
  CHECK(calls == 5);
  CHECK_THAT(to_text(comparisons[0]),
             Contains("NCCL 2.20.5, 16 ranks on 2 nodes") && Contains("choices agree"));
}
