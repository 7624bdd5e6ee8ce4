#include "sim/program/table_view.hpp"

#include <catch2/catch.hpp>

using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

constexpr Option json_option[] = {{"json", "", "", "print JSON"}, refused_option};
const std::vector<Option> view_options = with_table_options(json_option);
const Verb view_verb{"stepcast list", "", 0, "Lists.", view_options, "stepcast list --top 3"};

TableView view(const std::vector<std::string>& words) {
  return TableView(parse_arguments(view_verb, words));
}

TextTable numbers() {
  TextTable table;
  table.column("n");
  table.column("square");
  for (const int n : {2, 3, 1}) table.row({std::to_string(n), std::to_string(n * n)});
  return table;
}

std::string column_of(const std::vector<std::string>& words) {
  return view(words).arranged(numbers()).csv();
}

std::string shown(const std::vector<std::string>& words) {
  const TableView asked = view(words);
  return asked.text(asked.arranged(numbers()));
}

}  // namespace

TEST_CASE("a table stands as it was asked for") {
  CHECK(column_of({}) == numbers().csv());
  CHECK(column_of({"--sort", "n", "--columns", "n"}) == "n\n1\n2\n3\n");
  for (const char* down : {"-n", "n:desc"})
    CHECK(column_of({"--sort", down, "--columns", "n"}) == "n\n3\n2\n1\n");
  CHECK(column_of({"--sort=n:asc", "--top", "1"}) == "n,square\n1,1\n");
  CHECK(column_of({"--columns", "square,n", "--top", "1"}) == "square,n\n4,2\n");
  CHECK(column_of({"--top", "9"}) == numbers().csv());
  // Ordered by what is not shown.
  CHECK(column_of({"--sort", "-square", "--columns", "n"}) == "n\n3\n2\n1\n");
}

TEST_CASE("--csv - is the table alone") {
  CHECK(view({"--csv", "-"}).prints_csv());
  CHECK(shown({"--csv", "-", "--top", "1"}) == "n,square\n2,4\n");
  CHECK(shown({"--top", "1"}) == "n  square\n2       4\n");
}

TEST_CASE("an option that names nothing, or does nothing, is refused") {
  CHECK_THROWS_WITH(column_of({"--sort", "sqare"}), Contains("did you mean 'square'?"));
  CHECK_THROWS_WITH(column_of({"--columns", "n,,square"}), Contains("no column ''"));
  CHECK_THROWS_WITH(view({"--top", "0"}), Contains("at least 1"));
  CHECK_THROWS_WITH(view({"--json", "--sort", "n"}), Contains("--sort arranges a table"));
  CHECK_THROWS_WITH(view({"--json", "--csv", "-"}), Contains("both --json and --csv -"));
  CHECK_NOTHROW(view({"--json", "--csv", "x.csv", "--sort", "n"}));
  CHECK_THROWS_WITH(view({"--top", "1"}).refuse_for("a cluster is none"),
                    Contains("--top is for one table: a cluster is none"));
  CHECK_NOTHROW(view({}).refuse_for("a cluster is none"));
}
