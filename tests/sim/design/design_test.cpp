// The outer search beside trying every machine, and the laws of its bounds.
#include "sim/design/design.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "sim/design/odds.hpp"
#include "sim/design/study.hpp"
#include "sim/run/power.hpp"
#include "tests/draws.hpp"
#include "tests/sim/design/goals.hpp"

namespace stepcast::sim {
namespace {

constexpr double no_limit = DesignLimits::none;

/// Steps that are made up: at the peak's rate times a factor of the machine's own.
struct MadeUpSteps {
  MadeUpSteps(SmallDesign& of, std::uint64_t seed) : design(of) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> factor(1.0, 3.0), load(0.0, 1.0);
    for (const Machine& machine : of.machines.all) {
      FastestPlan plan;
      StepReport& r = plan.report.emplace();
      r.scenario = machine.scenario;
      const double longer = factor(random), least = 1 / longer;
      r.step_time = to_duration(peak_step_s(machine.scenario, {}) * longer);
      r.power_per_gpu = mean_power(machine.scenario.node.gpu,
                                   {.tensor = least + load(random) * (1 - least), .memory = 0.1});
      plan.legal = plan.simulated = 1;
      plans.push_back(std::move(plan));
    }
  }
  PlanFinder finder() {
    return [this](const Machine& machine, double above_s, SearchDepth how) {
      const auto i = static_cast<std::size_t>(&machine - design.machines.all.data());
      if (how == SearchDepth::glance) {  // a plan that is not the fastest
        FastestPlan plan = plans[i];
        plan.open = true;
        plan.report->step_time *= 2;
        return plan;
      }
      ++asked;
      if (seconds(plans[i].report->step_time) <= above_s) return plans[i];
      return FastestPlan{.at_least_s = above_s * (1 + 2e-9), .legal = 1};
    };
  }
  SmallDesign& design;
  std::vector<FastestPlan> plans;
  std::size_t asked = 0;
};

/// Of all offers, each with the fastest plan of its machine.
std::optional<double> least_of_all(const Designer& designer, const SmallDesign& design,
                                   const std::vector<FastestPlan>& plans, Aim aim,
                                   const DesignLimits& limits) {
  std::optional<double> out;
  for (std::size_t i = 0; i < design.machines.offers.size(); ++i) {
    const Offer& offer = design.machines.offers[i];
    if (!plans[offer.machine].report) continue;
    const DesignOutcome o = designer.outcome(i, *plans[offer.machine].report);
    const bool owned = offer.terms.way.tenure == Tenure::own;
    const double capital = owned ? designer.bill(i, Watts(0)).capital().value : 0;
    if (!keeps_to(o, limits) || static_cast<double>(designer.racks(i)) > limits.racks ||
        capital > limits.capital)
      continue;
    if (!out || o.of(aim) < *out) out = o.of(aim);
  }
  return out;
}

const char* three_nodes =
    "nodes = [\"dgx-h100\", \"dgx-h200\", \"dgx-b200\"]\nsizes = [1, 2, 4, 8, 40, 64]\n"
    "oversubscription = [1, 2]";

}  // namespace

TEST_CASE("law: the design is that of trying every machine, whatever the limits") {
  const std::string counts = GENERATE("cash", "payback");
  SmallDesign design(small_goal(std::string(three_nodes) + "\nquotes = \"example\"\n" +
                                "budget_counts = \"" + counts + "\""));
  REQUIRE(design.machines.offers.size() > 50);
  std::mt19937_64 random(3);
  std::size_t asked = 0, met = 0, unmet = 0;
  const unsigned seeds = tests::draws(40);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    MadeUpSteps steps(design, seed);
    Designer designer = design.designer(steps.finder());
    for (int trial = 0; trial < 4; ++trial) {
      const auto one_of = [&](std::initializer_list<double> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
      };
      const DesignLimits limits{.days = one_of({no_limit, 0.01, 0.03, 0.1, 1}),
                                .usd = one_of({no_limit, 0, 60, 100, 300, 2e6}),
                                .capital = one_of({no_limit, 4e6, 3e7}),
                                .watts = one_of({no_limit, 3e4, 2e5}),
                                .racks = one_of({no_limit, 4, 20})};
      for (const Aim aim : aims) {
        if (trial % 2 == 0) designer.scout(aim, limits);  // an answer is the same with and without
        const auto best = designer.best(aim, limits);
        const auto all = least_of_all(designer, design, steps.plans, aim, limits);
        INFO("seed " << seed << ", " << word_of(aim));
        REQUIRE(best.has_value() == all.has_value());
        REQUIRE(designer.proven());
        if (best) REQUIRE(best->outcome.of(aim) == *all);
        ++(best ? met : unmet);
      }
    }
    asked += designer.searched();
  }
  CHECK(met > seeds);
  CHECK(unmet > seeds / 2);
  CHECK(asked < seeds * design.machines.all.size());  // some are never searched
}

TEST_CASE("law: searched by the simulator, the design is that of trying every plan") {
  SmallDesign design(
      small_goal("nodes = [\"dgx-h100\", \"dgx-a100\"]\nsizes = [1, 2, 4]\n"
                 "fabrics = [\"rail-optimized\", \"rail-only\"]\n"
                 "oversubscription = [1]"));
  const PlanFinder find = design.finder();
  std::vector<FastestPlan> plans;
  for (const Machine& machine : design.machines.all)
    plans.push_back(find(machine, no_limit, SearchDepth::whole));
  Designer designer = design.designer(find);
  for (const Aim aim : aims) {
    const auto best = designer.best(aim, {});
    REQUIRE(best);
    CHECK(best->outcome.of(aim) == *least_of_all(designer, design, plans, aim, {}));
  }
  for (std::size_t i = 0; i < design.machines.offers.size(); ++i) {
    const std::size_t m = design.machines.offers[i].machine;
    REQUIRE(plans[m].report);
    const double step = seconds(plans[m].report->step_time);
    // A bound is never above the truth.
    CHECK(peak_step_s(design.machines.all[m].scenario, {}) <= step);
    const DesignOutcome truth = designer.outcome(i, *plans[m].report);
    const DesignOutcome bound = designer.bound(i, step);
    for (const Aim aim : aims) CHECK(bound.of(aim) <= truth.of(aim) * (1 + 1e-12));
    CHECK(bound.watts <= truth.watts);
    const DesignOutcome twice = designer.bound(i, 2 * step);
    CHECK(twice.days == Approx(2 * bound.days));
    for (const Aim aim : aims) {
      CHECK(twice.of(aim) >= bound.of(aim));
      CHECK(twice.of(aim) <= 2 * bound.of(aim) * (1 + 1e-12));
    }
  }
}

TEST_CASE("law: more of a limit is never worse") {
  SmallDesign design(small_goal(three_nodes));
  MadeUpSteps steps(design, 11);
  Designer designer = design.designer(steps.finder());
  double before = no_limit;
  for (const double usd : {60.0, 70.0, 80.0, 100.0, 150.0, 300.0, no_limit}) {
    const auto fastest = designer.best(Aim::fastest, {.usd = usd});
    const double days = fastest ? fastest->outcome.days : no_limit;
    CHECK(days <= before);
    before = days;
  }
  CHECK(std::isfinite(before));
  before = no_limit;
  for (const double days : {0.01, 0.02, 0.05, 0.1, 0.5, no_limit}) {
    const auto cheapest = designer.best(Aim::cheapest, {.days = days});
    const double usd = cheapest ? cheapest->outcome.usd : no_limit;
    CHECK(usd <= before);
    before = usd;
  }
}

TEST_CASE("prices move the cheapest as its own cost says, or to another machine") {
  SmallDesign design(small_goal("nodes = [\"dgx-h100\"]\nsizes = [8]\nways = [\"rent\"]"));
  MadeUpSteps steps(design, 1);
  Designer designer = design.designer(steps.finder());
  const auto usual = designer.best(Aim::cheapest, {});
  const auto dearer = designer.best(Aim::cheapest, {}, {.rent = 1.2});
  REQUIRE(usual);
  CHECK(dearer->outcome.usd == Approx(1.2 * usual->outcome.usd));
  CHECK(designer.best(Aim::cheapest, {}, {.nodes = 1.2})->outcome.usd == usual->outcome.usd);
}

TEST_CASE("a machine that was cut is searched again where a wider limit asks for it") {
  SmallDesign design(small_goal("nodes = [\"dgx-h100\"]\nsizes = [1]\nways = [\"rent\"]"));
  MadeUpSteps steps(design, 2);
  const double step = seconds(steps.plans[0].report->step_time);
  Designer designer = design.designer(steps.finder());
  const double days = designer.bound(0, step).days;
  CHECK_FALSE(designer.best(Aim::cheapest, {.days = days * 0.99}));
  CHECK_FALSE(designer.best(Aim::cheapest, {.days = days * 0.99}));
  CHECK(designer.proven());
  CHECK(steps.asked == 1);
  CHECK(designer.fate(0, {.days = days * 0.99}, {}) == Fate::plans);
  CHECK(designer.best(Aim::cheapest, {.days = days * 1.01}));
  CHECK(steps.asked == 2);
}

TEST_CASE("ended early, what is open is counted with the least that it can come to") {
  SmallDesign design(small_goal("nodes = [\"dgx-h100\"]\nsizes = [1, 2]\nways = [\"rent\"]"));
  Designer designer = design.designer(
      [](const Machine&, double, SearchDepth) { return FastestPlan{.open = true}; });
  CHECK_FALSE(designer.best(Aim::fastest, {}));
  CHECK_FALSE(designer.proven());
  CHECK(designer.open() == 2);
  CHECK(designer.least_open() > 0);
  CHECK(designer.fate(0, {}, {}) == Fate::open);
}

TEST_CASE("odds: half at the middle of the bar, and its ends hold what it says") {
  DesignChoice choice;
  choice.report.step_bar = ErrorBar{.low = 0.8, .high = 1.25, .level = 0.8};
  choice.outcome.days = 10;
  choice.outcome.usd = 100;
  choice.outcome.cash.law.a_day = 10;
  CHECK_FALSE(odds_of(choice, {}));
  CHECK(*odds_of(choice, {.days = 10}) == Approx(0.5));
  CHECK(*odds_of(choice, {.days = 12.5}) == Approx(0.9));
  CHECK(*odds_of(choice, {.days = 8}) == Approx(0.1));
  CHECK(*odds_of(choice, {.days = 100, .usd = 125}) == Approx(0.9));  // the tighter one
  CHECK(*odds_of(choice, {.usd = 0}) == 0.0);
  CHECK(step_factor(choice.report, 0.9) == Approx(1.25));
  // What failures leave is as unsure as the step: deviations add up in squares.
  Goodput& goodput = choice.report.goodput.emplace();
  goodput.mean = 0.5, goodput.low = 0.4, goodput.high = 0.625;
  CHECK(*odds_of(choice, {.days = 10}) == Approx(0.5));
  CHECK(step_factor(choice.report, 0.9) == Approx(std::pow(1.25, std::sqrt(2.0))));
  choice.report.step_bar.reset();
  CHECK_FALSE(odds_of(choice, {.days = 10}));
}

}  // namespace stepcast::sim
