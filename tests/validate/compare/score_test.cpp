#include "validate/compare/score.hpp"

#include <catch2/catch.hpp>

using namespace stepcast::validate;

TEST_CASE("a score is the median and mean of the magnitudes and the mean with its sign") {
  // |e| = 0.1, 0.2, 0.6: median 0.2, mean 0.3; with signs (0.1 - 0.2 - 0.6) / 3.
  const auto score = score_of({0.1, -0.2, -0.6});
  REQUIRE(score);
  CHECK(score->rows == 3);
  CHECK(score->median_ape == Approx(0.2));
  CHECK(score->mape == Approx(0.3));
  CHECK(score->bias == Approx(-0.7 / 3));
}

TEST_CASE("an even number of errors has the mean of the middle two as its median") {
  CHECK(score_of({0.4, -0.1, 0.2, -0.3})->median_ape == Approx(0.25));
}

TEST_CASE("nothing scored is no score") { CHECK_FALSE(score_of({})); }
