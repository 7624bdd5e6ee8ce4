#include "validate/compare/collectives.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/network/nccl/tuning.hpp"
#include "tests/session.hpp"
#include "tests/validate/measured_csv.hpp"

using namespace stepcast;
using namespace stepcast::validate;
using namespace stepcast::literals;

namespace {

/// An AllReduce on one DGX H100, slower than any: `us` at 1, 4, 16 and 64 MiB in proportion.
std::string slow_curve(const std::string& reference, double us) {
  std::string out;
  for (const int mib : {1, 4, 16, 64})
    out += "H100-SXM5-80GB,allreduce," + std::to_string(mib << 20) + ",8,1,8,fp32," +
           std::to_string(us * mib) + ",us,made up," + reference + ",high,nvlink,,\n";
  return out;
}

Comparison compare(const std::string& text, const CollectiveOptions& options = {}) {
  return compare_collectives("x.csv", rows_of(collective_header + text), {}, catalogue(), options);
}

Duration model_alone(Bytes bytes) {
  const auto node = catalogue().node(sim::toml_text("dgx-h100", "test"));
  const sim::NcclFacts& nccl = catalogue().nccl("2.20");
  return sim::CollectiveTimes(node, nccl)
      .time_of(workloads::CollectiveKind::all_reduce, bytes, {8, 1, 8, 1})
      .duration;
}

std::string reason(const std::string& line) { return compare(line + "\n").rows.front().not_scored; }

}  // namespace

TEST_CASE("a row is not predicted from the curve of its own source") {
  const Comparison out = compare(slow_curve("github:a/b x", 5000));
  REQUIRE(out.rows.size() == 4);
  CHECK(out.left_out == "source");
  for (const ComparedRow& row : out.rows) {
    CHECK(row.scored());
    CHECK(*row.predicted == model_alone(row.bytes));
    CHECK(row.provenance == "model");
  }
}

TEST_CASE("with curves a row is predicted from itself") {
  const Comparison out = compare(slow_curve("github:a/b x", 5000), {"2.20", Curves::all});
  CHECK(out.left_out == "nothing");
  for (const ComparedRow& row : out.rows) {
    CHECK(row.error() == Approx(0).margin(1e-9));
    CHECK(row.provenance == "measured");
  }
}

TEST_CASE("a row is predicted from a known curve of another source") {
  const sim::CalibrationTable known =
      pool_of({}, rows_of(collective_header + slow_curve("github:c/d x", 8000)));
  const auto rows = rows_of(collective_header + slow_curve("github:a/b x", 5000));
  const Comparison out = compare_collectives("x.csv", rows, known, catalogue());
  REQUIRE(out.rows.size() == 4);
  // What the other source measured: 8/5 of this one's figures.
  CHECK(out.rows[0].error() == Approx(0.6));
  const Comparison alone =
      compare_collectives("x.csv", rows, known, catalogue(), {"2.20", Curves::none});
  CHECK(*alone.rows[0].predicted == model_alone(alone.rows[0].bytes));
}

TEST_CASE("the rows of a file say nothing about each other") {
  const Comparison out =
      compare(slow_curve("github:a/b x", 5000) + slow_curve("github:c/d x", 8000));
  REQUIRE(out.rows.size() == 8);
  for (const ComparedRow& row : out.rows) CHECK(*row.predicted == model_alone(row.bytes));
}

TEST_CASE("an error within what can be read off a plot is none") {
  const double bus = 1048576 * 1.75 / seconds(model_alone(1_MiB)) / 1e9;
  const auto error = [&](double off, const char* source) {
    return compare("H100-SXM5-80GB,allreduce,1048576,8,1,8,fp32," + std::to_string(bus + off) +
                   ",GB/s busbw,\"" + source + "\",r,high,nvlink,,\n")
        .rows.front()
        .error();
  };
  CHECK(error(2.9, "Fig. 2, digitised +-3 GB/s") == 0.0);
  CHECK(error(3.1, "Fig. 2, digitised +-3 GB/s") != 0.0);
  CHECK(error(2.9, "a table") != 0.0);
}

TEST_CASE("rows that do not count are kept with their reason") {
  const std::string start = "H100-SXM5-80GB,allreduce,";
  const std::string end = ",100,us,s,github:a/b x,high,";
  CHECK(reason(start + "max,8,1,8,fp32,400,GB/s busbw,s,r,high,nvlink,,") ==
        "a peak without a size (max)");
  CHECK(reason(start + "1048576,16,multi,8,fp32" + end + "infiniband,3200,") ==
        "number of nodes not stated (multi)");
  CHECK(reason(start + "1048576,8,1,8,fp32" + end + ",,") == "fabric not stated");
  CHECK(reason(start + "1048576,16,2,8,fp32" + end + "pcie,3200,") == "nodes joined by pcie");
  CHECK(reason(start + "1048576,8,1,8,fp32" + end + "nvlink,,2.4.8") ==
        "NCCL 2.4.8 has no choice table");
  CHECK(reason(start + "1048576,2,1,4,fp32" + end + "nvlink,,") ==
        "a node of 4 GPUs, the catalogue's has 8");
  CHECK(reason("any,allreduce,1048576,8,1,8,fp32" + end + "nvlink,,") ==
        "no node with any in the catalogue");
}

TEST_CASE("a row that does not state its NICs gets the node's own") {
  const Comparison out =
      compare("H100-SXM5-80GB,allreduce,1048576,16,2,8,fp32,100,us,s,r,high,infiniband,,\n");
  CHECK(out.rows.front().scored());
  CHECK_THAT(out.rows.front().what, Catch::Contains("NICs assumed"));
}

TEST_CASE("a row of low confidence is predicted and not scored") {
  const Comparison out =
      compare("H100-SXM5-80GB,allreduce,1048576,8,1,8,fp32,100,us,s,r,low,nvlink,,\n");
  CHECK(out.rows.front().not_scored == "low confidence");
  CHECK(out.rows.front().predicted == model_alone(1_MiB));
}

TEST_CASE("a node has the NICs that the row states") {
  const auto time = [](const std::string& gigabits) {
    return *compare("H100-SXM5-80GB,allreduce,1073741824,32,4,8,fp32,9000,us,s,r,high,infiniband," +
                    gigabits + ",\n")
                .rows.front()
                .predicted;
  };
  CHECK(time("3200") < time("1600"));
  CHECK(time("1600") < time("100"));
}

TEST_CASE("a file without collectives and a version that nobody knows are bad input") {
  CHECK_THROWS_AS(rows_of(collective_header), InputError);
  CHECK_THROWS_AS(compare(slow_curve("r", 1), {"1.0", Curves::other_sources}), InputError);
}
