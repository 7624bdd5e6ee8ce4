#include <catch2/catch.hpp>
#include <set>

#include "tests/session.hpp"
#include "validate/diagnose/score.hpp"

using namespace stepcast;
using namespace stepcast::validate;

TEST_CASE("every cause but two has a fault, and the fault's first cause is that one") {
  // The allocator's retries are a line of a log and no time of a trace; waiting is what is left of
  // waiting when nobody's lateness explains it.
  std::set<CauseKind> found = {CauseKind::allocator, CauseKind::waiting, CauseKind::not_explained};
  for (const FaultOutcome& one : diagnose_faults(catalogue(), 1, 0, 1, 1)) {
    INFO(word_of(one.fault) << ", " << one.base << ": " << one.causes);
    CHECK(one.cause_right);
    CHECK(one.close);
    CHECK(one.rank_right.value_or(true));
    if (one.first) found.insert(*one.first);
  }
  CHECK(found.size() == num_causes);
}

TEST_CASE("the same seed has the same faults; a fault lengthens its step") {
  const auto once = [] { return diagnose_faults(catalogue(), 1, 1, 7, 1); };
  const std::vector<FaultOutcome> one = once(), other = once();
  REQUIRE(one.size() == num_faults);
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].step == other[i].step);
    CHECK(one[i].named == other[i].named);
    if (one[i].fault == Fault::none)
      CHECK(one[i].lengthened == 0);
    else
      CHECK(one[i].lengthened > 0.02 * one[i].step);
  }
}
