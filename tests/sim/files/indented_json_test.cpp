#include "sim/files/indented_json.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/random_json.hpp"

using namespace stepcast::sim;

namespace {

/// By the library, whose text stands `depth` blanks deep.
std::string by_library(const std::string& line, std::size_t depth) {
  std::string out;
  for (const char c : nlohmann::ordered_json::parse(line).dump(2)) {
    out += c;
    if (c == '\n') out.append(depth, ' ');
  }
  return out;
}

}  // namespace

TEST_CASE("a line of JSON is indented as the library does it") {
  CHECK(indented_json(R"({"a":[1,{"b":[]}],"c":{},"d":"{\",:["})", 0) ==
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {},\n"
        "  \"d\": \"{\\\",:[\"\n}");
  CHECK(rc::check([] {
    const std::string line = random_json(4).dump();
    for (const std::size_t depth : {0U, 4U})
      RC_ASSERT(indented_json(line, depth) == by_library(line, depth));
  }));
}
