// Sets of what the study leaves open, read from a file.
#include "validate/study/sets.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>

#include "engine/check.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::validate;
using Catch::Matchers::Contains;

namespace {

/// What reading `text` as a file of sets says.
std::string refusal(const std::string& text) {
  const std::string path = "study_sets_test.toml";
  std::ofstream(path) << text;
  std::string message;
  try {
    read_study_sets(path);
  } catch (const InputError& error) {
    message = error.what();
  }
  std::remove(path.c_str());
  return message;
}

}  // namespace

TEST_CASE("the shipped sets are three clusters at two local batches") {
  const auto sets = read_study_sets(catalogue().directory() + "/study/sets.toml",
                                    {{"plan.prefetch", sim::TomlValue{std::int64_t{2}, "here"}}});
  REQUIRE(sets.size() == 6);
  for (const StudySet& set : sets) {
    CHECK(set.preset);
    CHECK(set.keys.back().first == "plan.prefetch");  // what is set on top comes last
    CHECK(set.local_batch.has_value() == set.name.ends_with("-1"));
  }
  CHECK(sets[2].node("dgx-h100") == "aws-p5");
  CHECK(sets[2].node("dgx-a100") == "dgx-a100");
}

TEST_CASE("a file that is no list of sets is refused at its place") {
  const std::string good = "name = \"a\"\nsays = \"b\"\nevidence = \"c\"\n";
  CHECK(refusal("[[set]]\n" + good).empty());
  CHECK_THAT(refusal("[[set]]\nname = \"a\"\nsays = \"b\"\n"), Contains("evidence"));
  CHECK_THAT(refusal("[[set]]\n" + good + "colour = 1\n"), Contains("toml:5: unknown key"));
  CHECK_THAT(refusal("[[set]]\n" + good + "nodes = { dgx-h100 = 3 }\n"),
             Contains("no name of a node"));
  CHECK_THAT(refusal("[[set]]\n" + good + "[[set]]\n" + good), Contains("stands twice"));
  CHECK_THAT(refusal("set = 3\n"), Contains("no list of tables"));
}
