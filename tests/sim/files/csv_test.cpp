#include "sim/files/csv.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"

using stepcast::sim::csv_cell;
using stepcast::sim::parse_csv;

TEST_CASE("cells are separated by commas, quotes keep commas and line ends inside") {
  const auto file = parse_csv("f.csv", "a,b\r\n1,\"x, \"\"y\"\"\nz\"\n\n,last");
  CHECK(file.header == std::vector<std::string>{"a", "b"});
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].cells == std::vector<std::string>{"1", "x, \"y\"\nz"});
  CHECK(file.rows[0].line == 2);
  CHECK(file.rows[1].cells == std::vector<std::string>{"", "last"});
  CHECK(file.rows[1].line == 5);  // the quoted cell spans two lines, then an empty one
}

TEST_CASE("what is no CSV is told with its line") {
  using Catch::Contains;
  CHECK_THROWS_WITH(parse_csv("f.csv", ""), Contains("f.csv:1"));
  CHECK_THROWS_WITH(parse_csv("f.csv", "a,b\n1,2\n1\n"), Contains("f.csv:3: 1 cells"));
  CHECK_THROWS_WITH(parse_csv("f.csv", "a\n\"open\n\n"), Contains("f.csv:2"));
  CHECK_THROWS_WITH(parse_csv("f.csv", "a\n\"x\"y\n"), Contains("closing quote"));
  CHECK_THROWS_WITH(parse_csv("f.csv", "a\nx\"y\n"), Contains("quote inside"));
  CHECK_THROWS_WITH(parse_csv("f.csv", std::string_view("a\n\0\n", 4)), Contains("no text"));
}

TEST_CASE("no cell is a formula, numbers stay, and the reader gives back what was meant") {
  for (const char* text : {"=1+2", "@SUM(A1)", "+x", "-2+3", "--tensor 8", "\t=1", "'=1", "''@x"}) {
    CHECK(csv_cell(text).find('\'') <= 1);
    CHECK(parse_csv("f.csv", "a\n" + csv_cell(text) + "\n").rows[0].cells[0] == text);
  }
  for (const char* text : {"-", "+", "-1.5e-3", "+30.4", "-12", "it's", "'quoted'", "a=b", "8"}) {
    CHECK(csv_cell(text) == text);
    CHECK(parse_csv("f.csv", "a\n" + csv_cell(text) + "\n").rows[0].cells[0] == text);
  }
  CHECK(csv_cell("a\033[31m") == "a\\u001b[31m");
}

TEST_CASE("a cell written is the cell read") {
  for (const std::string text : {"", "plain", "a,b", "say \"so\"", "two\nlines", "\""}) {
    const auto file = parse_csv("f.csv", "h,i\n" + csv_cell(text) + ",1\n");
    CHECK(file.rows.at(0).cells.at(0) == text);
  }
}
