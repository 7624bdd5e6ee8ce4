#include "engine/arithmetic.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

TEST_CASE("a median is the middle value, or the mean of the two in the middle") {
  CHECK(median({7}) == 7);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
  CHECK_THROWS_AS(median({}), BrokenPromise);
}

TEST_CASE("an upper median is one of the values") {
  CHECK(upper_median<double>({7}) == 7);
  CHECK(upper_median<double>({3, 1, 2}) == 2);
  CHECK(upper_median<double>({4, 1, 2, 3}) == 3);
  CHECK_THROWS_AS(upper_median<double>({}), BrokenPromise);
}

TEST_CASE("whole numbers are divided up") {
  CHECK(ceil_div(0, 4) == 0);
  CHECK(ceil_div(8, 4) == 2);
  CHECK(ceil_div(9, 4) == 3);
}
