// The tables of words against the frameworks' own source: Megatron's argument parsers,
// configurations of torchtitan, Megatron-Bridge, verl and nanotron (*_names.tsv), recipes of
// Megatron-Bridge (bridge_recipes.tsv).
#include "sim/launch/words.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sim/launch/bridge_registry.hpp"
#include "sim/launch/other_words.hpp"

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

TEST_CASE("every word that is read is in the framework's source, in the releases that it says") {
  struct Source {
    LaunchWords words;
    const char* table;
    int oldest, newest;            // releases that were read
    bool keeps_old_names = false;  // its parser takes names that it calls otherwise
  };
  // Words of no table are those of launchers, logs, dumps and of tags between the generations.
  for (const Source& source : {Source{megatron_words(), "megatron_names.tsv", 7, 19, true},
                               Source{torchtitan_words(), "torchtitan_names.tsv", 2024, 2026},
                               Source{bridge_words(), "bridge_names.tsv", 2, 6},
                               Source{verl_words(), "verl_names.tsv", 3, 9},
                               Source{nanotron_words(), "nanotron_names.tsv", 2024, 2026}}) {
    const auto names = names_of(source.table);
    std::set<std::string, std::less<>> checked;
    for (const LaunchWord& word : source.words) {
      const auto found = names.find(word.name);
      INFO(source.table << ": " << word.name);
      if (found == names.end()) {
        const bool means = word.use != Use::ignored && word.use != Use::unsaid;
        CHECK((!means || word.name.ends_with('*') || word.since == 0));
        continue;
      }
      const auto& [first, last] = found->second;
      CHECK(checked.emplace(word.name).second);
      CHECK(std::max(word.since, source.oldest) == first);
      if (word.until == 0 || last != source.newest || !source.keeps_old_names)
        CHECK(word.until == (last == source.newest ? 0 : last + 1));
    }
    CHECK(checked.size() == names.size());
  }
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
