#include "sim/compare/attribution.hpp"

#include <catch2/catch.hpp>

using namespace stepcast::sim;

namespace {

/// A change that sets a key of the document to 1.
NamedChange sets(const std::string& key) {
  return {.name = key, .from = "0", .to = "1", .make = [key](TomlValue& document) {
            document.set(key, {std::int64_t{1}, {}});
          }};
}

bool has(const TomlValue& document, const char* key) { return document.find(key) != nullptr; }

/// The step of each document by a function of which keys are set.
template <class Step>
Outcomes by(Step step) {
  return [=](const std::vector<TomlValue>& documents) {
    std::vector<Outcome> out;
    for (const TomlValue& document : documents) out.push_back(step(document));
    return out;
  };
}

const TomlValue nothing = toml_table({});

}  // namespace

TEST_CASE("each alone, all together, and what neither says: the interaction") {
  const auto step = [](const TomlValue& d) {
    return Outcome{100 - (has(d, "a") ? 10 : 0) - (has(d, "b") ? 4 : 0) -
                   (has(d, "a") && has(d, "b") ? 6 : 0)};
  };
  const auto found = attribute(nothing, {sets("a"), sets("b"), sets("idle")}, by(step), {});
  REQUIRE(found);
  CHECK((found->from_ps == 100 && found->to_ps == 80));
  CHECK((found->changes[0].alone_ps == -10 && found->changes[0].share_ps == -13));
  CHECK((found->changes[1].alone_ps == -4 && found->changes[1].share_ps == -7));
  CHECK(found->changes[2].without_effect());
  CHECK_FALSE(found->changes[0].without_effect());
  CHECK(found->interaction_ps() == -6);
}

TEST_CASE("changes that are impossible alone and possible together are one") {
  const auto step = [](const TomlValue& d) {
    if (has(d, "plan") != has(d, "software")) return Outcome{std::nullopt, "cannot run it"};
    return Outcome{100 - (has(d, "plan") ? 30 : 0) - (has(d, "nic") ? 5 : 0)};
  };
  const auto found =
      attribute(nothing, {sets("plan"), sets("nic"), sets("software")}, by(step), {});
  REQUIRE(found);
  REQUIRE(found->changes.size() == 2);
  CHECK(found->changes[0].name == "plan + software");
  CHECK(found->changes[0].to == "1 + 1");
  CHECK((found->changes[0].share_ps == -30 && found->changes[1].share_ps == -5));
}

TEST_CASE("a change that needs another first keeps its share, and says why it is not alone") {
  const auto step = [](const TomlValue& d) {
    if (has(d, "virtual") && !has(d, "pipeline")) return Outcome{std::nullopt, "one stage"};
    return Outcome{100 + (has(d, "pipeline") ? 20 : 0) - (has(d, "virtual") ? 15 : 0)};
  };
  const auto found = attribute(nothing, {sets("pipeline"), sets("virtual")}, by(step), {});
  REQUIRE(found);
  CHECK_FALSE(found->changes[1].alone_ps.has_value());
  CHECK(found->changes[1].impossible == "one stage");
  CHECK((found->changes[0].share_ps == 20 && found->changes[1].share_ps == -15));
  CHECK((found->orders == 1 && found->asked == 2));
  CHECK_FALSE(found->interaction_ps().has_value());
}

TEST_CASE("points beyond memory count, and are counted") {
  const auto step = [](const TomlValue& d) {
    return Outcome{100 + (has(d, "a") ? 1 : 0), "", !has(d, "a") || has(d, "b")};
  };
  const auto found = attribute(nothing, {sets("a"), sets("b")}, by(step), {});
  REQUIRE(found);
  CHECK((found->unfit == 1 && found->runs == 4));
  CHECK(found->changes[0].share_ps == 1);
}

TEST_CASE("without an end there is nothing to share out") {
  const auto step = [](const TomlValue& d) {
    return has(d, "a") ? Outcome{std::nullopt, "no"} : Outcome{100};
  };
  CHECK_FALSE(attribute(nothing, {sets("a")}, by(step), {}).has_value());
}
