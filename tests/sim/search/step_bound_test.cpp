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

TEST_CASE("law: no simulated step of experts is below its bound") {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t wanted = 100;
#else
  constexpr std::size_t wanted = 1000;
#endif
  RandomSpaces random(20261124);
  std::size_t tried = 0;
  for (std::size_t seen = 0; tried < wanted; ++seen) {
    REQUIRE(seen < 50 * wanted);
    Scenario base = random.base();
    base.run.ignore_memory = true;
    base.software.experts.runs = true;
    base.software.experts.fused_router = random.below(2) == 0;
    base.software.experts.products = random.below(2) == 0 ? workloads::GroupedProducts::loop
                                                          : workloads::GroupedProducts::one_launch;
    base.model.activation = workloads::Activation::swiglu;
    workloads::ExpertShape& e = base.model.experts;
    e.count = 8, e.per_token = 2, e.ffn = 1024;
    e.shared_ffn = random.below(2) == 0 ? 0 : 1024;
    e.dense_layers = static_cast<std::int64_t>(random.below(2));
    base.plan.expert.degree = std::int64_t{1} << random.below(4);
    base.plan.expert.tensor = static_cast<std::int64_t>(random.below(2));
    base.plan.expert.shared_overlap = e.shared_ffn > 0 && base.plan.expert.degree > 1;
    const SearchSpace space = random.space(base, 4);
    StepBound bound(base, session().network(base), session().kernels(base));
    for (const Drawn& drawn : draw(random, space, bound, 10)) {
      const Scenario scenario = space.scenario_of(drawn.candidate);
      INFO(write_toml(resolved_document(scenario)));
      const StepReport report = session().step(scenario);
      INFO("pipe " << drawn.bound.pipe.count() << " chain " << drawn.bound.chain.count() << " host "
                   << drawn.bound.host.count());
      REQUIRE(drawn.bound.longest() <= report.step_time);
      ++tried;
    }
  }
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
