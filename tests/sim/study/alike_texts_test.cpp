#include "sim/study/alike_texts.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace stepcast::sim;

TEST_CASE("texts that differ in a few numbers take the room of these") {
  const auto row = [](int i) {
    std::string out = "{\"model\":\"llama2-1b\",\"step_time_s\":0." + std::to_string(i);
    for (int member = 0; member < 100; ++member) out += ",\"a member of the plan\":12345";
    return out + ",\"warnings\":[]}";
  };
  AlikeTexts texts;
  for (int i = 0; i < 1000; ++i) REQUIRE(texts.add(row(i)) == static_cast<std::size_t>(i));
  for (int i = 0; i < 1000; ++i) REQUIRE(texts.text(static_cast<std::size_t>(i)) == row(i));
  CHECK(texts.kept() < row(0).size() + 1000 * 16);
}

TEST_CASE("every text comes back as it was added, in whatever order") {
  CHECK(rc::check([] {
    const std::vector<std::string> pieces{"",     ",",   ":",  "a",   "{\"b\":1,",
                                          "\x01", "2.5", ",,", "::x,"};
    const auto texts = *rc::gen::container<std::vector<std::vector<std::size_t>>>(
        rc::gen::container<std::vector<std::size_t>>(
            rc::gen::inRange<std::size_t>(0, pieces.size())));
    std::vector<std::string> added;
    for (const auto& choice : texts) {
      added.emplace_back();
      for (const std::size_t piece : choice) added.back() += pieces[piece];
    }
    AlikeTexts forward, backward;
    for (const std::string& text : added) forward.add(text);
    for (auto text = added.rbegin(); text != added.rend(); ++text) backward.add(*text);
    for (std::size_t i = 0; i < added.size(); ++i) {
      RC_ASSERT(forward.text(i) == added[i]);
      RC_ASSERT(backward.text(added.size() - 1 - i) == added[i]);
    }
  }));
}

TEST_CASE("a number of equal fields of any size is kept") {
  std::string many;
  for (int i = 0; i < 40'000; ++i) many += "x,";
  AlikeTexts texts;
  for (const std::string& text : {many + "1", many + "2", "y," + many + "1", many}) {
    const std::size_t place = texts.add(text);
    CHECK(texts.text(place) == text);
  }
}
