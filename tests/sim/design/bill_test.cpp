// What machines are made of, against the switch counts of published plans, and that no dollar, watt
// or cable is lost.
#include "sim/design/bill.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/sim/design/goals.hpp"

namespace stepcast::sim {
namespace {

std::int64_t switches_of(const Bill& bill) {
  std::int64_t sum = 0;
  for (const BillLine& line : bill.lines)
    if (line.item.find(" switch of ") != std::string::npos) sum += line.count;
  return sum;
}

std::int64_t cables_of(const Bill& bill) {
  std::int64_t sum = 0;
  for (const BillLine& line : bill.lines)
    if (line.item.starts_with("cable, ")) sum += line.count;
  return sum;
}

std::string sizes(std::int64_t nodes, const std::string& fabric) {
  return "nodes = [\"dgx-h100\"]\nfabrics = [\"" + fabric + "\"]\noversubscription = [1]\n" +
         "ways = [\"own\"]\nsizes = [" + std::to_string(nodes) + "]";
}

Bill bill_of_h100(std::int64_t gpus, const std::string& fabric = "rail-optimized") {
  const SmallDesign design(small_goal(sizes(gpus / 8, fabric)));
  const Scenario& s = design.machines.all.at(0).scenario;
  return bill_of(s, design.parts, {}, s.node.gpu.tdp);
}

}  // namespace

TEST_CASE("bills of 64 to 16,384 H100 have the switches of the published plans") {
  // NVIDIA's DGX SuperPOD plans of 64-port switches (B200 edition): leaf + spine + core.
  for (const auto& [gpus, switches, cables] : {std::array<std::int64_t, 3>{512, 16 + 8, 2 * 512},
                                               {1024, 32 + 16, 2 * 1024},
                                               {2048, 64 + 32, 2 * 2048},
                                               {4096, 128 + 128 + 64, 3 * 4096},
                                               {8192, 256 + 256 + 128, 3 * 8192},
                                               {16384, 512 + 512 + 256, 3 * 16384}}) {
    const Bill bill = bill_of_h100(gpus);
    CHECK(switches_of(bill) == switches);
    CHECK(cables_of(bill) == cables);
  }
  // The spreadsheet of H100 Freakonomics: 8 for 64 GPUs (the rails' leaves without a spine), 48 and
  // 96; its 192, 384, 768 for 4,096 to 16,384 leave the core tier out: two tiers' worth.
  CHECK(switches_of(bill_of_h100(64, "rail-only")) == 8);
  CHECK(switches_of(bill_of_h100(64)) == 9);
  for (const std::int64_t gpus : {4096, 8192, 16384})
    CHECK(switches_of(bill_of_h100(gpus, "rail-only")) == 3 * gpus / 64);
}

TEST_CASE("the bill of 2,048 H100 is that of the spreadsheet that its prices come from") {
  const Bill bill = bill_of_h100(2048);
  CHECK(bill.priced());
  // 100.9 million USD, 49,248 a GPU: nodes 79.36, switches 3.46, cables 5.24, facility 12.8.
  CHECK(bill.capital().value / 2048 == Approx(49'248).epsilon(1e-3));
  CHECK(bill.lines.front().total().value == 256 * 310'000.0);
  CHECK(bill.racks > 64);
}

TEST_CASE("law: money and power are conserved, whatever the fabric") {
  for (const char* fabric : {"rail-optimized", "rail-only", "fat-tree"})
    for (const std::int64_t gpus : {8, 16, 320, 2048, 4096}) {
      const SmallDesign design(small_goal(sizes(gpus / 8, fabric)));
      if (design.machines.all.empty()) continue;  // one node is owned with the first fabric
      const Scenario& s = design.machines.all[0].scenario;
      const Watts draw = s.node.gpu.tdp;
      const Bill bill = bill_of(s, design.parts, {}, draw);
      INFO(fabric << ", " << gpus << " GPUs");
      double usd = 0, watts = 0;
      for (const BillLine& line : bill.lines) {
        usd += static_cast<double>(line.count) * line.usd.value_or(Band{}).value;
        watts += line.power.value;
      }
      CHECK(bill.capital().value == usd);
      CHECK(watts == Approx(power_at_work(s, draw).total().value));
      CHECK(switches_of(bill) == network_parts(s).switches);
      // What owning costs an hour is paid on the bill.
      const Scenario owned = priced(s, {.way = {Tenure::own}}, design.parts, {});
      CHECK(owned.cost.capex.value * static_cast<double>(gpus) == Approx(usd));
      PriceFactors dearer{.rent = 2, .nodes = 2, .switches = 2, .cables = 2};
      const double facility = 6250.0 * static_cast<double>(gpus);
      CHECK(bill_of(s, design.parts, dearer, draw).capital().value ==
            Approx(2 * (usd - facility) + facility));
    }
}

TEST_CASE("overhead is a line of the bill, and paid once") {
  const SmallDesign design(small_goal(sizes(8, "rail-optimized"), "[cost]\noverhead = 0.1\n"));
  const Scenario& s = design.machines.all.at(0).scenario;
  const Bill bill = bill_of(s, design.parts, {}, s.node.gpu.tdp);
  CHECK(bill.capital().value == Approx(1.1 * bill_of_h100(64).capital().value));
  CHECK(priced(s, {.way = {Tenure::own}}, design.parts, {}).cost.overhead == 0);
}

TEST_CASE("what has no price is named, and no machine is bought without") {
  const SmallDesign design(
      small_goal("nodes = [\"dgx-a100\", \"dgx-h100\"]\nsizes = [4]\n"
                 "ways = [\"own\"]\noversubscription = [1]"));
  for (const Offer& offer : design.machines.offers)
    CHECK(design.machines.all[offer.machine].scenario.node.name == "dgx-h100");
  REQUIRE(!design.machines.none.empty());
  CHECK_THAT(design.machines.none.front().why, Catch::Contains("no price of dgx-a100"));
}

TEST_CASE("sizes are powers of two and multiples of the scalable unit") {
  const SmallDesign design(
      small_goal("nodes = [\"dgx-h100\"]\nfabrics = [\"rail-optimized\"]\noversubscription = [1]\n"
                 "ways = [\"rent\"]\nmost_gpus = 1024"));
  std::vector<std::int64_t> nodes;
  for (const Machine& machine : design.machines.all) nodes.push_back(machine.scenario.nodes);
  CHECK(nodes == std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 96, 128});
}

TEST_CASE("a fabric that does not hold a machine is named; rented ones do not choose") {
  const SmallDesign design(small_goal(
      "nodes = [\"dgx-h100\"]\nfabrics = [{name = \"rail-optimized\", tiers = 1}, \"rail-only\"]\n"
      "sizes = [2]\noversubscription = [1]"));
  REQUIRE(design.machines.none.size() == 1);
  CHECK_THAT(design.machines.none[0].why, Catch::Contains("tiers = 2 would hold them"));
  REQUIRE(design.machines.offers.size() == 1);
  CHECK(design.machines.offers[0].terms.way == Acquisition{Tenure::own});
}

TEST_CASE("a goal that no design can be made of is refused by its line") {
  const auto refusal = [](const std::string& text) {
    try {
      read_design_goal(read_toml(text, "g.toml"));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  const std::string run = "[run_goal]\ntokens = \"1T\"\n",
                    nodes = "[design]\nnodes = \"dgx-h100\"\n";
  CHECK(refusal(nodes + run) == "read");
  CHECK_THAT(refusal(run), Catch::Contains("has no [design]"));
  CHECK_THAT(refusal("[design]\ndays = 3\n" + run), Catch::Contains("nodes"));
  CHECK_THAT(refusal(nodes), Catch::Contains("how much is trained"));
  CHECK_THAT(refusal(nodes + "budgit = 3\n" + run), Catch::Contains("budgit"));
  CHECK_THAT(refusal(nodes + run + "[plan]\ntensor = 2\n"),
             Catch::Contains("the plan is searched"));
  CHECK_THAT(refusal(nodes + "ways = [\"lease\"]\n" + run), Catch::Contains("'lease'"));
  CHECK_THAT(refusal(nodes + "sizes = [0]\n" + run), Catch::Contains("from 1 on"));
  CHECK_THAT(refusal(nodes + "ways = \"rent\"\ncapital = \"1 USD\"\n" + run),
             Catch::Contains("limits what is bought"));
}

}  // namespace stepcast::sim
