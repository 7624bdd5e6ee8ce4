#include "sim/told/told.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

using namespace stepcast::sim;
using Json = nlohmann::ordered_json;

namespace {

/// Three rows: for all, for programs, for people.
TextTable parts() {
  TextTable table{{"part", "what", TextTable::Align::left},
                  {"time", "time_s"},
                  {"share"},
                  filed("of/stage"),
                  filed("late")};
  table.row({"gemm", {"1.50 s", 1.5}, "75 %", kept(std::int64_t{2})});
  table.row({"cast", {"500 ms", 0.5}, "25 %", kept(std::int64_t{0}), kept(true)},
            TextTable::For::files);
  table.row({"the rest", {"500 ms", 0.5}, "25 %"}, TextTable::For::people);
  return table;
}

}  // namespace

TEST_CASE("an answer is told once: people read its lines, programs what has a key") {
  ToldSection told;
  told.keep("step_s", 2.0);
  told.say("step 2 s");
  told.table("parts", parts());
  told.keep("wall/down", std::size_t{3});
  told.keep("wall/left", std::optional<double>());
  told.keep_json("edges", [] { return Json{{"from", 1}}; });
  CHECK(as_text(told) ==
        "step 2 s\n"
        "\n"
        "part        time  share\n"
        "gemm      1.50 s   75 %\n"
        "the rest  500 ms   25 %\n");
  CHECK(as_json(told).dump() ==
        R"({"step_s":2.0,"parts":[{"what":"gemm","time_s":1.5,"of":{"stage":2}},)"
        R"({"what":"cast","time_s":0.5,"of":{"stage":0},"late":true}],)"
        R"("wall":{"down":3,"left":null},"edges":{"from":1}})");
}

TEST_CASE("a table without a row for people is no text, and a list for programs") {
  TextTable table{{"part", "what"}};
  ToldSection told;
  told.table("parts", table);
  CHECK(as_text(told).empty());
  CHECK(as_json(told).dump() == R"({"parts":[]})");
}

TEST_CASE("what is no number is null, what is left out has no key") {
  TextTable table{{"a", "a"}, {"b", "b"}, {"c", "c"}, filed("d")};
  table.row({{"-", std::numeric_limits<double>::infinity()}, "-", TableCell()});
  ToldSection told;
  told.table("rows", table);
  CHECK(as_json(told).dump() == R"({"rows":[{"a":null,"b":null}]})");
}

TEST_CASE("sections of a list follow each other, and are its objects") {
  ToldSection told, one, two;
  one.say("first");
  one.keep("name", "first");
  two.say("second");
  two.keep("name", "second");
  told.blocks.emplace_back(ToldEach{"all", {one, two}});
  CHECK(as_text(told) == "first\nsecond\n");
  CHECK(as_json(told).dump() == R"({"all":[{"name":"first"},{"name":"second"}]})");
  CHECK(as_page({"title", "", {told}}).find("<p>second</p>") != std::string::npos);
}

TEST_CASE("a sentence takes the place of cells that programs get") {
  TextTable table{{"what if", "what"}, {"step", "step_s"}, filed("refused")};
  table.sentence({"x", "-", kept("too large")}, 1, "too large");
  ToldSection told;
  told.table("levers", table);
  CHECK(as_text(told) == "what if  step\n      x  too large\n");
  CHECK(as_json(told).dump() == R"({"levers":[{"what":"x","step_s":null,"refused":"too large"}]})");
}
