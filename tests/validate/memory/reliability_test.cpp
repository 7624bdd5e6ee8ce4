#include "validate/memory/reliability.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace stepcast::validate;

namespace {

std::vector<FitFact> facts(std::size_t n, double p, std::size_t fitted) {
  std::vector<FitFact> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back({"A", p, i < fitted});
  return out;
}

std::vector<FitFact> joined(std::initializer_list<std::vector<FitFact>> lists) {
  std::vector<FitFact> out;
  for (const auto& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

}  // namespace

TEST_CASE("a share's interval is Wilson's") {
  // 8 of 10 at 90 %: (0.8 + 0.1353 +- 1.6449 sqrt(0.016 + 0.06764 / 10)) / 1.27055.
  const ShareInterval ends = wilson_interval(8, 10);
  CHECK(ends.low == Approx(0.5411).margin(0.0005));
  CHECK(ends.high == Approx(0.9314).margin(0.0005));
  CHECK(wilson_interval(0, 10).low == 0.0);
  CHECK(wilson_interval(10, 10).high == 1.0);
}

TEST_CASE("law: bins hold every fact once, in order, and few are joined") {
  const auto all = joined({facts(40, 0.99, 39), facts(3, 0.6, 1), facts(20, 0.01, 1),
                           facts(5, 0.3, 2), facts(9, 0.8, 7)});
  const auto bins = reliability(all);
  std::size_t counted = 0;
  double end = 0;
  for (const ReliabilityBin& bin : bins) {
    counted += bin.facts;
    CHECK(bin.facts >= least_facts);
    CHECK(bin.from == end);
    CHECK((bin.from <= bin.forecast && bin.forecast <= bin.to));
    CHECK((bin.low <= bin.fitted && bin.fitted <= bin.high));
    end = bin.to;
  }
  CHECK(counted == all.size());
  CHECK(end == 1.0);
  CHECK(bins.front().fitted == Approx(1.0 / 20));
  CHECK(bins.back().forecast == Approx(0.99));
}

TEST_CASE("the mean square error is 0 of what is sure and came, 0.25 of a coin") {
  CHECK(brier_score(joined({facts(4, 1.0, 4), facts(4, 0.0, 0)})) == 0.0);
  CHECK(brier_score(facts(7, 0.5, 3)) == Approx(0.25));
}
