// Oracles of days, dollars, MWh and tonnes: published figures from stated inputs, and closed forms.
#include "sim/goal/whole_run.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/goal_file.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

Scenario scenario_with(const std::string& more, std::int64_t nodes = 2) {
  return read_scenario(
      read_toml("[model]\nname = \"llama2-7b\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = " +
                    std::to_string(nodes) + "\n[batch]\nglobal = 16384\n" + more,
                "goal.toml"),
      catalogue());
}

StepFigures step_of(double tokens, double step_s, double watts = 600) {
  return {.tokens = tokens, .step_s = step_s, .gpu = Watts(watts), .idle_gpu = Watts(119)};
}

bool near(double a, double b, double share) { return std::abs(a - b) <= share * std::abs(b); }

}  // namespace

// Model card of Llama 3.1: 39.3 million H100 hours at 700 W, 11,390 t CO2e location based. The
// grid that this implies is 414 g/kWh.
TEST_CASE("Llama 3.1's card follows from TDP, its GPU hours and its grid") {
  const Scenario s = scenario_with(
      "[run_goal]\ndays = 99.9451\n[site]\npue = 1.0\ncarbon = \"414 g/kWh\"\n"
      "[power]\ncount = \"tdp\"\n",
      2048);
  const WholeRun run = whole_run(s, step_of(16e6, 10), 1);
  CHECK(near(run.gpu_hours.value, 39.3e6, 1e-4));
  CHECK(near(run.tonnes_co2.value, 11'390, 1e-3));
  // By the model the same GPU hours take more: the rest of the nodes, the network.
  Scenario modelled = s;
  modelled.power_count = PowerCount::modelled;
  CHECK(whole_run(modelled, step_of(16e6, 10), 1).tonnes_co2.value > run.tonnes_co2.value);
}

TEST_CASE("an owned DGX H100 costs about 2.1 USD an hour and GPU") {
  CHECK(near(capital_recovery(0.08, 4), 0.30192, 1e-4));
  CHECK(capital_recovery(0, 4) == 0.25);
  const Scenario s = scenario_with(
      "[cost]\nown = true\ncapex = \"49200 USD\"\nyears = 4\ninterest = 0.08\n"
      "utilisation = 0.85\nelectricity = \"0.08 USD/kWh\"\n");
  const auto price = dollars_per_gpu_hour(s, Watts(1050 * 1.25));
  REQUIRE(price);
  CHECK(near(price->value, 1.994 + 0.105, 1e-3));
}

TEST_CASE("a run's time, energy and dollars are what a calculator says") {
  const Scenario s = scenario_with(
      "[run_goal]\ntokens = \"2T\"\n[cost]\nprice = \"2.5 USD/h\"\n[site]\npue = 1.2\n"
      "carbon = \"100 g/kWh\"\n");
  const StepFigures step = step_of(4e6, 10);
  const WholeRun run = whole_run(s, step, 1);
  const double hours = 2e12 / 4e6 * 10 / 3600;
  CHECK(near(run.days.value, hours / 24, 1e-12));
  CHECK(near(run.gpu_hours.value, hours * 16, 1e-12));
  CHECK(near(run.dollars->value, hours * 16 * 2.5, 1e-12));
  // 16 GPUs; 2 nodes of 8.4 kW less 5.6 kW; one switch of rails carries 16 NICs.
  CHECK(near(run.power.nodes.value, 2 * 2800.0, 1e-9));
  const double kw = (16 * 600 + 2 * 2800.0 + run.power.network.value) / 1e3;
  CHECK(near(run.megawatt_hours.value, hours * kw * 1.2 / 1e3, 1e-12));
  CHECK(near(run.tonnes_co2.value, run.megawatt_hours.value * 0.1, 1e-12));
  CHECK(near(run.joules_per_token, kw * 1e3 * 1.2 * 10 / 4e6, 1e-12));
}

TEST_CASE("goodput lengthens a run, and what is lost draws idle power") {
  const Scenario s = scenario_with("[run_goal]\ntokens = \"2T\"\n");
  const WholeRun whole = whole_run(s, step_of(4e6, 10), 1),
                 part = whole_run(s, step_of(4e6, 10), 0.8);
  CHECK(near(part.days.value, whole.days.value / 0.8, 1e-12));
  CHECK(part.megawatt_hours.value > whole.megawatt_hours.value);
  CHECK(part.megawatt_hours.value < whole.megawatt_hours.value / 0.8);
  CHECK_THROWS_AS(whole_run(s, step_of(4e6, 10), 0), BrokenPromise);
}

TEST_CASE("a goodput between two shares widens days and energy, what stands still less so") {
  const Scenario s = scenario_with("[run_goal]\ntokens = \"2T\"\n[cost]\nprice = \"2 USD/h\"\n");
  const StepFigures step = step_of(4e6, 10);
  const Band goodput{0.6, 0.8, 0.9};
  const WholeRun run = whole_run(s, step, goodput), mean = whole_run(s, step, 0.8);
  CHECK(run.days.value == mean.days.value);
  CHECK(near(run.days.low, whole_run(s, step, 0.9).days.value, 1e-12));
  CHECK(near(run.days.high, whole_run(s, step, 0.6).days.value, 1e-12));
  CHECK(near(run.dollars->high, whole_run(s, step, 0.6).dollars->value, 1e-12));
  CHECK(near(run.megawatt_hours.low, whole_run(s, step, 0.9).megawatt_hours.value, 1e-12));
  CHECK(near(run.megawatt_hours.high, whole_run(s, step, 0.6).megawatt_hours.value, 1e-12));
  CHECK(run.megawatt_hours.high / mean.megawatt_hours.value < run.days.high / mean.days.value);
  // Beside the step's error bar: squares of logarithms.
  StepFigures unsure = step;
  unsure.bar_low = 0.8, unsure.bar_high = 1.25;
  const Band days = whole_run(s, unsure, goodput).days;
  CHECK(days.high > run.days.high);
  CHECK(days.high < 1.25 * run.days.high);
  // Of a run of given days the tokens are unsure.
  const WholeRun by_days = whole_run(scenario_with("[run_goal]\ndays = 30\n"), step, goodput);
  CHECK(by_days.days.low == by_days.days.high);
  CHECK(near(by_days.tokens.low, by_days.tokens.value * 0.6 / 0.8, 1e-12));
}

TEST_CASE("days and tokens are two ways to ask the same") {
  const WholeRun by_days =
      whole_run(scenario_with("[run_goal]\ndays = 30\n"), step_of(4e6, 10), 0.9);
  Scenario s = scenario_with("[run_goal]\ntokens = \"1T\"\n");
  s.goal.tokens = Count(by_days.tokens.value);
  CHECK(near(whole_run(s, step_of(4e6, 10), 0.9).days.value, 30, 1e-12));
  s.goal = RunGoal{};
  s.goal.samples = Count(by_days.tokens.value / static_cast<double>(s.batch.sequence));
  CHECK(near(whole_run(s, step_of(4e6, 10), 0.9).days.value, 30, 1e-12));
}

TEST_CASE("bands join in squares of logarithms") {
  const Band a{0.5, 1, 2}, b{1, 1, 1};
  CHECK(near(product(a, b).low, 0.5, 1e-12));
  CHECK(near(product(a, b).high, 2, 1e-12));
  const Band both = product(a, a);
  CHECK(near(both.high, std::pow(2, std::sqrt(2.0)), 1e-12));
  CHECK(near(both.low * both.high, 1, 1e-12));
  const Scenario s = scenario_with(
      "[run_goal]\ntokens = \"1T\"\n[cost]\nprice = \"2 USD/h\"\nprice_low = \"1 USD/h\"\n"
      "price_high = \"4 USD/h\"\n");
  StepFigures step = step_of(4e6, 10);
  const WholeRun sharp = whole_run(s, step, 1);
  CHECK(near(sharp.dollars->low, sharp.dollars->value / 2, 1e-12));
  step.bar_low = 0.8, step.bar_high = 1.25;
  const WholeRun wide = whole_run(s, step, 1);
  CHECK(wide.dollars->low < sharp.dollars->low);
  CHECK(near(wide.days.high, 1.25 * wide.days.value, 1e-12));
}

TEST_CASE("switches and their ports are those of the fabric's plan") {
  CHECK(network_parts(scenario_with("", 1)).switches == 0);
  // DGX SuperPOD, H100: 1,024 GPUs take 32 leaves and 16 spines; every leaf has 32 cables each way.
  const NetworkParts parts = network_parts(scenario_with("", 128));
  CHECK(parts.switches == 48);
  CHECK(parts.ports == 1024 + 2 * 1024);
}

TEST_CASE("a price's age counts in months, and an old one is named") {
  CHECK(months_between("2025-11-23", "2026-11-23") == 12);
  CHECK(months_between("2025-11-24", "2026-11-23") == 11);
  CHECK(months_between("2024-12", "2026-11-23") == 23);
  CHECK(months_between("2026", "2026-11-23") == 10);
  const std::string old = "[run_goal]\ntokens = \"1T\"\n[cost]\nprice = \"aws-blocks\"\n";
  const auto warned = [](const Scenario& s, const char* today) {
    for (const std::string& warning : goal_warnings(s, today))
      if (warning.find("months old") != std::string::npos) return true;
    return false;
  };
  CHECK(warned(scenario_with(old), "2027-11-23"));
  CHECK_FALSE(warned(scenario_with(old), "2026-12-01"));
  Scenario own_date = scenario_with(old);
  own_date.goal.today = "2026-12-01";
  CHECK_FALSE(warned(own_date, "2027-11-23"));
}

TEST_CASE("lists give a median and its range, and a resolved scenario holds them") {
  const Scenario s = scenario_with("[run_goal]\ntokens = \"1T\"\n");
  CHECK(s.cost.price.value == 3.99);  // of 15 lists
  CHECK(s.cost.price_low.value == 2.99);
  CHECK(s.cost.price_high.value == 12.29);
  const Scenario again = read_scenario(resolved_document(s), catalogue());
  CHECK(again.cost == s.cost);
  CHECK(again.goal == s.goal);
  CHECK(again.site == s.site);
  CHECK(listed_rent(catalogue(), "nebius", "h100-sxm5-80gb", "test")->value == 4.5);
  CHECK_FALSE(listed_rent(catalogue(), "lists", "host-core", "test"));
}

TEST_CASE("what cannot be meant is refused") {
  for (const char* wrong :
       {"[run_goal]\ntokens = \"1T\"\ndays = 3\n", "[run_goal]\ntokens = \"1T\"\ngoodput = 1.5\n",
        "[site]\npue = 0.9\n", "[site]\ncarbon = \"Utopia\"\n", "[cost]\nprice = \"nobody\"\n",
        "[cost]\nprice = \"2 EUR/h\"\n", "[cost]\nprice = \"bought-2024\"\n",
        "[cost]\nprice = \"2 USD/h\"\nprice_low = \"3 USD/h\"\n",
        "[run_goal]\ntoday = \"yesterday\"\n", "[run_goal]\ntokens = \"15 parsecs\"\n"}) {
    INFO(wrong);
    CHECK_THROWS_AS(scenario_with(wrong), InputError);
  }
}

}  // namespace stepcast::sim
