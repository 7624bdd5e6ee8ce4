#include "sim/network/exchange/distinct.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace stepcast::sim;

namespace {

struct Row {
  std::int64_t experts, per_token;
  std::vector<double> two_to_64;  // d(2), d(4), ... as far as there are as many experts
};

}  // namespace

// Worked out by hand and by drawing; equal to DeepEP's get_expected_topk.
TEST_CASE("distinct destinations of a token, closed form") {
  const Row rows[] = {{8, 2, {1.571, 1.857, 2.0}},
                      {128, 4, {1.881, 2.754, 3.342, 3.680, 3.860, 3.953}},
                      {160, 6, {1.972, 3.311, 4.459, 5.206, 5.632}},
                      {128, 8, {1.994, 3.629, 5.339, 6.597, 7.359, 7.780}},
                      {256, 8, {1.993, 3.614, 5.295, 6.523, 7.267, 7.676}},
                      {384, 8, {1.993, 3.609, 5.280, 6.499, 7.237, 7.642}}};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.two_to_64.size(); ++i) {
      const std::int64_t parts = std::int64_t{2} << i;
      INFO(row.per_token << " of " << row.experts << " over " << parts);
      CHECK(distinct_destinations({row.experts, row.per_token}, parts) ==
            Approx(row.two_to_64[i]).margin(6e-4));
    }
}

TEST_CASE("one part takes all, as many parts as experts one pick each") {
  for (const std::int64_t k : {1, 2, 8}) {
    CHECK(distinct_destinations({64, k}, 1) == Approx(1.0));
    CHECK(distinct_destinations({64, k}, 64) == Approx(static_cast<double>(k)));
  }
}

TEST_CASE("DeepSeek-V3's limit of 4 of 8 groups saves copies to nodes") {
  const TokenChoice v3{256, 8, 8, 4};
  CHECK(distinct_destinations(v3, 8) == Approx(3.95).margin(0.02));
  CHECK(distinct_destinations(v3, 64) == Approx(7.50).margin(0.03));
  CHECK(distinct_in_random_groups(v3, 8) == Approx(3.63).margin(0.005));
  CHECK(distinct_in_random_groups(v3, 64) == Approx(7.36).margin(0.005));
  CHECK(distinct_destinations(v3, 8) == distinct_destinations(v3, 8));  // always the same tokens
  CHECK(distinct_destinations({256, 8, 8, 8}, 8) == distinct_destinations({256, 8}, 8));
}

TEST_CASE("more parts never mean fewer destinations, nor do more picks") {
  for (const TokenChoice choice : {TokenChoice{256, 8}, TokenChoice{256, 8, 8, 4}}) {
    double before = 0.0;
    for (const std::int64_t parts : {1, 2, 4, 8, 16, 32, 64, 128, 256}) {
      const double now = distinct_destinations(choice, parts);
      CHECK(now >= before);
      CHECK(now <= static_cast<double>(choice.per_token) + 1e-12);
      before = now;
    }
  }
  for (std::int64_t k = 2; k <= 32; ++k)
    CHECK(distinct_destinations({128, k}, 16) > distinct_destinations({128, k - 1}, 16));
}
