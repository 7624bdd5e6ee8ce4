// Which plans a space holds: all that the rules allow, those that come to the same once.
#include "sim/search/space.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "engine/check.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "tests/draws.hpp"
#include "tests/sim/search/random_spaces.hpp"

namespace stepcast::sim {
namespace {

/// Every combination of values, without the walk's short cuts.
void each_combination(const SearchSpace& space, std::size_t knob, KnobValues c,
                      const std::function<void(const KnobValues&)>& visit) {
  if (knob == knobs().size()) return visit(c);
  for (const std::int64_t value : space.values_of(knobs()[knob])) {
    knobs()[knob].put(c, value);
    each_combination(space, knob + 1, c, visit);
  }
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("law: a walk meets what `run` accepts, and of plans that come to the same one") {
  RandomSpaces random(3);
  std::size_t met = 0;
  for (int i = 0; i < 40; ++i) {
    const SearchSpace space =
        random.space(i % 2 == 0 ? random.base() : random.base_of_experts(), 3);
    std::set<std::string> accepted, walked;
    each_combination(space, 1, KnobValues{}, [&](const KnobValues& c) {
      try {
        Scenario s = space.scenario_of(c);
        // What the knobs come to: the plan itself, without idle ones.
        const bool units =
            workloads::StepInputs{s.model, s.plan, s.batch, s.precision, s.software}.sharded();
        if (!units) s.plan.prefetch = 1;
        if (s.plan.tensor == 1) s.plan.sequence_parallel = false;
        if (s.plan.expert.tensor == s.plan.tensor) s.plan.expert.tensor = 0;
        if (s.batch.micro_batches == 1) s.plan.reduce = workloads::ReduceWhen::last;
        if (s.plan.shards() == s.plan.copies()) s.plan.shard_degree = 0;
        if (s.plan.pipeline == 1 && s.batch.micro_batches == 1)
          s.plan.schedule = workloads::Schedule::one_f_one_b;
        if (s.plan.pipeline == 1) s.plan.stage_layers.clear();
        s.reduce = s.plan.reduce;
        s.stage_layers = s.plan.stage_layers;
        accepted.insert(write_toml(resolved_document(s)));
      } catch (const InputError&) {
      }
    });
    std::size_t walks = 0;
    space.walk([&](const KnobValues& c, const DraftPlan& plan) {
      ++walks;
      const Scenario s = space.scenario_of(c);
      REQUIRE(s.plan == plan.plan);
      REQUIRE(s.batch == plan.batch);
      return true;
    });
    INFO(write_toml(resolved_document(space.bases().front())));
    for (const std::string& line : space.choices()) UNSCOPED_INFO(line);
    INFO((accepted.empty() ? "" : *accepted.begin()));
    REQUIRE(walks == accepted.size());
    met += walks;
  }
  CHECK(met > 100);
}

TEST_CASE("the values of a knob are checked where they were written") {
  RandomSpaces random(1);
  SearchSpace space({random.base()}, false);
  const auto set = [&](const char* text) {
    return error_of([&] { space.set_all(*read_toml(text, "s.toml").find("space")); });
  };
  CHECK_THAT(set("[space]\n\"plan.tensr\" = [1]\n"),
             Catch::Matchers::Contains("s.toml:2") &&
                 Catch::Matchers::Contains("did you mean 'plan.tensor'"));
  CHECK_THAT(set("[space]\nplan.recompute = [\"non\"]\n"),
             Catch::Matchers::Contains("did you mean 'none'"));
  CHECK_THAT(set("[space]\nplan.tensor = []\n"), Catch::Matchers::Contains("has no values"));
  CHECK_THAT(set("[space]\nplan.tensor = [2, 2]\n"), Catch::Matchers::Contains("a value twice"));
  CHECK_THAT(set("[space]\nplan.tensor = [-2]\n"), Catch::Matchers::Contains("is no value of"));
  for (const char* knob : {"plan.tensor", "plan.context", "plan.pipeline", "plan.virtual_stages"})
    CHECK_THAT(set((std::string("[space]\n") + knob + " = 0\n").c_str()),
               Catch::Matchers::Contains("a whole number from 1 on"));
  CHECK(set("[space]\nplan.shard_degree = 0\n").empty());
  CHECK(set("[space.plan]\ntensor = [1, 2]\nsequence_parallel = true\n").empty());
  CHECK(space.values_of(*find_knob("plan.tensor")) == std::vector<std::int64_t>{1, 2});
  CHECK(space.values_of(*find_knob("plan.sequence_parallel")) == std::vector<std::int64_t>{1});
}

TEST_CASE("every knob may say \"best\" in a scenario, and every key that may is a knob") {
  for (const Knob& knob : knobs().subspan(1)) {
    CAPTURE(knob.key);
    CHECK(may_be_best(knob.key));
  }
  for (const ScenarioKey& key : scenario_keys()) {
    CAPTURE(key.path);
    CHECK(may_be_best(key.path) == key.key.may_be_best);
    if (key.key.may_be_best) CHECK(find_knob(key.path) != nullptr);
  }
  CHECK_FALSE(may_be_best("plan.nothing"));
}

TEST_CASE("a knob sets what it reads, and chooses the base where it sets nothing") {
  RandomSpaces random(5);
  const Scenario base = random.base_of_experts();
  for (const Knob& knob : knobs()) {
    CAPTURE(knob.key);
    CHECK((knob.member.set == nullptr) == (knob.place() < first_of_plan));
    if (knob.member.set == nullptr || knob.key == std::string_view("plan.stage_layers")) continue;
    for (const std::int64_t value : knob.usual(base, true)) {
      Scenario s = base;
      DraftPlan draft{base, s.plan, s.batch};
      knob.member.set(draft, value);
      s.plan = draft.plan, s.reduce = draft.wishes.reduce, s.micro = draft.wishes.micro;
      CHECK(knob.member.written(s) == value);
    }
  }
}

TEST_CASE("the shipped spaces hold as many plans as their names say") {
  for (const auto& [name, least] :
       {std::pair{"llama2-70b-10k", 10'000}, {"llama2-70b-1m", 1'000'000}}) {
    CAPTURE(name);
    if (least == 1'000'000 && !tests::whole()) continue;  // 15 s
    TomlValue document =
        read_toml_file(std::string(STEPCAST_SOURCE_DIR "/scenarios/search/") + name + ".toml");
    const TomlValue table = *document.find("space");
    document.erase("space");
    set_path(document, "plan.tensor", toml_text("best", "test"));
    SearchSpace space({read_scenario(document, catalogue())}, false);
    space.set_all(table);
    std::size_t plans = 0;
    space.walk([&](const KnobValues&, const DraftPlan&) { return ++plans > 0; });
    CHECK(plans >= static_cast<std::size_t>(least));
    CHECK(plans < static_cast<std::size_t>(least) * 13 / 10);
  }
}

}  // namespace stepcast::sim
