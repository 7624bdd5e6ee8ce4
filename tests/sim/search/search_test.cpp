// Branch and bound beside trying everything: the same plans, however many threads, and what it says
// of itself.
#include "sim/search/search.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "engine/check.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/told/search.hpp"
#include "tests/draws.hpp"
#include "tests/sim/search/random_spaces.hpp"

namespace stepcast::sim {
namespace {

const std::atomic<bool> never{false};

std::vector<std::pair<KnobValues, Duration>> first(const SearchResult& result, std::size_t count) {
  std::vector<std::pair<KnobValues, Duration>> out;
  for (const Found& found : result.found)
    if (out.size() < count) out.emplace_back(found.knobs, found.report.step_time);
  return out;
}

/// Plans within `near` of the best.
std::vector<KnobValues> ties(const SearchResult& result, double near) {
  std::vector<KnobValues> out;
  for (std::size_t i = 0; i < result.within(near); ++i) out.push_back(result.found[i].knobs);
  return out;
}

SearchSpace small_space(const std::string& more = "") {
  Scenario base = read_scenario(
      read_toml("[model]\nname = \"llama2-7b\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n"
                "[plan]\ntensor = \"best\"\n[batch]\nglobal = 64\n"
                "[software]\nframework = \"pytorch-fsdp2\"\n" +
                    more,
                "small.toml"),
      catalogue());
  SearchSpace space({base}, false);
  for (const char* fixed : {"plan.reduce", "plan.stage_layers"})
    space.set(fixed, toml_text("software", "test"));
  space.set("plan.prefetch", {std::int64_t{1}, "test"});
  space.set("plan.shard_degree", {std::int64_t{0}, "test"});
  return space;
}

}  // namespace

TEST_CASE("a large space has a plan that fits before it is walked, and that is the answer so far") {
  const Scenario base = read_scenario(
      read_toml("[model]\nname = \"llama3-70b\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = 8\n"
                "[plan]\ntensor = \"best\"\n[batch]\nglobal = 256\n"
                "[software]\nframework = \"megatron-core\"\n",
                "large.toml"),
      catalogue());
  const SearchSpace space({base}, false);
  REQUIRE(space.combinations() > 100'000);
  std::atomic<bool> stop{false};
  SearchMachine machine = machine_of(session());
  std::vector<double> values;
  machine.better = [&](const Found& found) {
    values.push_back(found.value);
    stop = true;  // as a user does who has seen enough
  };
  const SearchResult first = search_plans(space, machine, {.look_first = true}, stop);
  REQUIRE(first.found.size() == 1);
  CHECK(first.found.front().value == values.back());
  CHECK(std::ranges::is_sorted(values, std::greater<>()));
  CHECK(first.ended);
  CHECK_FALSE(first.walked);
  CHECK_FALSE(first.proven());
  const StepReport& report = first.found.front().report;
  CHECK(report.memory.needed() <= base.node.gpu.memory);
  CHECK(session().step(space.scenario_of(first.found.front().knobs)).step_time == report.step_time);
}

TEST_CASE("the few plans of a first look are plans of the space") {
  RandomSpaces random(11);
  std::size_t met = 0;
  for (int i = 0; i < 20; ++i) {
    const SearchSpace space =
        random.space(i % 2 == 0 ? random.base() : random.base_of_experts(), 3);
    const auto plan_text = [](const Scenario& s) { return write_toml(resolved_document(s)); };
    std::set<std::string> plans;
    space.walk([&](const KnobValues& c, const DraftPlan&) {
      plans.insert(plan_text(space.scenario_of(c)));
      return true;
    });
    space.walk_few([&](const KnobValues& c, const DraftPlan&) {
      ++met;
      CHECK(plans.contains(plan_text(space.scenario_of(c))));
      return true;
    });
  }
  CHECK(met > 10);
}

TEST_CASE("law: the search finds what trying every plan finds, on random spaces") {
  RandomSpaces random(7);
  unsigned searched = 0;
  std::size_t saved = 0;
  while (searched < tests::draws(60)) {
    const SearchSpace space = random.space(random.base(), 3);
    const std::size_t plans = plans_of(space).size();
    if (plans < 3 || plans > 120) continue;
    const SearchMachine machine = machine_of(session());
    const SearchResult all = search_plans(space, machine, {.top = 3, .all = true}, never);
    if (all.found.empty()) continue;
    ++searched;
    for (const unsigned threads : {1U, 8U}) {
      const SearchResult found =
          search_plans(space, machine, {.top = 3, .threads = threads}, never);
      REQUIRE(found.proven());
      REQUIRE(first(found, 3) == first(all, 3));
      REQUIRE(ties(found, 0.05) == ties(all, 0.05));
      REQUIRE(found.legal == all.legal);
      // A plan whose bound is enough is not asked whether it fits.
      REQUIRE(found.too_large <= all.too_large);
      REQUIRE(found.found.size() + found.risky.plans + found.too_large + found.left_out ==
              found.legal);
      saved += found.left_out;
    }
  }
  CHECK(saved > 0);
}

namespace {

/// The least that any plan of the space needs.
Bytes least_need(const SearchSpace& space) {
  Bytes least(std::numeric_limits<std::int64_t>::max());
  for (const KnobValues& plan : plans_of(space))
    least = std::min(least, memory_figures(space.scenario_of(plan)).needed());
  return least;
}

/// In one line.
std::string unfolded(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;)
    text.replace(at, 3, " ");
  return text;
}

}  // namespace

TEST_CASE("law: what likely fits is in order; of the rest the fastest is told where it is faster") {
  RandomSpaces random(13);
  unsigned searched = 0, faster = 0, none = 0;
  for (int i = 0; i < 400 && searched < tests::draws(12); ++i) {
    Scenario base = random.base();
    RandomSpaces as_before = random, once_more = random;  // the same space of other machines
    const SearchSpace drawn = random.space(base, 3);
    const std::size_t plans = plans_of(drawn).size();
    if (plans < 3 || plans > 60) continue;
    // Every other time nothing is likely to fit, and some plan is as likely as not.
    const double room = i % 2 == 0 ? 1.25 : 1.03;
    base.node.gpu.memory =
        Bytes(static_cast<std::int64_t>(room * static_cast<double>(least_need(drawn).value)));
    Scenario loose = base;
    loose.run.fits = base.run.left_out_below();
    const SearchSpace space = as_before.space(base, 3), all_space = once_more.space(loose, 3);
    const SearchMachine machine = machine_of(session());
    const SearchResult all = search_plans(all_space, machine, {.top = 3, .all = true}, never);
    SearchResult likely, risky;
    for (const Found& found : all.found)
      (*found.report.p_fits >= base.run.fits ? likely : risky).found.push_back(found);
    if (risky.found.empty()) continue;
    ++searched;
    const SearchResult result = search_plans(space, machine, {.top = 3}, never);
    REQUIRE(result.proven());
    REQUIRE(result.risky.taken == likely.found.empty());
    REQUIRE(first(result, 3) == first(likely.found.empty() ? risky : likely, 3));
    const SearchResult limited = search_plans(space, machine, {.limit = 1}, never);
    REQUIRE(limited.found.size() == 1);  // of the likely ones, if there is any
    CHECK((*limited.found[0].report.p_fits < base.run.fits) == likely.found.empty());
    CHECK(limited.risky.all_looked_at == likely.found.empty());
    const std::string text = unfolded(search_text({space, {}, result, {}, {}}, ""));
    if (result.risky.taken) {
      ++none;
      CHECK_THAT(text, Catch::Matchers::Contains("no plan fits with 90.0 %"));
    } else if (risky.found.front().value < likely.found.front().value) {
      ++faster;
      REQUIRE(result.risky.fastest);
      REQUIRE(result.risky.fastest->knobs == risky.found.front().knobs);
      CHECK(result.risky.fastest->report.p_fits == risky.found.front().report.p_fits);
      CHECK_THAT(text, Catch::Matchers::Contains("the fastest of them takes "));
    }
  }
  CHECK(faster > 0);
  CHECK(none > 0);
}

TEST_CASE("a search does not depend on its threads, and says what it did") {
  const SearchSpace space = small_space();
  const SearchMachine machine = machine_of(session());
  const SearchResult one = search_plans(space, machine, {.threads = 1}, never);
  const SearchResult eight = search_plans(space, machine, {.threads = 8}, never);
  REQUIRE(one.proven());
  CHECK(one.found.size() == eight.found.size());
  CHECK(first(one, 10) == first(eight, 10));
  CHECK(one.left_out > 10 * one.found.size());
  const SearchAnswer answer{space, {}, one, {}, {}};
  CHECK_THAT(proof_text(answer), Catch::Matchers::StartsWith("optimal among ") &&
                                     Catch::Matchers::Contains(" do not fit") &&
                                     Catch::Matchers::Contains("(nearest: ") &&
                                     Catch::Matchers::Contains(" cannot come within 5.00 % of "));
}

TEST_CASE("a limited search tells the gap that is left; one without limit closes it") {
  const SearchSpace space = small_space();
  const SearchMachine machine = machine_of(session());
  const SearchResult whole = search_plans(space, machine, {}, never);
  const SearchResult some = search_plans(space, machine, {.limit = 5}, never);
  CHECK_FALSE(some.proven());
  CHECK(some.found.size() <= 5);
  CHECK(some.open > 0);
  CHECK((some.best_is_proven() ? some.found.front().value == whole.found.front().value
                               : some.least_open <= whole.found.front().value));
  const SearchAnswer answer{space, {}, some, {}, {}};
  CHECK_THAT(
      proof_text(answer),
      Catch::Matchers::Contains(some.best_is_proven() ? " still open, all of them slower than "
                                                      : "not proven, the least bound left is "));
}

namespace {

/// Of a search what is simulated: scenarios as text. Those in `known` are not.
struct Simulated {
  std::set<std::string> plans{};
  SearchResult result{};
};

std::string text_of_plan(const Scenario& s) { return write_toml(resolved_document(s)); }

Simulated simulated(const SearchSpace& space, const SearchOptions& options,
                    const std::set<std::string>& known = {}) {
  Simulated out;
  SearchMachine machine = machine_of(session());
  machine.step = [&](const Scenario& s) {
    const std::string plan = text_of_plan(s);
    if (!known.contains(plan)) out.plans.insert(plan);
    return session().step(s);
  };
  machine.knows = [&](const Scenario& s) { return known.contains(text_of_plan(s)); };
  out.result = search_plans(space, machine, options, never);
  return out;
}

}  // namespace

TEST_CASE("law: shards simulate whatever the whole search does, and put together they are it") {
  RandomSpaces random(11);
  unsigned searched = 0;
  while (searched < tests::draws(32)) {
    const SearchSpace space = random.space(random.base(), 3);
    const std::size_t plans = plans_of(space).size();
    if (plans < 3 || plans > (tests::whole() ? 120 : 40)) continue;
    const Simulated whole = simulated(space, {.top = 3});
    if (whole.result.found.empty()) continue;
    ++searched;
    for (const std::size_t of : {2U, 3U, 7U}) {
      std::set<std::string> all;
      for (Shard shard{1, of}; shard.index <= of; ++shard.index) {
        // Whether or not one sees what those before it have done.
        const Simulated share =
            simulated(space, {.top = 3, .share = shard}, searched % 2 == 0 ? all : decltype(all)());
        CHECK_FALSE(share.result.ended);
        for (const std::string& plan : share.plans) REQUIRE(all.insert(plan).second);
      }
      const Simulated merged = simulated(space, {.top = 3}, all);
      REQUIRE(merged.plans.empty());
      REQUIRE(first(merged.result, 3) == first(whole.result, 3));
    }
  }
}

TEST_CASE("a shard takes what others find meanwhile, and prunes by it") {
  const SearchSpace space = small_space();
  const Simulated whole = simulated(space, {});
  const SearchOptions first_of_eight{.share = {1, 8}};
  const Simulated alone = simulated(space, first_of_eight);
  SearchMachine machine = machine_of(session());
  bool others_are_done = false;
  std::size_t simulated_here = 0;
  const auto is_known = [&](const Scenario& s) {
    return others_are_done && whole.plans.contains(text_of_plan(s));
  };
  machine.step = [&](const Scenario& s) {
    simulated_here += is_known(s) ? 0U : 1U;
    return session().step(s);
  };
  machine.knows = is_known;
  machine.look_again = [&] { return !std::exchange(others_are_done, true); };
  const SearchResult result = search_plans(space, machine, first_of_eight, never);
  CHECK(first(result, 10) == first(whole.result, 10));
  CHECK(simulated_here < alone.plans.size());
}

TEST_CASE("of a search that may simulate nothing, what is not known is open") {
  const SearchSpace space = small_space();
  const Simulated whole = simulated(space, {});
  std::set<std::string> known = whole.plans;
  const Simulated all = simulated(space, {.share = no_share}, known);
  CHECK(all.plans.empty());
  CHECK(all.result.proven());
  CHECK(first(all.result, 10) == first(whole.result, 10));
  const Scenario best = whole.result.found.front().report.scenario;
  known.erase(text_of_plan(best));
  const Simulated rest = simulated(space, {.share = no_share}, known);
  CHECK(rest.plans.empty());
  CHECK(rest.result.open >= 1);
  CHECK_FALSE(rest.result.best_is_proven());
  CHECK(rest.result.least_open <= whole.result.found.front().bound);
}

TEST_CASE("an interrupt before all plans were counted leaves nothing proven") {
  const std::atomic<bool> now{true};
  Scenario base = small_space().bases().front();
  const SearchSpace space({base}, false);  // more plans than between two looks
  const SearchResult result = search_plans(space, machine_of(session()), {}, now);
  CHECK_FALSE(result.proven());
}

TEST_CASE("a deadline ends the counting of plans as well, with the gap left open") {
  const SearchSpace space({small_space().bases().front()}, false);
  SearchOptions options;
  options.deadline = std::chrono::steady_clock::now();
  const SearchResult result = search_plans(space, machine_of(session()), options, never);
  CHECK_FALSE(result.walked);
  CHECK_FALSE(result.best_is_proven());
  CHECK(result.legal < plans_of(space).size());
}

TEST_CASE("where nothing fits, the three that lack least are named, the nearest first") {
  Scenario base = small_space().bases().front();
  base.node.gpu.memory = 2_GiB;
  SearchSpace space({base}, false);
  space.set("plan.tensor", {std::int64_t{1}, "test"});
  const SearchResult result = search_plans(space, machine_of(session()), {}, never);
  CHECK(result.found.empty());
  CHECK(result.too_large == result.legal);
  REQUIRE(result.misses.size() == 3);
  CHECK(result.misses[0].needed <= result.misses[1].needed);
  CHECK(result.misses[1].needed <= result.misses[2].needed);
  CHECK_THAT(search_text({space, {}, result, {}, {}}, ""),
             Catch::Matchers::Contains("no plan fits; the nearest:"));
}

TEST_CASE("what a framework cannot be told is left out, counted, and named by its first reason") {
  const SearchSpace space = small_space();
  SearchMachine machine = machine_of(session());
  const SearchResult whole = search_plans(space, machine, {}, never);
  machine.refusal = [&](const Scenario& s) {
    return s.plan.tensor == whole.found.front().report.scenario.plan.tensor ? "no such tensor" : "";
  };
  const SearchResult rest = search_plans(space, machine, {}, never);
  REQUIRE(rest.proven());
  CHECK(rest.refused > 0);
  CHECK(rest.refusal == "no such tensor");
  for (const Found& found : rest.found)
    CHECK(found.report.scenario.plan.tensor != whole.found.front().report.scenario.plan.tensor);
  CHECK(rest.found.size() + rest.risky.plans + rest.too_large + rest.left_out + rest.refused ==
        rest.legal);
  CHECK(rest.found.front().value >= whole.found.front().value);
}

namespace {

/// Pruned as without pruning, and no bound above its value. In full only where there is time.
void holds_by(Objective objective, SearchSpace space) {
  if (!tests::whole()) {
    space.set("plan.data", toml_text("zero2", "test"));
    space.set("plan.recompute_every", {std::int64_t{1}, "test"});
    space.set("plan.recompute", toml_text("full", "test"));
  }
  const SearchMachine machine = machine_of(session());
  const SearchResult all =
      search_plans(space, machine, {.all = true, .objective = objective}, never);
  const SearchResult found = search_plans(space, machine, {.objective = objective}, never);
  CHECK(first(found, 5) == first(all, 5));
  for (const Found& f : all.found) REQUIRE(f.bound <= f.value);
}

}  // namespace

TEST_CASE("joules: the order is that of energy, proven by what its kernels on tensor cores draw") {
  holds_by(Objective::energy, small_space());
}

TEST_CASE("dollars of owned hardware: capex of the step and its electricity, proven") {
  // Electricity dear enough to count beside capex.
  holds_by(Objective::dollars, small_space("[cost]\nown = true\ncapex = \"3000 USD\"\n"
                                           "electricity = \"0.5 USD/kWh\"\n"));
  CHECK_THROWS_AS(
      search_plans(small_space(), machine_of(session()), {.objective = Objective::dollars}, never),
      InputError);
}

TEST_CASE("your own plan: each knob that differs is turned alone") {
  const SearchSpace space = small_space();
  const SearchMachine machine = machine_of(session());
  const SearchResult result = search_plans(space, machine, {}, never);
  Scenario own = space.base({});
  own.plan.tensor = 4;
  own.plan.data = workloads::DataParallel::zero3;
  own.micro = {.micro_batch = 1, .micro_batches = std::nullopt};
  own = with_degrees(own, 4, 1);
  const OwnPlan beside = beside_best(space, machine, own, result.found.front().knobs);
  REQUIRE(beside.report);
  CHECK(beside.report->step_time == session().step(own).step_time);
  CHECK(beside.report->step_time >= result.found.front().report.step_time);
  REQUIRE_FALSE(beside.changes.empty());
  for (const KnobChange& change : beside.changes) {
    CHECK(change.from != change.to);
    CHECK(change.report.has_value() != !change.refused.empty());
  }
}

}  // namespace stepcast::sim
