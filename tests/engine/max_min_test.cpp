#include "engine/max_min.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>

using namespace stepcast;
using namespace stepcast::engine;

namespace {

constexpr BytesPerSecond unlimited(std::numeric_limits<double>::infinity());
using Rates = std::vector<BytesPerSecond>;

Rates solve(const Rates& capacities, const std::vector<std::vector<LinkLoad>>& loads,
            Rates caps = {}) {
  caps.resize(loads.size(), unlimited);
  for (BytesPerSecond& cap : caps)
    if (cap.value == 0) cap = unlimited;
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < loads.size(); ++i) variables.push_back({caps[i], loads[i]});
  return max_min(capacities, variables);
}

}  // namespace

TEST_CASE("a flow alone on a link has all of it") {
  CHECK(solve({50_GBps}, {{{0, 1}}}) == Rates{50_GBps});
}

TEST_CASE("n flows on a link have an n-th each, rounded down to 1/64 byte/s") {
  CHECK(solve({50_GBps}, {{{0, 1}}, {{0, 1}}}) == Rates(2, 25_GBps));
  // 50e9 / 3 = 16 666 666 666.666...; 42/64 = 0.65625 is the next 64th below .666...
  CHECK(solve({50_GBps}, {{{0, 1}}, {{0, 1}}, {{0, 1}}}) ==
        Rates(3, BytesPerSecond(16'666'666'666.65625)));
}

TEST_CASE("a capped flow leaves the rest to the others") {
  // 60 = 10 (capped) + 25 + 25
  CHECK(solve({60_GBps}, {{{0, 1}}, {{0, 1}}, {{0, 1}}}, {10_GBps}) ==
        Rates{10_GBps, 25_GBps, 25_GBps});
  // Caps that all fit are all met.
  CHECK(solve({60_GBps}, {{{0, 1}}, {{0, 1}}}, {10_GBps, 50_GBps}) == Rates{10_GBps, 50_GBps});
  // A cap that equals the fair share changes nothing.
  CHECK(solve({60_GBps}, {{{0, 1}}, {{0, 1}}}, {30_GBps, 50_GBps}) == Rates{30_GBps, 30_GBps});
}

TEST_CASE("a cap at the fair share leaves the rounding step to the others") {
  // 2 T + 1 steps of 1/64 byte/s: T for the capped flow, T + 1 for the other.
  const BytesPerSecond step(1.0 / 64);
  CHECK(solve({2_GBps + step}, {{{0, 1}}, {{0, 1}}}, {1_GBps}) == Rates{1_GBps, 1_GBps + step});
  CHECK(solve({2_GBps + step}, {{{0, 1}}, {{0, 1}}}) == Rates{1_GBps, 1_GBps});
}

TEST_CASE("a flow without links runs at its cap") {
  CHECK(solve({60_GBps}, {{}, {{0, 1}}}, {7_GBps}) == Rates{7_GBps, 60_GBps});
}

TEST_CASE("the long flow of a chain of three links is held back by the narrowest") {
  // Links of 10, 5, 20 GB/s; one flow over all three, one flow more on each.
  // The second link splits 5 into 2.5 + 2.5; the long flow keeps 2.5, so the first link has 7.5
  // left for its own flow and the third 17.5.
  CHECK(
      solve({10_GBps, 5_GBps, 20_GBps}, {{{0, 1}, {1, 1}, {2, 1}}, {{0, 1}}, {{1, 1}}, {{2, 1}}}) ==
      Rates{2.5_GBps, 7.5_GBps, 2.5_GBps, 17.5_GBps});
}

TEST_CASE("bottlenecks follow one another") {
  // A = 6 carries x, y, z; B = 5 carries z, v.  A: 2 each. z = 2, so v = 5 - 2 = 3.
  CHECK(solve({6_GBps, 5_GBps}, {{{0, 1}}, {{0, 1}}, {{0, 1}, {1, 1}}, {{1, 1}}}) ==
        Rates{2_GBps, 2_GBps, 2_GBps, 3_GBps});
}

TEST_CASE("a weight says how much of the link a byte takes, not how much of the rate it deserves") {
  // x + 3 y = 40 with x = y gives 10 each: y's edges cross the link three times.
  CHECK(solve({40_GBps}, {{{0, 1}}, {{0, 3}}}) == Rates(2, 10_GBps));
  // Half a byte a byte: 0.5 x + 0.5 y = 40 gives 40 each.
  CHECK(solve({40_GBps}, {{{0, 0.5}}, {{0, 0.5}}}) == Rates(2, 40_GBps));
}

TEST_CASE("a ring whose edges share one link is as fast as that link allows") {
  // Eight edges with private ports of 50, but four of them leave over one link of 50: 12.5.
  std::vector<LinkLoad> ring{{0, 4}};
  for (std::uint32_t l = 1; l <= 16; ++l) ring.push_back({l, 1});
  CHECK(solve(Rates(17, 50_GBps), {ring}) == Rates{12.5_GBps});
}

TEST_CASE("a binary tree on a star is bound by the port of a parent") {
  // Reduce: the parent takes from two children through its port of 50: 25 for each byte of the
  // amount. A second tree with the parents elsewhere loads ports the same way and shares leaves:
  // port 0 carries 2 (parent of tree one) + 1 (child of tree two) = 3: 50 / 3.
  const std::vector<LinkLoad> one{{0, 2}, {1, 1}, {2, 1}}, two{{2, 2}, {0, 1}, {1, 1}};
  CHECK(solve(Rates(3, 50_GBps), {one}) == Rates{25_GBps});
  CHECK(solve(Rates(3, 50_GBps), {one, two}) == Rates(2, BytesPerSecond(16'666'666'666.65625)));
}

TEST_CASE("wrong input is a broken promise") {
  CHECK_THROWS_AS(solve({50_GBps}, {{{1, 1}}}), BrokenPromise);
  CHECK_THROWS_AS(solve({50_GBps}, {{{0, 0}}}), BrokenPromise);
  CHECK_THROWS_AS(solve({50_GBps}, {{{0, -1}}}), BrokenPromise);
  CHECK_THROWS_AS(solve({BytesPerSecond(0)}, {{{0, 1}}}), BrokenPromise);
}

namespace {

struct Problem {
  Rates capacities, caps;
  std::vector<std::vector<LinkLoad>> loads;
};

Problem random_problem(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const double weights[] = {1, 1, 2, 3, 0.5, 7.0 / 4, 2.0 / 3};  // the last is no binary fraction
  Problem p;
  const std::uint32_t num_links = 1 + below(12), num_variables = 1 + below(20);
  for (std::uint32_t l = 0; l < num_links; ++l)
    p.capacities.push_back(BytesPerSecond(1e9 * (1 + below(100)) + below(3)));
  for (std::uint32_t v = 0; v < num_variables; ++v) {
    p.caps.push_back(below(3) ? BytesPerSecond(1e8 * (1 + below(600))) : unlimited);
    p.loads.emplace_back();
    for (std::uint32_t l = 0; l < num_links; ++l)
      if (below(4) == 0) p.loads.back().push_back({l, weights[below(7)]});
    if (p.loads.back().empty()) p.loads.back().push_back({below(num_links), 1});
  }
  return p;
}

}  // namespace

TEST_CASE("max-min rates satisfy the bottleneck condition") {
  std::mt19937 random(1);
  for (int round = 0; round < 3'000; ++round) {
    const Problem p = random_problem(random);
    const Rates x = solve(p.capacities, p.loads, p.caps);
    const std::size_t num_links = p.capacities.size();
    std::vector<double> used(num_links, 0), fastest(num_links, 0), weight(num_links, 0);
    for (std::size_t v = 0; v < x.size(); ++v)
      for (const LinkLoad& load : p.loads[v]) {
        used[load.link] += load.weight * x[v].value;
        weight[load.link] += load.weight;
        fastest[load.link] = std::max(fastest[load.link], x[v].value);
      }
    // Rounding leaves at most 1/64 byte/s of every variable unused, weights are within 1.2e-10.
    const auto slack = [&](std::size_t l) { return weight[l] / 64 + 1e-9 * p.capacities[l].value; };
    for (std::size_t l = 0; l < num_links; ++l)
      REQUIRE(used[l] <= p.capacities[l].value * (1 + 1e-9));
    for (std::size_t v = 0; v < x.size(); ++v) {
      REQUIRE(x[v] <= p.caps[v]);
      const bool at_cap = x[v] == p.caps[v];
      const bool bottlenecked =
          std::any_of(p.loads[v].begin(), p.loads[v].end(), [&](const LinkLoad& load) {
            return used[load.link] >= p.capacities[load.link].value - slack(load.link) &&
                   x[v].value == fastest[load.link];
          });
      REQUIRE((at_cap || bottlenecked));
    }
  }
}

TEST_CASE("the order of links and of variables does not change a rate") {
  std::mt19937 random(2);
  for (int round = 0; round < 2'000; ++round) {
    Problem p = random_problem(random);
    const Rates before = solve(p.capacities, p.loads, p.caps);
    std::vector<std::size_t> order(before.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    Problem shuffled;
    const auto num_links = static_cast<std::uint32_t>(p.capacities.size());
    for (std::uint32_t l = 0; l < num_links; ++l)
      shuffled.capacities.push_back(p.capacities[num_links - 1 - l]);
    for (std::size_t i : order) {
      shuffled.caps.push_back(p.caps[i]);
      shuffled.loads.push_back(p.loads[i]);
      for (LinkLoad& load : shuffled.loads.back()) load.link = num_links - 1 - load.link;
      std::shuffle(shuffled.loads.back().begin(), shuffled.loads.back().end(), random);
    }
    const Rates after = solve(shuffled.capacities, shuffled.loads, shuffled.caps);
    for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(after[i] == before[order[i]]);
  }
}
