// The tables of words against the frameworks' own source: Megatron's argument parsers
// (megatron_names.tsv), torchtitan's configurations (torchtitan_names.tsv), Megatron-Bridge's
// recipes (bridge_recipes.tsv).
#include "sim/launch/words.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sim/launch/bridge_registry.hpp"

using namespace stepcast::sim;

namespace {

/// First and last release of each name: a year, or the minor of a version 0.
std::map<std::string, std::pair<int, int>, std::less<>> names_of(const std::string& table) {
  std::ifstream file(STEPCAST_SOURCE_DIR "/tests/sim/launch/" + table);
  REQUIRE(file);
  std::map<std::string, std::pair<int, int>, std::less<>> out;
  const auto release = [](const std::string& text) {
    return std::stoi(text.starts_with("0.") ? text.substr(2) : text);
  };
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, first, last;
    words >> name >> first >> last;
    out[name] = {release(first), release(last)};
  }
  return out;
}

}  // namespace

TEST_CASE("every word of Megatron's table has been in a parser since the release that it says") {
  const auto parsers = names_of("megatron_names.tsv");
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

TEST_CASE("every word of torchtitan's table is in the generations that it says") {
  const auto source = names_of("torchtitan_names.tsv");
  REQUIRE(source.size() >= 60);
  const int newest = 2026;
  std::set<std::string, std::less<>> checked;
  for (const LaunchWord& word : torchtitan_words()) {
    if (word.use == Use::ignored || word.name.ends_with('*')) continue;
    const auto found = source.find(word.name);
    INFO(word.name);
    if (found == source.end()) {
      CHECK(word.since == 0);  // of a log, of the command line, of a tag between the generations
      continue;
    }
    CHECK(checked.emplace(word.name).second);
    CHECK(word.since == found->second.first);
    CHECK(word.until == (found->second.second == newest ? 0 : found->second.second + 1));
  }
  CHECK(checked.size() == source.size());
}

TEST_CASE("every recipe that is named for Megatron-Bridge is one of its functions") {
  const auto source = names_of("bridge_recipes.tsv");
  CHECK(source.size() == bridge_recipes().size());
  for (const BridgeRecipe& recipe : bridge_recipes()) {
    const auto found = source.find(pretrain_function(recipe));
    INFO(recipe.stem);
    REQUIRE(found != source.end());
    CHECK(found->second == std::pair(recipe.since, 5));
    CHECK(bridge_recipe_named(pretrain_function(recipe)) == &recipe);
    CHECK(bridge_recipe_of(recipe.model) == &recipe);
  }
  CHECK(bridge_recipe_named("qwen3_8b_sft_config") == bridge_recipe_of("qwen3-8b"));
  CHECK(bridge_recipe_of("mixtral-8x7b") == nullptr);
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
