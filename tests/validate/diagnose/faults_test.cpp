#include <catch2/catch.hpp>

#include "tests/session.hpp"
#include "validate/diagnose/score.hpp"

using namespace stepcast;
using namespace stepcast::validate;

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
