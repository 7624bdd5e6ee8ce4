#include "sim/files/suggest.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using stepcast::sim::closest;
using stepcast::sim::suggestion;

TEST_CASE("a mistyped word finds the known one") {
  const std::vector<std::string> options{"--nodes", "--model", "--micro-batch", "--json"};
  CHECK(closest("--node", options) == "--nodes");
  CHECK(closest("--micro_batch", options) == "--micro-batch");
  CHECK(closest("--jsno", options) == "--json");
}

TEST_CASE("a word like none of the known ones gets no suggestion") {
  const std::vector<std::string> options{"tensor", "pipeline"};
  CHECK_FALSE(closest("frobnicate", options));
  CHECK_FALSE(closest("x", options));
  CHECK_FALSE(closest("anything", std::vector<std::string>{}));
}

TEST_CASE("a list of the known words names each once") {
  const std::vector<std::string> versions{"2.3", "2.7", "2.3", "2.7"};
  CHECK(suggestion("frobnicate", versions) == "known: 2.3, 2.7");
  CHECK(suggestion("2.33", versions) == "did you mean '2.3'?");
  CHECK(suggestion("anything", std::vector<std::string>{}).empty());
}

TEST_CASE("the beginning of a few words finds them, in whatever spelling") {
  const std::vector<std::string> models{"gpt3-175b", "mixtral-8x7b", "mixtral-8x22b", "gpt-22b"};
  CHECK(suggestion("GPT-3", models) == "did you mean 'gpt3-175b'?");
  CHECK(suggestion("mixtral", models) == "did you mean 'mixtral-8x7b' or 'mixtral-8x22b'?");
  CHECK(suggestion("gp", models).starts_with("known: "));
  const std::vector<std::string> many{"llama2-1", "llama2-2", "llama2-3", "llama2-4", "llama2-5"};
  CHECK(suggestion("llam", many).starts_with("known: "));
}
