#include "sim/program/answer_forms.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

TEST_CASE("rows of an answer become lines, numbers as JSON writes them") {
  const char* json = R"({"sides": [
      {"name": "a, \"b\"", "parts_s": {"compute": 0.1, "wait": 0.0}, "gpus": 8},
      {"name": "<c>", "refused": "too large", "notes": ["one", "two"], "gpus": null}]})";
  CHECK(rows_csv(json, {"sides"}) ==
        "name,parts_s.compute,parts_s.wait,gpus,refused,notes\n"
        "\"a, \"\"b\"\"\",0.1,0.0,8,,\n"
        "<c>,,,,too large,one; two\n");
}

TEST_CASE("of several arrays a column says which") {
  const char* json = R"({"rates": [{"of": "x"}], "ettr": [{"id": 1, "ettr": 0.97}]})";
  CHECK(rows_csv(json, {"rates", "ettr"}) == "table,of,id,ettr\nrates,x,,\nettr,,1,0.97\n");
}

TEST_CASE("an object without rows is one row") {
  CHECK(rows_csv(R"({"step_s": 0.5, "run": {"days": 2}, "notes": []})", {}) ==
        "step_s,run.days,notes\n0.5,2,\n");
}

TEST_CASE("lists of objects stay one cell, and no rows are one empty line") {
  CHECK(rows_csv(R"([{"a": [{"b": 1}]}])", {}) == "a\n\"[{\"\"b\"\":1}]\"\n");
  CHECK(rows_csv(R"({"rows": []})", {"rows"}) == "\n");
}

TEST_CASE("JSON and CSV do not share standard output") {
  const Option options[] = {json_option, rows_option};
  const Verb verb{"stepcast why", "", 0, "", options, ""};
  CHECK_THROWS_AS(check_forms(parse_arguments(verb, {"--json", "--csv", "-"})), UsageError);
  CHECK_NOTHROW(check_forms(parse_arguments(verb, {"--json", "--csv", "file.csv"})));
}

}  // namespace
}  // namespace stepcast::sim
