// The bound of a plan's step: never above what the simulator says, whatever plan and machine.
#include "sim/search/step_bound.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/search/search.hpp"
#include "tests/draws.hpp"
#include "tests/sim/search/random_spaces.hpp"

namespace stepcast::sim {
namespace {

/// Every plan of a walk whose turn it is, with its bound.
struct Drawn {
  KnobValues knobs;
  StepBound::Terms bound;
};

std::vector<Drawn> draw(RandomSpaces& random, const SearchSpace& space, StepBound& bound,
                        std::size_t count) {
  std::vector<Drawn> out;
  std::size_t seen = 0;
  space.walk([&](const KnobValues& c, const DraftPlan& plan) {
    const std::size_t at = seen++ < count ? out.size() : random.below(seen);
    if (at >= count) return true;
    if (at == out.size()) out.emplace_back();
    out[at] = {c, bound.of(plan.plan, plan.batch)};
    return true;
  });
  return out;
}

/// Energy of a GPU over the step is not below the bound's; their ratio is added to `ratios`.
void check_energy(const LeastStep& bound, const StepReport& report, std::vector<double>& ratios) {
  const topology::GpuSpec& gpu = report.scenario.node.gpu;
  const double least = bound.power(gpu).value * seconds(bound.time);
  const double taken = report.power_per_gpu.value * seconds(report.step_time);
  REQUIRE(least <= taken);
  ratios.push_back(least / taken);
}

/// So many plans of layers of experts, on every kind of knob.
void check_bounds_of_experts(std::uint64_t seed, std::size_t wanted) {
  RandomSpaces random(seed);
  std::vector<double> tightness, powers;
  std::set<std::string> dispatchers, recipes, graphs, beside;
  for (std::size_t seen = 0; tightness.size() < wanted; ++seen) {
    REQUIRE(seen < 4 * wanted);  // many a space has no legal plan
    Scenario base = random.base_of_experts();
    base.run.ignore_memory = true;
    const SearchSpace space = random.space(base, 3, true);
    const SearchMachine machine = machine_of(session());
    std::vector<std::pair<KnobValues, LeastStep>> drawn;
    std::size_t met = 0;
    space.walk([&](const KnobValues& c, const DraftPlan& plan) {
      const std::size_t at = met++ < 10 ? drawn.size() : random.below(met);
      if (at < 10 && at == drawn.size()) drawn.emplace_back();
      if (at < 10) drawn[at] = {c, machine.bound(plan)};
      return met < 5000;
    });
    for (const auto& [knobs, bound] : drawn) {
      const Scenario scenario = space.scenario_of(knobs);
      INFO(write_toml(resolved_document(scenario)));
      const StepReport report = session().step(scenario);
      INFO("bound " << bound.time.count());
      REQUIRE(bound.time <= report.step_time);
      tightness.push_back(seconds(bound.time) / seconds(report.step_time));
      check_energy(bound, report, powers);
      dispatchers.insert(std::string(name_of(scenario.plan.expert.dispatcher)));
      recipes.insert(std::string(name_of(scenario.precision.recipe)));
      graphs.insert(word_for(graphs_names, scenario.software.host.graphs));
      const workloads::ParallelPlan& plan = scenario.plan;
      if (plan.expert.overlap) beside.insert("experts");
      if (plan.tensor_overlap != workloads::TensorOverlap::none) beside.insert("tensor");
      if (plan.offload.activations > 0) beside.insert("activations");
      if (plan.offload.optimizer > 0) beside.insert("optimizer");
    }
  }
  std::ranges::sort(tightness);
  CAPTURE(tightness[tightness.size() / 10]);
  CHECK(tightness[tightness.size() / 2] > 0.5);  // or it would prove nothing
  // Few plans are of few spaces.
  CHECK(dispatchers.size() >= (wanted < 200 ? 3 : 4));
  CHECK(recipes.size() > (wanted < 2000 ? 1 : 3));
  CHECK(graphs.size() == 3);
  CAPTURE(beside);
  CHECK(beside.size() >= 3);
}

/// The first plans of a space have the same bounds from the last to the first as from the first on.
void check_both_orders(const Scenario& base, const SearchSpace& space) {
  std::vector<DraftPlan> plans;
  space.walk([&](const KnobValues&, const DraftPlan& plan) {
    plans.push_back(plan);
    return plans.size() < 60;
  });
  StepBound there(base, session().network(base), session().kernels(base));
  StepBound back(base, session().network(base), session().kernels(base));
  std::vector<Duration> bounds;
  for (const DraftPlan& plan : plans) bounds.push_back(there.of(plan.plan, plan.batch).longest());
  for (std::size_t i = plans.size(); i-- > 0;) {
    CAPTURE(base.software.framework, plans[i].plan.pipeline, plans[i].plan.tensor);
    REQUIRE(back.of(plans[i].plan, plans[i].batch).longest() == bounds[i]);
  }
}

}  // namespace

TEST_CASE("law: no simulated step is below its bound, for random plans on random machines") {
  const std::size_t wanted = tests::draws(10'000);
  RandomSpaces random(20261123);
  std::vector<double> tightness, powers;
  while (tightness.size() < wanted) {
    Scenario base = random.base();
    base.run.ignore_memory = true;
    const SearchSpace space = random.space(base, 4);
    StepBound bound(base, session().network(base), session().kernels(base));
    for (const Drawn& drawn : draw(random, space, bound, 25)) {
      const Scenario scenario = space.scenario_of(drawn.knobs);
      INFO(write_toml(resolved_document(scenario)));
      const StepReport report = session().step(scenario);
      INFO("pipe " << drawn.bound.pipe.count() << " chain " << drawn.bound.chain.count() << " host "
                   << drawn.bound.host.count());
      REQUIRE(drawn.bound.longest() <= report.step_time);
      check_energy({drawn.bound.longest(), drawn.bound.tensor_s}, report, powers);
      tightness.push_back(seconds(drawn.bound.longest()) / seconds(report.step_time));
    }
  }
  std::ranges::sort(tightness);
  CAPTURE(tightness[tightness.size() / 10]);
  CHECK(tightness[tightness.size() / 2] > (wanted < 10'000 ? 0.7 : 0.74));  // or it proves nothing
  std::ranges::sort(powers);
  CAPTURE(powers[powers.size() / 10]);
  CHECK(powers[powers.size() / 2] > 0.6);
}

TEST_CASE("law: no simulated step of experts is below its bound, whatever the knobs") {
  check_bounds_of_experts(20261131, tests::draws(2000, 10));
}

TEST_CASE("law: the same of 10000 plans, in minutes", "[.long]") {
  check_bounds_of_experts(20261125, 10'000);
}

TEST_CASE("regression: what a plan that recomputes every layer pays is no other plan's") {
  Scenario base = read_scenario(
      read_toml("[model]\nname = \"llama2-1b\"\nsequence = 512\n[cluster]\n"
                "node = \"dgx-h100\"\nnodes = 2\n[plan]\ndata = \"ddp\"\nrecompute = \"full\"\n"
                "tensor = 16\nrecompute_every = \"best\"\n[batch]\nglobal = 16\nmicro_batch = 1\n"
                "[precision]\nrecipe = \"fp8_current\"\n"
                "[software]\nframework = \"torchtitan\"\n",
                "again.toml"),
      catalogue());
  base.run.ignore_memory = true;
  const SearchSpace space = SearchSpace::of_open_keys(base);
  StepBound bound(base, session().network(base), session().kernels(base));
  space.walk([&](const KnobValues& c, const DraftPlan& plan) {
    StepBound fresh(base, session().network(base), session().kernels(base));
    CAPTURE(find_knob("plan.recompute_every")->in(c));
    CHECK(bound.of(plan.plan, plan.batch).longest() == fresh.of(plan.plan, plan.batch).longest());
    return true;
  });
}

TEST_CASE("law: a plan's bound does not depend on the plans that were asked for before") {
  RandomSpaces random(20261128);
  for (std::size_t number = 0; number < tests::draws(400); ++number) {
    const bool experts = random.below(3) == 0;
    const Scenario base = experts ? random.base_of_experts() : random.base();
    check_both_orders(base, random.space(base, 3, experts));
  }
  // Its head adds to the embeddings' gradient, on a stage that has both.
  const Scenario tied = read_scenario(
      read_toml("[model]\nname = \"x\"\nlayers = 4\nhidden = 1024\nheads = 8\nffn_hidden = 4096\n"
                "vocab = 32000\nsequence = 1024\ntied_embeddings = true\n[cluster]\n"
                "node = \"dgx-a100\"\nnodes = 1\n[plan]\npipeline = \"best\"\n[batch]\n"
                "global = 16\nmicro_batch = 1\n[software]\nframework = "
                "\"stepcast-trainer-cuda\"\n",
                "tied.toml"),
      catalogue());
  check_both_orders(tied, SearchSpace::of_open_keys(tied));
}

TEST_CASE("oracle: one GPU that only computes is bounded by most of its kernels") {
  const Scenario base = read_scenario(
      read_toml("[model]\nname = \"llama2-7b\"\nlayers = 8\n[cluster]\nnode = \"dgx-h100\"\n"
                "gpus = 1\n[plan]\ndata = \"ddp\"\ntensor = \"best\"\n[batch]\nglobal = 1\n"
                "[software]\nframework = \"megatron-core\"\n",
                "one.toml"),
      catalogue());
  SearchSpace space = SearchSpace::of_open_keys(base);
  StepBound bound(base, session().network(base), session().kernels(base));
  space.walk([&](const KnobValues& c, const DraftPlan& plan) {
    const StepReport report = session().step(space.scenario_of(c));
    const double least = seconds(bound.of(plan.plan, plan.batch).longest());
    CHECK(least <= seconds(report.step_time));
    CHECK(least == Approx(seconds(report.compute)).epsilon(0.1));
    return true;
  });
}

}  // namespace stepcast::sim
