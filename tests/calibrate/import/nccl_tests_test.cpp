#include "calibrate/import/nccl_tests.hpp"

#include "calibrate/import/import_files.hpp"
#include "calibrate/import/nccl_tests_csv.hpp"
#include "calibrate/import/nccl_tests_json.hpp"
#include "calibrate/import/nccl_tests_log.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/scenario/catalogue.hpp"
#include "tests/calibrate/catalogue_gpus.hpp"
#include "tests/calibrate/mutations.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using namespace stepcast::literals;
using Catch::Contains;

namespace {

ClusterFacts infiniband() {
  ClusterFacts facts = nothing_given();
  facts.fabric = "infiniband";
  facts.node_bandwidth = 3200_Gbps;
  return facts;
}

std::vector<sim::CollectiveRow> rows_of(const std::string& name,
                                        const ClusterFacts& facts = nothing_given()) {
  return import_files(std::vector{fixture(name)}, facts).table.collectives;
}

std::vector<sim::CollectiveRow> rows_in(const std::string& text,
                                        const ClusterFacts& facts = nothing_given()) {
  Ignored ignored;
  std::vector<sim::CollectiveRow> rows;
  for (const auto& run : parse_nccl_tests_log(parse_text("damaged", text), ignored))
    for (auto& row : collective_rows(run, facts, ignored)) rows.push_back(row);
  return rows;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a log of two nodes says ranks, nodes, GPU, version and both columns") {
  const auto rows = rows_of("all_gather_h100_2x8.log", infiniband());
  REQUIRE(rows.size() == 12);
  const auto& row = rows[2];  // 4 MiB out of place
  CHECK(row.collective == "allgather");
  CHECK(row.gpu == "H100-SXM5-80GB");
  CHECK((row.ranks == 16 && row.nodes == 2 && row.gpus_per_node == 8));
  CHECK(row.nccl == "2.20.5");
  CHECK(row.dtype == "fp32");
  CHECK(row.bytes == 4_MiB);
  CHECK(row.duration == to_duration(130.63e-6));
  // 4 MiB / 130.63 us x 15/16
  CHECK(row.busbw.value == Approx(30.10e9).epsilon(1e-3));
  CHECK((row.fabric == "infiniband" && row.node_bandwidth == 3200_Gbps));
  CHECK((row.timing == "wall" && row.processes == "8 per node"));
  CHECK(row.source->source == "all_gather_h100_2x8.log (nccl-tests, out-of-place)");
  CHECK(row.source->reference == "all_gather_h100_2x8.log");
  CHECK(rows[3].source->source == "all_gather_h100_2x8.log (nccl-tests, in-place)");
}

TEST_CASE("one process on one node needs no options, and rows of no bytes are named") {
  const auto import = import_files(std::vector{fixture("all_reduce_a100_8.log")}, nothing_given());
  REQUIRE(import.table.collectives.size() == 12);
  const auto& row = import.table.collectives[0];
  CHECK(row.collective == "allreduce");  // from the file's name: this version does not say
  CHECK((row.ranks == 8 && row.nodes == 1 && row.fabric == "nvlink" && row.processes == "1"));
  CHECK((row.nccl == "2.18.5" && row.gpu == "A100-SXM4-80GB"));
  CHECK_THAT(import.report, Contains("ignored a row of no bytes"));
}

TEST_CASE("logs of the oldest layout are read, their collective has to be named") {
  CHECK_THROWS_WITH(rows_of("v100_old.log"),
                    Contains("v100_old.log:1") && Contains("--collective"));
  ClusterFacts facts = nothing_given();
  facts.collective = "allreduce";
  const auto rows = rows_of("v100_old.log", facts);
  CHECK(rows.size() == 12);
  CHECK(rows[0].gpu == "V100-SXM2-32GB");
}

TEST_CASE("prefixes of mpirun, per-iteration columns and timestamps do not disturb") {
  const auto rows = rows_of("sendrecv_h200_2x1.log", infiniband());
  REQUIRE(rows.size() == 12);
  CHECK((rows[0].collective == "sendrecv" && rows[0].ranks == 2 && rows[0].nodes == 2));
  CHECK((rows[0].gpu == "H200-SXM-141GB" && rows[0].nccl == "2.28.9"));
  CHECK(rows[0].busbw.value == Approx(1048576.0 / seconds(rows[0].duration)));
}

TEST_CASE("JSON gives the same rows as text would, without the environment") {
  const auto import =
      import_files(std::vector{fixture("reduce_scatter_h100_8.json")}, nothing_given());
  REQUIRE(import.table.collectives.size() == 12);
  const auto& row = import.table.collectives[0];
  CHECK((row.collective == "reducescatter" && row.dtype == "bf16" && row.ranks == 8));
  CHECK((row.nccl == "2.23.4" && row.processes == "8 per node"));
  CHECK_THAT(import.report, Contains("json:11: ignored the environment"));
  CHECK_THAT(import.report, !Contains("EXAMPLE_SETTING"));
}

TEST_CASE("a process with several GPUs lists its first one only in JSON") {
  const std::string text = R"({"version": 3, "args": ["x/all_reduce_perf"], "nccl_version": 22000,
    "config": {"nthreads": 1, "ngpus": 4, "devices": [
      {"rank": 0, "pid": 7, "hostname": "a", "device_info": "NVIDIA H200"},
      {"rank": 4, "pid": 7, "hostname": "b", "device_info": "NVIDIA H200"}]},
    "results": [{"size": 8000000, "type": "float",
      "out_of_place": {"time": 100.0, "alg_bw": 80.0, "bus_bw": 140.0, "nwrong": null}}]})";
  Ignored ignored;
  const auto rows =
      collective_rows(parse_nccl_tests_json("damaged", text, ignored), infiniband(), ignored);
  REQUIRE(rows.size() == 1);
  CHECK((rows[0].ranks == 8 && rows[0].nodes == 2 && rows[0].processes == "1 per node"));
}

TEST_CASE("figures as CSV: of rccl-tests, or the printed table of a script") {
  ClusterFacts facts = infiniband();
  facts.gpu = "h100";
  const std::string path = fixture("all_reduce_2x8.csv");
  const auto table = import_files(std::vector<std::string>{path}, facts).table;
  REQUIRE(table.collectives.size() == 3);
  const auto& row = table.collectives[0];
  CHECK((row.collective == "allreduce" && row.dtype == "fp32" && row.ranks == 16));
  CHECK(row.nodes == 2);
  const auto parse = [](const std::string& text) {
    return parse_nccl_tests_csv(sim::parse_csv("a.csv", text));
  };
  const NcclTestsCsv plain = parse(
      "size,count,type,redop,root,time,algbw,busbw,wrong\n8,2,float,sum,-1,5.5,0.00,0.00,0\n");
  REQUIRE(plain.runs.size() == 1);
  CHECK(plain.runs[0].program.empty());
  CHECK(plain.runs[0].rows[0].out_of_place->time_us.value == 5.5);
  CHECK_THROWS_WITH(parse("size,type,time,algbw,busbw\n8,float,x,1,1\n"),
                    Contains("a.csv:2") && Contains("no number"));
  CHECK_THROWS_WITH(parse("ranks,size,type,time,algbw,busbw\n2,8,float,1,1,1\n4,8,float,1,1,1\n"),
                    Contains("a.csv:3") && Contains("differ"));
  CHECK_FALSE(is_nccl_tests_csv(sim::parse_csv("a.csv", "gpu,kind\nh100,gemm\n")));
}

TEST_CASE("what a log does not say is asked by the name of the option") {
  ClusterFacts facts = nothing_given();
  CHECK_THROWS_WITH(rows_of("all_gather_h100_2x8.log", facts), Contains("--fabric"));
  facts.fabric = "infiniband";
  CHECK_THROWS_WITH(rows_of("all_gather_h100_2x8.log", facts), Contains("--node-bandwidth"));
  facts = infiniband();
  facts.collective = "allreduce";
  CHECK_THROWS_WITH(rows_of("all_gather_h100_2x8.log", facts), Contains("--collective: allreduce"));
  facts = infiniband();
  facts.ranks = 8;
  CHECK_THROWS_WITH(rows_of("all_gather_h100_2x8.log", facts), Contains("--ranks: 8"));
  facts = infiniband();
  facts.gpu = "A100-SXM4-80GB";
  CHECK_THROWS_WITH(rows_of("all_gather_h100_2x8.log", facts), Contains("--gpu"));
  facts = infiniband();
  facts.nccl = "2.18.1";
  CHECK_THROWS_WITH(rows_of("all_gather_h100_2x8.log", facts), Contains("--nccl"));
}

TEST_CASE("several facts that a log does not say are asked for at once") {
  const ClusterFacts facts = nothing_given();
  CHECK_THROWS_WITH(rows_of("all_gather_h100_2x8.log", facts),
                    Contains("what joins them, how fast they are joined") &&
                        Contains("--fabric infiniband --node-bandwidth"));
  std::string pasted = read_bytes(fixture("all_gather_h100_2x8.log"));
  pasted.erase(0, pasted.find("#       size"));
  CHECK_THROWS_WITH(
      rows_in(pasted, facts),
      Contains("which collective it measured, which GPU it ran on, on how many nodes") &&
          Contains("give --collective all_reduce --gpu NAME --nodes N"));
}

TEST_CASE("a log that contradicts itself or was cut is refused with its line") {
  const std::string log = read_bytes(fixture("all_reduce_a100_8.log"));
  ClusterFacts facts = nothing_given();
  facts.collective = "allreduce";
  CHECK(rows_in(log, facts).size() == 12);
  const std::string row = "sum      -1    47.91   21.89   38.30       0";
  CHECK_THROWS_WITH(
      rows_in(replaced(log, row, "sum      -1    47.91   21.89   38.30       3"), facts),
      Contains("damaged:18: wrong results"));
  CHECK_THROWS_WITH(
      rows_in(replaced(log, row, "sum      -1    41.91   21.89   38.30       0"), facts),
      Contains("damaged:18") && Contains("contradict"));
  CHECK_THROWS_WITH(rows_in(replaced(log, row, "sum      -1    47.91   21.89"), facts),
                    Contains("damaged:18") && Contains("'sum' is no number"));
  facts.collective = "allgather";
  CHECK_THROWS_WITH(rows_in(log, facts), Contains("damaged:18") && Contains("busbw"));
  facts.collective = "allreduce";
  CHECK_THROWS_WITH(rows_in(log.substr(0, log.find("# Out of")), facts), Contains("cut"));
  CHECK_THROWS_WITH(rows_in(replaced(log, "values : 0 OK", "values : 4 FAILED"), facts),
                    Contains("wrong results"));
  CHECK_THROWS_WITH(rows_in(replaced(log, "#  Rank  3", "#  Rank  2"), facts), Contains("twice"));
  CHECK_THROWS_WITH(rows_in(replaced(log, "A100-SXM4-80GB", "Graphics Device"), facts),
                    Contains("damaged:4") && Contains("--gpu"));
  CHECK_THROWS_WITH(rows_in(replaced(log, "time   algbw", "cputime   algbw"), facts),
                    Contains("-C"));
  CHECK_THROWS_WITH(import_files(std::vector{fixture("dgx-h100.topo")}), Contains("is no log"));
}

TEST_CASE("an imported log is the measured curve of its shape, also against published ones") {
  topology::NodeSpec node = catalogue().node(sim::toml_text("dgx-h100", "test"));
  sim::CalibrationTable mine;
  mine.collectives = rows_of("all_gather_h100_2x8.log", infiniband());
  sim::CalibrationTable published =
      import_files(
          std::vector{std::string(STEPCAST_SOURCE_DIR) + "/calibrate/published/collectives.csv"})
          .table;
  auto rival = mine.collectives;  // somebody else's, twice as slow and at more sizes
  for (auto& row : rival) {
    row.duration = row.duration * 2;
    row.nccl = "2.21.5";
    row.source = {"", "elsewhere", "high"};
    published.collectives.push_back(row);
    row.bytes = row.bytes * 2;
    published.collectives.push_back(row);
  }
  const auto both = sim::merge(published, mine);
  const sim::CollectiveCurves curves(both.collectives, node,
                                     catalogue().network_constants().measurement);
  const auto* curve = curves.find(workloads::CollectiveKind::all_gather,
                                  {.ranks = 16, .nodes = 2, .ranks_per_node = 8});
  REQUIRE(curve != nullptr);
  CHECK(curve->source == "all_gather_h100_2x8.log (nccl-tests, out-of-place)");
  CHECK(curve->points.size() == 6);
  CHECK(both.collectives.size() < published.collectives.size() + mine.collectives.size());
}

namespace {

/// A table of nccl-tests with these rows and nothing else.
std::string bare_table(const std::string& rows) {
  return "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
         "time   algbw   busbw #wrong\n" +
         rows;
}

ClusterFacts bare_facts(std::int64_t nodes) {
  ClusterFacts facts = infiniband();
  facts.gpu = "H100-SXM5-80GB";
  facts.collective = "allreduce";
  facts.nodes = nodes;
  return facts;
}

/// 1 GiB among 96: algbw 200.00, busbw 395.83.
const std::string of_96 =
    " 1073741824     268435456     float     sum      -1   5368.7  200.00  395.83      0   5368.7  "
    "200.00  395.83      0\n";
/// 512 B among 16, factor 1.875: both columns lost all but one digit.
const std::string of_512_bytes =
    "         512           128     float     sum      -1    35.80    0.01    0.03      0    36.10 "
    " "
    "  0.01    0.03      0\n";

}  // namespace

TEST_CASE("small rows count as they were rounded") {
  ClusterFacts facts = bare_facts(2);
  facts.ranks = 16;
  const auto rows = rows_in(bare_table(of_512_bytes), facts);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].ranks == 16);
}

TEST_CASE("a number of ranks that the bandwidths contradict is refused") {
  ClusterFacts facts = bare_facts(8);
  for (const std::int64_t wrong : {40, 64, 512}) {
    facts.ranks = wrong;
    CHECK_THROWS_WITH(rows_in(bare_table(of_96), facts), Contains("those of 96 ranks"));
  }
  facts.ranks = 96;
  CHECK(rows_in(bare_table(of_96), facts).size() == 2);
}

TEST_CASE("ranks that nothing states are solved from the rows, where they leave one number") {
  CHECK(rows_in(bare_table(of_512_bytes + of_96), bare_facts(12))[0].ranks == 96);
  CHECK_THROWS_WITH(rows_in(bare_table(of_512_bytes), bare_facts(2)),
                    Contains("give --ranks N") && Contains("9 ranks or more"));
  ClusterFacts facts = bare_facts(12);
  facts.nodes = {};
  CHECK_THROWS_WITH(rows_in(bare_table(of_96), facts), Contains("--nodes"));
}

TEST_CASE("rows of two numbers of ranks are no run") {
  const std::string of_8 =
      " 1073741824     268435456     float     sum      -1   5368.7  200.00  350.00      0   "
      "5368.7 "
      " 200.00  350.00      0\n";
  CHECK_THROWS_WITH(rows_in(bare_table(of_96 + of_8), bare_facts(12)),
                    Contains("damaged:3") && Contains("say 8 ranks"));
}

TEST_CASE("a log survives what launchers, mail and markdown do to it") {
  const std::string log = read_bytes(fixture("all_gather_h100_2x8.log"));
  const auto as_written = rows_in(log, infiniband());
  const auto every_line = [&](const std::string& before) {
    std::string out = before;
    for (const char c : log) out += c == '\n' ? "\n" + before : std::string(1, c);
    return out;
  };
  for (const char* before : {"    ", "> ", "[1,0]<stdout>:", "[prterun-node01-77@1,0]<stdout>:",
                             "0: ", "node01: ", "[pod/nccl-launcher-x7/mpi] ",
                             "2026-11-22T16:29:33.120Z ", "[2026-11-22 16:29:33,120] 0: "}) {
    INFO(before);
    CHECK(rows_in(every_line(before), infiniband()) == as_written);
  }
  std::string eaten = log;  // '#' begins a heading
  std::erase(eaten, '#');
  CHECK(rows_in(eaten, infiniband()) == as_written);
}

TEST_CASE("rows that were left out are told, the others read") {
  const std::string log = read_bytes(fixture("all_reduce_a100_8.log"));
  const std::string row =
      log.substr(log.find("     4194304"), log.find("    16777216") - log.find("     4194304"));
  ClusterFacts facts = nothing_given();
  facts.collective = "allreduce";
  CHECK(rows_in(replaced(log, row, "         ...\n"), facts).size() == 10);
  const std::string rest = log.substr(0, log.find(row)) + "...\n";  // and no last lines
  CHECK(rows_in(rest, facts).size() == 2);
}

TEST_CASE("a table without its head takes the facts from the options") {
  const std::string log = read_bytes(fixture("all_gather_h100_2x8.log"));
  ClusterFacts facts = bare_facts(2);
  facts.collective = "allgather";
  const auto rows = rows_in(log.substr(log.find("#       size")), facts);
  REQUIRE(rows.size() == 12);
  CHECK((rows[0].ranks == 16 && rows[0].nodes == 2 && rows[0].processes.empty()));
  facts.gpu.clear();
  CHECK_THROWS_WITH(rows_in(log.substr(log.find("#       size")), facts), Contains("--gpu"));
}

TEST_CASE("the GH200 of 120 GB is known by CUDA's name") {
  std::string log = read_bytes(fixture("all_reduce_a100_8.log"));
  for (std::size_t at = 0; (at = log.find("A100-SXM4-80GB", at)) != std::string::npos;)
    log.replace(at, 14, "GH200 120GB");
  ClusterFacts facts = nothing_given();
  facts.collective = "allreduce";
  CHECK(rows_in(log, facts)[0].gpu == "GH200-96GB");
}

TEST_CASE("damaged logs are refused, never a crash") {
  ClusterFacts facts = infiniband();
  facts.collective = "allreduce";
  survives_damage(read_bytes(fixture("all_reduce_a100_8.log")),
                  [&](const std::string& text) { rows_in(text, facts); });
  survives_damage(bare_table(of_512_bytes + of_96 + "...\n"), [&](const std::string& text) {
    ClusterFacts bare = bare_facts(12);
    rows_in(text, bare);
  });
  facts.collective = {};
  survives_damage(read_bytes(fixture("sendrecv_h200_2x1.log")),
                  [&](const std::string& text) { rows_in(text, facts); });
  survives_damage(read_bytes(fixture("reduce_scatter_h100_8.json")), [&](const std::string& text) {
    Ignored ignored;
    collective_rows(parse_nccl_tests_json("damaged", text, ignored), facts, ignored);
  });
}
