#include "validate/compare/measurements.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/validate/measured_csv.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {
const std::string good = "H100-SXM5-80GB,allreduce,1048576,8,1,8,fp32,100,us,s,r,high,nvlink,,\n";
}

TEST_CASE("rows keep their lines and kinds") {
  const auto rows = rows_of(collective_header + good + "\n" + good);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].line == 2);
  CHECK(rows[1].line == 4);
  CHECK(rows[1].kind == "allreduce");
  CHECK(rows[1].table.collectives.size() == 1);
}

TEST_CASE("rows of an exported table are named by their family") {
  const auto rows = rows_of(
      "family,gpu,m,n,k,rate [FLOP/s],source,reference,confidence\n"
      "gemm,H100-SXM5-80GB,8,16,32,1e12,s,r,high\n");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].kind == "gemm");
  CHECK(rows[0].table.gemm.size() == 1);
}

TEST_CASE("a bad row is named by file and line") {
  try {
    rows_of(collective_header + good +
            "H100-SXM5-80GB,allreduce,1048576,8,1,8,fp32,fast,us,s,r,high,nvlink,,\n");
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(error.where() == "x.csv:3");
  }
}

TEST_CASE("a pool holds a row once") {
  const auto rows = rows_of(collective_header + good);
  const sim::CalibrationTable pool = pool_of(rows[0].table, rows);
  CHECK(pool.collectives.size() == 1);
  CHECK(pool_of({}, rows).collectives.size() == 1);
}
