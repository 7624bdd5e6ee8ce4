#include "validate/rows/pattern.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <regex>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

bool found(const std::string& pattern, const std::string& text) {
  return Pattern(pattern, "here").found_in(text);
}

/// Draws patterns and texts of few characters, so that they meet often.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string out;
    for (std::size_t left = below(12); left > 0; --left)
      out += one_of({"a", "A", "b", "1", " ", "-"});
    return out;
  }

  /// Of at most so many levels of groups.
  std::string pattern(std::size_t depth) {
    std::string out = sequence(depth);
    while (below(3) == 0) out += "|" + sequence(depth);
    return out;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::string one_of(const std::vector<std::string>& words) { return words[below(words.size())]; }

  std::string sequence(std::size_t depth) {
    std::string out = one_of({"", "", "", "^", "\\b"});
    for (std::size_t left = 1 + below(3); left > 0; --left) out += part(depth);
    return out + one_of({"", "", "", "$", "\\b"});
  }

  std::string part(std::size_t depth) {
    const std::string single =
        one_of({"a", "B", "1", ".", "\\d", "\\w", "\\s", "[a1]", "[^a]", "[ -]", "[a-b]", "\\-"});
    if (depth == 0 || below(2) == 0)
      return single + one_of({"", "", "?", "*", "+", "{0,2}", "{1,3}"});
    // std::regex takes the begin of a lookahead for that of the text.
    if (below(4) == 0) return one_of({"(?=", "(?!"}) + single + "*" + part(0) + ")";
    return one_of({"(", "(?:"}) + pattern(depth - 1) + ")" + one_of({"", "", "?", "{0,2}"});
  }

  std::mt19937 random_;
};

TEST_CASE("a pattern is found where std::regex finds it") {
  Draw draw(20261127);
  std::size_t hits = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::string pattern = draw.pattern(2);
    const Pattern ours(pattern, "here");
    const std::regex theirs(pattern, std::regex::ECMAScript | std::regex::icase);
    for (int k = 0; k < 10; ++k) {
      const std::string text = draw.text();
      INFO(pattern << " in '" << text << "'");
      const bool expected = std::regex_search(text, theirs);
      CHECK(ours.found_in(text) == expected);
      hits += expected;
    }
  }
  CHECK(hits > 3000);
  CHECK(hits < 14000);
}

TEST_CASE("letter case does not count, in sets neither") {
  CHECK(found("fsdp", "PyTorch FSDP"));
  CHECK(found("[hv]100", "H100"));
  CHECK(found("[A-C]1", "b1"));
  CHECK_FALSE(found("[^a]", "A"));
}

TEST_CASE("a lookahead stands in the whole text") {
  CHECK(found("^(?!.*bridge).*nemo", "NeMo 24.07"));
  CHECK_FALSE(found("^(?!.*bridge).*nemo", "Megatron-Bridge of NeMo"));
  CHECK(found("(?=.*a100)(?=.*pci)", "PCIe A100"));
  CHECK_FALSE(found("(?=.*\\bhf\\b)", "xhf"));
}

TEST_CASE("a repeat that is nowhere does not try every way") {
  CHECK_FALSE(found("h100[^|]{0,100}96 ?GB", "h100 " + std::string(1500, '9')));
  CHECK(found("h100[^|]{0,20}96 ?GB", "H100 with 96 GB"));
}

TEST_CASE("what is no pattern is refused where it stands") {
  for (const char* pattern :
       {"(", ")", "a)", "[", "[]", "[b-a]", "*", "a**", "(a?)*", "(?:^)*", "\\", "\\1", "\\q",
        "a{2,1}", "a{1}", "a{0,101}", "a{-1,2}", "{", "(?"}) {
    INFO(pattern);
    CHECK_THROWS_AS(Pattern(pattern, "file:3"), InputError);
  }
}

}  // namespace
}  // namespace stepcast::validate
