#include "sim/files/text_table.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace stepcast::sim;

namespace {

/// Name, size with values behind the text, a detail; "c" was refused.
TextTable three_rows() {
  TextTable table;
  table.column("name", "", TextTable::Align::left);
  table.column("Step time", "s", TextTable::Align::right, "step_time_s");
  table.detail("why");
  table.row({"a", TableCell("1.23", 1.23456789), "-"});
  table.folded({"c", "-", "out of memory"}, 1, "refused: out of memory");
  table.row({"b", TableCell("10.0", 10.0 / 3 * 3)});
  return table;
}

}  // namespace

TEST_CASE("a file has every column, values in full, nothing for what is not known") {
  CHECK(three_rows().csv() ==
        "name,step_time_s,why\n"
        "a,1.23456789,\n"
        "c,,out of memory\n"
        "b,10,\n");
  const TableCell infinite("-", std::numeric_limits<double>::infinity());
  CHECK(infinite.value().empty());
  CHECK(counted(1234567).text == "1,234,567");
  CHECK(counted(1234567).value() == "1234567");
  CHECK(rounded(std::nullopt).text == "-");
}

TEST_CASE("details are in no text until they are selected") {
  CHECK(three_rows().text() ==
        "name  Step time\n"
        "              s\n"
        "a          1.23\n"
        "c     refused: out of memory\n"
        "b          10.0\n");
  TextTable table = three_rows();
  table.select({2, 0});
  CHECK(table.text(TextTable::Folded::left_out) ==
        "why  name\n"
        "  -  a\n"
        "  -  b\n");
  CHECK(table.csv() == "why,name\n,a\nout of memory,c\n,b\n");
}

TEST_CASE("a sentence begins behind the selected cells that stood before it") {
  TextTable table = three_rows();
  table.select({0, 2});
  CHECK(table.text() ==
        "name  why\n"
        "a       -\n"
        "c     refused: out of memory\n"
        "b       -\n");
  table.select({1});
  CHECK(table.text() == "why\n  -\nrefused: out of memory\n  -\n");
}

TEST_CASE("numbers are ordered by size both ways, before texts, and nothing comes last") {
  TextTable table;
  table.column("x");
  for (const char* cell : {"10", "-", "9", "b", "a", "1e1"}) table.row({cell});
  table.sort(0, false);
  CHECK(table.csv() == "x\n9\n10\n1e1\na\nb\n\n");  // 10 and 1e1 as they stood
  table.sort(0, true);
  CHECK(table.csv() == "x\n10\n1e1\n9\nb\na\n\n");
}

TEST_CASE("the first rows are those with an answer") {
  TextTable table = three_rows();
  table.keep_first(1, TextTable::Folded::left_out);
  CHECK(table.csv() == "name,step_time_s,why\na,1.23456789,\n");
  TextTable shown = three_rows();
  shown.keep_first(1, TextTable::Folded::shown);
  CHECK(shown.num_rows() == 2);
}

TEST_CASE("a column is found by its key and by its heading") {
  const TextTable table = three_rows();
  CHECK(table.find("step_time_s") == 1u);
  CHECK(table.find("step time") == 1u);
  CHECK(table.find("Step_Time") == 1u);
  CHECK(table.find("why") == 2u);
  CHECK_FALSE(table.find("step"));
}

TEST_CASE("a share too small for digits is not written with an exponent") {
  CHECK(percent(0.00123) == "0.123 %");
  CHECK(percent(6.96e-7) == "0.000 %");
  CHECK(percent(-6.96e-7) == "-0.000 %");
  CHECK(percent(0.0) == "0 %");
}
