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

TEST_CASE("a normal distribution: known shares, and back from share to value") {
  CHECK(normal_below(0) == 0.5);
  CHECK(normal_below(1.2815515655446004) == Approx(0.9));
  CHECK(normal_below(-9) == 0);
  CHECK(normal_value(0.5) == Approx(0).margin(1e-12));
  CHECK(normal_value(0.9) == Approx(1.2815515655));
  CHECK(normal_value(0.025) == Approx(-1.9599639845));
  for (double p = 0.001; p < 1; p += 0.01) CHECK(normal_below(normal_value(p)) == Approx(p));
  CHECK_THROWS_AS(normal_value(1), BrokenPromise);
}
