// The study's statements as numbers; their values stand in docs/study.md, which is checked.
#include "validate/study/trends.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "engine/check.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::validate;

TEST_CASE(
    "every trend of the study is there, in its order, with bounds that can be met and missed") {
  std::set<int> numbers;
  int before = 0;
  for (const Trend& trend : trends()) {
    CAPTURE(trend.statement);
    CHECK(trend.number >= before);
    before = trend.number;
    numbers.insert(trend.number);
    CHECK(trend.least < trend.most);
    CHECK_FALSE((trend.holds(-1e9) && trend.holds(1e9)));
  }
  CHECK(numbers.size() == 11);
  CHECK(*numbers.rbegin() == 11);
}

TEST_CASE("the variables of a run hold for all scenarios of the study") {
  const Choose large = [](const sim::Scenario& s) { return s.nodes == 256; };
  StudyRuns own(session(), StudySet{}, 1),
      simple(session(), with_nccl({{"NCCL_PROTO", "Simple"}}), 1);
  CHECK(simple.step("weak_scaling", large).step_time > own.step("weak_scaling", large).step_time);
  // Answered once.
  CHECK(&own.step("weak_scaling", large) == &own.step("weak_scaling", large));
  CHECK_THROWS_AS(own.step("weak_scaling", [](const sim::Scenario&) { return false; }),
                  BrokenPromise);
}
