#include "sim/scenario/stage_layout.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using Counts = std::vector<std::int64_t>;

std::string refusal(const std::string& text) {
  try {
    parse_stage_layout(text, "a.toml:3");
  } catch (const InputError& error) {
    return error.where() + ": " + error.problem() + " (" + error.hint().substr(0, 8) + ")";
  }
  return "accepted";
}

}  // namespace

TEST_CASE("DeepSeek-V3's layouts have their 61 layers, the ends alone or not") {
  const StageLayout wide = parse_stage_layout("Et*3|(tt|)*29m|L", "here");
  CHECK(wide.layers.size() == 32);
  CHECK(wide.layers.front() == 3);
  CHECK(wide.layers[1] == 2);
  CHECK(wide.layers.back() == 0);
  CHECK(std::accumulate(wide.layers.begin(), wide.layers.end(), std::int64_t{0}) == 61);
  CHECK(wide.mtp[30] == 1);
  const StageLayout narrow = parse_stage_layout("Et|(tt|)*30mL", "here");
  CHECK(narrow.layers.size() == 32);
  CHECK(std::accumulate(narrow.layers.begin(), narrow.layers.end(), std::int64_t{0}) == 61);
  CHECK(narrow.mtp.back() == 1);
}

TEST_CASE("repeats, groups in groups and blanks") {
  CHECK(parse_stage_layout("E t*2, tt | ((t|)*2 tt|)*2 L", "here").layers ==
        Counts{4, 1, 1, 2, 1, 1, 2, 0});
  CHECK(parse_stage_layout("EttL", "here").layers == Counts{2});
}

TEST_CASE("what is no layout is refused with its column") {
  CHECK(refusal("Ett|xL") ==
        "a.toml:3: 'Ett|xL' is no layout of stages: 'x' is no item (column 5)");
  CHECK(
      refusal("tt|L") ==
      "a.toml:3: 'tt|L' is no layout of stages: the embedding E must be its first item (column 1)");
  CHECK(refusal("Ett").find("the loss L must be its last item") != std::string::npos);
  CHECK(refusal("EttL|t").find("the loss L must be its last item") != std::string::npos);
  CHECK(refusal("E(tt|L").find("a ( without its )") != std::string::npos);
  CHECK(refusal("Ett)|L").find("a ) without its (") != std::string::npos);
  CHECK(refusal("Et*|L").find("* without a number of times") != std::string::npos);
  CHECK(refusal("E(t*1000)*1000L").find("it is too long") != std::string::npos);
  CHECK(refusal("Emt|L").find("a layer behind the modules m") != std::string::npos);
  CHECK(refusal("").find("it is empty") != std::string::npos);
}

}  // namespace stepcast::sim
