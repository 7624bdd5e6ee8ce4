#include "sim/run/memory_odds.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

Residual row(const char* source, double log_ratio) {
  return {source, "1", log_ratio, {"hopper", "f", "one node", 0, 0, dense_16_bit}};
}

std::vector<Residual> peaks() {
  std::vector<Residual> out;
  for (int i = -10; i <= 10; ++i) out.push_back(row(i % 2 == 0 ? "A" : "B", 0.02 * i));
  return out;
}

double share(const MemoryOdds& odds, double needed) {
  return odds.fits(dense_16_bit, Bytes(static_cast<std::int64_t>(needed * 1e9)),
                   Bytes(80'000'000'000));
}

Scenario on_h100() {
  return read_scenario(
      read_toml(
          "[model]\nname = \"llama2-7b\"\n[cluster]\nnode = \"dgx-h100\"\n[batch]\nlocal = 1\n",
          "a.toml"),
      catalogue());
}

}  // namespace

TEST_CASE("without evidence a plan fits or it does not") {
  const MemoryOdds none;
  CHECK(share(none, 80) == 1.0);
  CHECK(share(none, 80.001) == 0.0);
  const Scenario s = on_h100();
  CHECK(none.most(s, 0.5) == s.node.gpu.memory);
}

TEST_CASE("law: the more a plan needs, the less likely it fits; of even errors half do") {
  const MemoryOdds odds(peaks());
  CHECK(share(odds, 80) == Approx(0.5).margin(1e-9));
  double before = 1.0;
  for (double needed = 40; needed < 160; needed += 1) {
    const double now = share(odds, needed);
    CHECK(now <= before);
    before = now;
  }
  CHECK(share(odds, 40) > 0.99);
  CHECK(share(odds, 160) < 0.01);
}

TEST_CASE("law: the most that a plan may need fits just so likely") {
  const MemoryOdds odds(peaks());
  const Scenario s = on_h100();
  for (const double p : {0.02, 0.3, 0.5, 0.9, 0.99}) {
    const Bytes most = odds.most(s, p);
    CHECK(odds.fits(s, most) == Approx(p).margin(0.001));
    CHECK(odds.fits(s, most + Bytes(most.value / 50)) < p);
  }
}

TEST_CASE("what ran above its forecast makes others likelier, what died below it less likely") {
  const MemoryOdds plain(peaks());
  const MemoryOdds died(peaks(), {row("C", 0.1), row("C", 0.15)});
  const MemoryOdds fitted(peaks(), {}, {row("C", -0.1), row("C", -0.15)});
  CHECK(share(died, 78) < share(plain, 78));
  CHECK(share(fitted, 82) > share(plain, 82));
  // What was to be expected says nothing: it lies where the peaks do.
  const MemoryOdds expected(peaks(), {row("C", -1.0)}, {row("C", 1.0)});
  CHECK(share(expected, 78) == Approx(share(plain, 78)).margin(0.001));
}

TEST_CASE("a source that is left out has no part") {
  std::vector<Residual> known = peaks();
  known.push_back(row("far", 2.0));
  CHECK(share(MemoryOdds(known).without("far"), 70) == Approx(share(MemoryOdds(peaks()), 70)));
  CHECK(share(MemoryOdds(known), 70) < share(MemoryOdds(peaks()), 70));
}

}  // namespace stepcast::sim
