// The table of Megatron's words against its own argument parsers (megatron_names.tsv).
#include "sim/launch/words.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>

using namespace stepcast::sim;

TEST_CASE("every word of Megatron's table has been in a parser since the release that it says") {
  std::ifstream file(STEPCAST_SOURCE_DIR "/tests/sim/launch/megatron_names.tsv");
  REQUIRE(file);
  std::map<std::string, std::pair<int, int>, std::less<>> parsers;  // first and last minor
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, first, last;
    words >> name >> first >> last;
    parsers[name] = {std::stoi(first.substr(2)), std::stoi(last.substr(2))};
  }
  REQUIRE(parsers.size() > 100);
  const int oldest = 7;  // the first tag that was read
  int checked = 0;
  for (const LaunchWord& word : megatron_words()) {
    if (word.use == Use::ignored || word.use == Use::unsaid) continue;
    const auto found = parsers.find(word.name);
    if (found == parsers.end()) {
      CHECK(word.since == 0);  // NeMo's, Megatron-DeepSpeed's, torchrun's, the dump's own
      continue;
    }
    ++checked;
    INFO(word.name);
    CHECK(std::max(word.since, oldest) == found->second.first);
    CHECK(found->second.second == 19);
  }
  CHECK(checked == static_cast<int>(parsers.size()));
}

TEST_CASE("the most exact word is found, of the first table that has one") {
  const LaunchWord one[] = {{"a*", Use::ignored}, {"ab*", Use::read}, {"abc", Use::count}};
  const LaunchWord other[] = {{"a*", Use::unsaid}, {"b", Use::flag}};
  const LaunchWords tables[] = {one, other};
  CHECK(find_word(tables, "abc")->use == Use::count);
  CHECK(find_word(tables, "abd")->use == Use::read);
  CHECK(find_word(tables, "ax")->use == Use::ignored);
  CHECK(find_word(tables, "b")->use == Use::flag);
  CHECK(find_word(tables, "c") == nullptr);
}
