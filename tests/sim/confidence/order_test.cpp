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

TEST_CASE("a forecast is never worse than a coin") {
  const std::vector<PairCount> pairs{{"A", 0, 100, 40}, {"A", 0.1, 100, 80}};
  CHECK(at(Order(pairs), 0.05) == 0.5);
  CHECK(at(Order(pairs), 0.15) == Approx(0.8));
}

TEST_CASE("the chances of being the best: of two those of their pair, of equals the same") {
  const std::vector<PairCount> pairs{{"A", 0, 100, 60}, {"A", 0.1, 100, 80}};
  const Order order(pairs);
  const std::vector<Order::Contender> two{{1.0}, {std::exp(0.15)}};
  CHECK(order.best(two)[0] == Approx(order.probability(two[0].step_s, two[1].step_s)));
  CHECK(order.best(two)[0] + order.best(two)[1] == Approx(1.0));
  const std::vector<Order::Contender> equals{{1.0}, {1.0}, {1.0}, {1.0}};
  for (const double one : order.best(equals)) CHECK(one == Approx(0.25));
  // 1 : 1/4 : 1/4 by the odds against the first.
  const std::vector<Order::Contender> three{{1.0}, {std::exp(0.15)}, {std::exp(0.2)}};
  CHECK(order.best(three)[0] == Approx(2.0 / 3));
}

TEST_CASE(
    "what may not fit is the best only where it does, and then whatever is likelier to fit does") {
  const std::vector<PairCount> pairs{{"A", 0, 100, 80}};
  const Order order(pairs);
  // With 0.6 both fit: 4 to 1. With 0.3 the second alone; with 0.1 none.
  const std::vector<Order::Contender> plans{{1.0, 0.6}, {1.5, 0.9}};
  CHECK(order.best(plans)[0] == Approx(0.6 * 0.8));
  CHECK(order.best(plans)[1] == Approx(0.6 * 0.2 + 0.3));
}
