#include "sim/confidence/order.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace stepcast::sim;

namespace {

double at(const Order& order, double gap) { return order.probability(1.0, std::exp(gap)); }

}  // namespace

TEST_CASE("a source of many pairs weighs no more than one of few") {
  // Of the large source 900 of 1,000 pairs are in order, of the small one 20 of 40: 0.7, not 0.88.
  const std::vector<PairCount> pairs{{"large", 0, 1000, 900}, {"small", 0, 40, 20}};
  CHECK(at(Order(pairs), 0.01) == Approx(0.7));
}

TEST_CASE("a source of less pairs than it takes says nothing") {
  const std::vector<PairCount> pairs{{"large", 0, 1000, 900}, {"few", 0, 4, 0}};
  CHECK(at(Order(pairs), 0.01) == Approx(0.9));
  CHECK(Order(pairs).origin() ==
        "1,000 pairs of measured plans of 1 sources that weigh alike, 100 % of them of large");
}

TEST_CASE("a larger gap is never less sure") {
  // 0.8, then 0.6 from as many pairs: one step of 0.7; then 0.9.
  const std::vector<PairCount> pairs{{"A", 0, 100, 80}, {"A", 0.1, 100, 60}, {"A", 0.2, 100, 90}};
  const Order order(pairs);
  CHECK(at(order, 0.05) == Approx(0.7));
  CHECK(at(order, 0.15) == Approx(0.7));
  CHECK(at(order, 0.25) == Approx(0.9));
}

TEST_CASE("equal forecasts, or no pairs, are a coin") {
  const std::vector<PairCount> pairs{{"A", 0, 100, 80}};
  CHECK(Order(pairs).probability(2.0, 2.0) == 0.5);
  CHECK(Order({}).probability(1.0, 2.0) == 0.5);
}
