// The bound of a plan's step: never above what the simulator says, whatever plan and machine.
#include "sim/search/step_bound.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/sim/search/random_spaces.hpp"

namespace stepcast::sim {
namespace {

/// Every plan of a walk whose turn it is, with its bound.
struct Drawn {
  Candidate candidate;
  StepBound::Terms bound;
};

std::vector<Drawn> draw(RandomSpaces& random, const SearchSpace& space, StepBound& bound,
                        std::size_t count) {
  std::vector<Drawn> out;
  std::size_t seen = 0;
  space.walk([&](const Candidate& c, const CandidatePlan& plan) {
    const std::size_t at = seen++ < count ? out.size() : random.below(seen);
    if (at >= count) return true;
    if (at == out.size()) out.emplace_back();
    out[at] = {c, bound.of(plan.plan, plan.batch)};
    return true;
  });
  return out;
}

}  // namespace

TEST_CASE("law: no simulated step is below its bound, for random plans on random machines") {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t wanted = 500;  // ten times slower there
#else
  constexpr std::size_t wanted = 10'000;
#endif
  RandomSpaces random(20261123);
  std::vector<double> tightness;
  while (tightness.size() < wanted) {
    Scenario base = random.base();
    base.run.ignore_memory = true;
    const SearchSpace space = random.space(base, 4);
    StepBound bound(base, session().network(base), session().kernels(base));
    for (const Drawn& drawn : draw(random, space, bound, 25)) {
      const Scenario scenario = space.scenario_of(drawn.candidate);
      INFO(write_toml(resolved_document(scenario)));
      const StepReport report = session().step(scenario);
      INFO("pipe " << drawn.bound.pipe.count() << " chain " << drawn.bound.chain.count() << " host "
                   << drawn.bound.host.count());
      REQUIRE(drawn.bound.longest() <= report.step_time);
      tightness.push_back(seconds(drawn.bound.longest()) / seconds(report.step_time));
    }
  }
  std::ranges::sort(tightness);
  CAPTURE(tightness[tightness.size() / 10]);
  CHECK(tightness[tightness.size() / 2] > 0.75);  // or it would prove nothing
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
  space.walk([&](const Candidate& c, const CandidatePlan& plan) {
    const StepReport report = session().step(space.scenario_of(c));
    const double least = seconds(bound.of(plan.plan, plan.batch).longest());
    CHECK(least <= seconds(report.step_time));
    CHECK(least == Approx(seconds(report.compute)).epsilon(0.1));
    return true;
  });
}

}  // namespace stepcast::sim
