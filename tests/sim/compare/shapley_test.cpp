#include "sim/compare/shapley.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <numeric>

using namespace stepcast::sim;

namespace {

constexpr std::size_t drawn = 30;

ChangeSet all_of(std::size_t n) { return (ChangeSet{1} << n) - 1; }

/// A value for each set of `n` changes: any at all.
SetValues any_values(std::size_t n, std::int64_t most) {
  SetValues out;
  for (ChangeSet set = 0; set <= all_of(n); ++set)
    out[set] = *rc::gen::inRange<std::int64_t>(0, most);
  return out;
}

std::int64_t sum_of(const Shares& shares) {
  return std::accumulate(shares.of.begin(), shares.of.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("shares add up to the difference, whatever the values and however many the changes") {
  REQUIRE(rc::check([] {
    const auto n = *rc::gen::inRange<std::size_t>(1, 10);
    const auto orders = orders_of(n, drawn, *rc::gen::arbitrary<std::uint64_t>());
    const SetValues values = any_values(n, 1'000'000'000'000);
    const auto shares = shares_of(orders, values);
    RC_ASSERT(shares.has_value());
    RC_ASSERT(sum_of(*shares) == *values.at(all_of(n)) - *values.at(0));
    RC_ASSERT(shares->exact == (n <= most_exact_changes));
  }));
}

TEST_CASE("a change that changes nothing beside any others gets nothing") {
  REQUIRE(rc::check([] {
    const auto n = *rc::gen::inRange<std::size_t>(2, 9);
    const auto idle = *rc::gen::inRange<std::size_t>(0, n);
    const auto orders = orders_of(n, drawn, 1);
    SetValues values = any_values(n, 1'000'000);
    for (auto& [set, value] : values) value = values.at(set & ~(ChangeSet{1} << idle));
    RC_ASSERT(shares_of(orders, values)->of[idle] == 0);
  }));
}

TEST_CASE("two changes that do the same get the same, but for the last unit") {
  REQUIRE(rc::check([] {
    const auto n = *rc::gen::inRange<std::size_t>(2, 7);
    const auto orders = orders_of(n, drawn, 1);
    SetValues values = any_values(n, 1'000'000);
    for (auto& [set, value] : values)  // changes 0 and 1 trade places
      if ((set & 3) == 2) value = values.at((set & ~ChangeSet{3}) | 1);
    const auto shares = shares_of(orders, values);
    RC_ASSERT(std::abs(shares->of[0] - shares->of[1]) <= 1);
  }));
}

TEST_CASE("what two changes bring only together is shared in halves") {
  // 10 and 4 alone, 20 both: 6 more than the sum, 3 to each.
  const SetValues values{{0, 100}, {1, 110}, {2, 104}, {3, 120}};
  CHECK(shares_of(orders_of(2, drawn, 1), values)->of == std::vector<std::int64_t>{13, 7});
}

TEST_CASE("orders that pass an impossible set are left out, and the sum still holds") {
  // The second cannot be made before the first: one order of two is left.
  const SetValues values{{0, 100}, {1, 110}, {2, std::nullopt}, {3, 120}};
  const auto shares = shares_of(orders_of(2, drawn, 1), values);
  CHECK(shares->of == std::vector<std::int64_t>{10, 10});
  CHECK((shares->orders == 1 && shares->asked == 2));
  const SetValues none{{0, 100}, {1, std::nullopt}, {2, std::nullopt}, {3, 120}};
  CHECK_FALSE(shares_of(orders_of(2, drawn, 1), none).has_value());
}

TEST_CASE("drawn orders are those of their seed, and say how far their mean may be off") {
  CHECK(orders_of(8, drawn, 1) == orders_of(8, drawn, 1));
  CHECK(orders_of(8, drawn, 1) != orders_of(8, drawn, 2));
  CHECK(orders_of(6, drawn, 1).size() == 720);
  // Additive changes bring the same in every order: no error. A maximum does not.
  SetValues sums, maxima;
  const auto orders = orders_of(8, drawn, 1);
  for (const ChangeSet set : sets_on_the_way(orders)) {
    std::int64_t sum = 0, most = 0;
    for (std::int64_t i = 0; i < 8; ++i)
      if ((set >> i & 1) != 0) sum += i, most = i;
    sums[set] = sum, maxima[set] = most;
  }
  CHECK(shares_of(orders, sums)->error == std::vector<double>(8));
  CHECK(shares_of(orders, maxima)->error[7] > 0);
}
