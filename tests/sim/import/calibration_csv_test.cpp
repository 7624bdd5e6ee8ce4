#include "sim/import/calibration_csv.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/sim/whole_table.hpp"

using namespace stepcast;
using Catch::Contains;
using sim::export_csv;
using sim::import_csv;
using sim::parse_csv;

TEST_CASE("every column of every family comes back from CSV as it was") {
  sim::CalibrationTable again = import_csv(parse_csv("x.csv", export_csv(sim::whole_table())));
  again.title = "whole";
  again.created = "2026-11-22";
  CHECK(again == sim::whole_table());
  CHECK(sim::num_rows(again) == 2 * sim::families().size());
}

TEST_CASE("a header names the columns of the families that have rows, and no others") {
  sim::CalibrationTable table;
  table.powers = {{"X", "idle", Watts(70.5), {"s", "r", "high"}}};
  CHECK(export_csv(table) ==
        "gpu,family,load,power [W],source,reference,confidence,device,driver,runtime,gemm_library,"
        "collective_library,clocks,date,command\n"
        "X,powers,idle,70.5,s,r,high,,,,,,,,\n");
}

TEST_CASE("what a row of a family cannot say is told with file and line") {
  const auto with = [](const std::string& header, const std::string& row) {
    return import_csv(
        parse_csv("rows.csv", "family,gpu,source,reference,confidence," + header + "\n" + row));
  };
  const std::string power = "powers,X,s,r,high,";
  CHECK(with("power [W]", power + "70").powers.at(0).power == Watts(70));
  CHECK_THROWS_WITH(with("power [W]", power + "70 W"),
                    Contains("rows.csv:2: power \"70 W\" is not a number"));
  CHECK_THROWS_WITH(with("power [W]", power + "0"), Contains("\"0\" is not a positive number"));
  CHECK_THROWS_WITH(with("power [W]", power + "nan"), Contains("\"nan\" is not a number"));
  CHECK_THROWS_WITH(with("power [W]", power), Contains("\"0\" is not a positive number"));
  CHECK_THROWS_WITH(with("m,power [W]", power + "8,70"),
                    Contains("rows.csv:2: a row of powers has no column \"m\""));
  CHECK_THROWS_WITH(with("power", power + "70"), Contains("rows.csv:1: unknown column \"power\""));
  CHECK_THROWS_WITH(with("power [W]", "power,X,s,r,high,70"),
                    Contains("unknown family \"power\", did you mean 'powers'?"));
  CHECK_THROWS_WITH(with("power [W]", "powers,X,s,r,sure,70"), Contains("none of high, medium"));
  CHECK_THROWS_WITH(with("power [W]", "powers,,s,r,high,70"), Contains("\"gpu\" is empty"));
  CHECK_THROWS_WITH(with("accumulate", "gemm,X,s,r,high,2"), Contains("\"2\" is not 0 or 1"));
  CHECK_THROWS_WITH(with("m", "gemm,X,s,r,high,9999999999999"), Contains("not a whole number"));
}
