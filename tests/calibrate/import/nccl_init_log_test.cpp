#include "calibrate/import/nccl_init_log.hpp"

#include "calibrate/import/import_files.hpp"
#include "tests/calibrate/catalogue_gpus.hpp"
#include "tests/calibrate/mutations.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using namespace stepcast::literals;
using Catch::Contains;

namespace {

NcclInit init_in(const std::string& text) { return nccl_init_of(parse_text("damaged", text)); }

std::string said(const std::string& line) {
  return to_text(init_in("node01:77:78 [0] NCCL INFO " + line + "\n"));
}

}  // namespace

TEST_CASE("a log of NCCL_DEBUG=INFO says version, ranks, nodes, NICs, network and channels") {
  const auto import = import_files(std::vector{fixture("nccl-info-2x8.log")}, nothing_given());
  CHECK(import.table == sim::CalibrationTable{});
  CHECK_THAT(import.report, Contains("nccl-info-2x8.log: NCCL 2.21.5, 16 ranks on 2 nodes, "
                                     "8 NICs of roce, 400 GB/s in all, 16 channels"));
}

TEST_CASE("networks are told apart by NCCL's own words") {
  CHECK(said("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.0.0.1<0>") ==
        "2 NICs of infiniband");
  CHECK(said("NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:10.0.0.1<0>") == "1 NICs of roce");
  CHECK(said("NET/Socket : Using [0]ens5:10.0.0.1<0> [1]ens6:10.0.1.1<0>") == "2 NICs of ethernet");
  CHECK(said("NET/OFI Selected Provider is efa (found 4 nics)") == "4 NICs of efa");
  CHECK(said("NET/OFI Selected provider is efa, fabric is efa-direct (found 16 nics)") ==
        "16 NICs of efa");
}

TEST_CASE("before 2.19 the hosts of all ranks tell the nodes") {
  const auto line = [](const std::string& host, int rank) {
    return host + ":7:8 [0] NCCL INFO comm 0x55 rank " + std::to_string(rank) +
           " nranks 2 cudaDev 0 busId 18000 - Init COMPLETE\n";
  };
  CHECK(init_in(line("a", 0) + line("b", 1)).nodes == 2);
  CHECK_FALSE(init_in(line("a", 0)).nodes);  // the log of one rank
}

TEST_CASE("of several communicators the largest counts") {
  const auto init = init_in(
      "a:7:8 [0] NCCL INFO comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n"
      "a:7:8 [0] NCCL INFO comm 0x2 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0\n");
  CHECK((init.ranks == 16 && init.nodes == 2));
}

TEST_CASE("NCCL's start completes a table that was pasted without its head") {
  const std::string path = std::string(STEPCAST_BINARY_DIR) + "/all_gather-with-info.log";
  const std::string table = read_bytes(fixture("all_gather_h100_2x8.log"));
  write_bytes(path,
              read_bytes(fixture("nccl-info-2x8.log")) + table.substr(table.find("#       s")));
  ClusterFacts facts = nothing_given();
  facts.gpu = "H100-SXM5-80GB";
  const auto rows = import_files(std::vector{path}, facts).table.collectives;
  REQUIRE(rows.size() == 12);
  CHECK((rows[0].ranks == 16 && rows[0].nodes == 2 && rows[0].fabric == "roce"));
  CHECK((rows[0].nccl == "2.21.5" && rows[0].node_bandwidth == 400_GBps));
}

TEST_CASE("a damaged log of NCCL's start never crashes") {
  const std::string log = read_bytes(fixture("nccl-info-2x8.log"));
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    try {
      (void)to_text(init_in(mutated(log, seed)));
    } catch (const InputError& error) {  // a byte that is no text
      REQUIRE_THAT(error.what(), Contains("damaged:"));
    }
  }
}
