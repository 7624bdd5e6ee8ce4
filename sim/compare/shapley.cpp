#include "sim/compare/shapley.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

ChangeSet with(ChangeSet set, std::size_t change) { return set | ChangeSet{1} << change; }

/// A number below `n`, the same with every library.
std::size_t below(std::size_t n, std::mt19937_64& random) { return random() % n; }

/// The values along an order, the first with no change; empty where one is missing.
std::vector<std::int64_t> values_along(const ChangeOrder& order, const SetValues& values) {
  std::vector<std::int64_t> out;
  ChangeSet set = 0;
  for (std::size_t i = 0;; ++i) {
    const auto found = values.find(set);
    if (found == values.end() || !found->second) return {};
    out.push_back(*found->second);
    if (i == order.size()) return out;
    set = with(set, order[i]);
  }
}

/// What each change brought, summed over orders, and its squares.
struct Sums {
  std::vector<std::int64_t> brought;
  std::vector<double> squares;
  std::int64_t orders = 0;
};

Sums sums_over(const std::vector<ChangeOrder>& orders, const SetValues& values) {
  const std::size_t n = orders.front().size();
  Sums out{std::vector<std::int64_t>(n), std::vector<double>(n)};
  for (const ChangeOrder& order : orders) {
    const std::vector<std::int64_t> along = values_along(order, values);
    if (along.empty()) continue;
    ++out.orders;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t brought = along[i + 1] - along[i];
      out.brought[order[i]] += brought;
      out.squares[order[i]] += std::pow(static_cast<double>(brought), 2.0);
    }
  }
  return out;
}

/// sums / n, rounded so that the quotients add up to the quotient of the sum, which is whole: down,
/// and those with the largest remainders up, the first of equals.
std::vector<std::int64_t> divided(const std::vector<std::int64_t>& sums, std::int64_t n) {
  std::vector<std::int64_t> out, remainders;
  std::int64_t left = 0;
  for (const std::int64_t sum : sums) {
    const std::int64_t remainder = (sum % n + n) % n;
    out.push_back((sum - remainder) / n);
    remainders.push_back(remainder);
    left += remainder;
  }
  std::vector<std::size_t> by_remainder(sums.size());
  std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
  std::ranges::stable_sort(
      by_remainder, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::int64_t i = 0; i < left / n; ++i) ++out[by_remainder[static_cast<std::size_t>(i)]];
  return out;
}

/// Of the mean of `n` numbers with this sum and this sum of squares.
double standard_error(double sum, double squares, double n) {
  if (n < 2) return 0;
  const double variance = (squares - sum * sum / n) / (n - 1);
  return std::sqrt(std::max(0.0, variance) / n);
}

}  // namespace

std::vector<ChangeOrder> orders_of(std::size_t changes, std::size_t drawn, std::uint64_t seed) {
  expects(changes <= most_changes, "a set of changes is 63 bits");
  ChangeOrder order(changes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<ChangeOrder> out;
  if (changes <= most_exact_changes) {
    do out.push_back(order);
    while (std::ranges::next_permutation(order).found);
    return out;
  }
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < drawn; ++i) {
    for (std::size_t at = changes; at > 1; --at) std::swap(order[at - 1], order[below(at, random)]);
    out.push_back(order);
  }
  return out;
}

std::vector<ChangeSet> sets_on_the_way(const std::vector<ChangeOrder>& orders) {
  std::set<ChangeSet> out{0};
  for (const ChangeOrder& order : orders) {
    ChangeSet set = 0;
    for (const std::size_t change : order) out.insert(set = with(set, change));
  }
  return {out.begin(), out.end()};
}

std::optional<Shares> shares_of(const std::vector<ChangeOrder>& orders, const SetValues& values) {
  expects(!orders.empty(), "shares are means over orders");
  const Sums sums = sums_over(orders, values);
  if (sums.orders == 0) return std::nullopt;
  Shares out{.of = divided(sums.brought, sums.orders),
             .orders = static_cast<std::size_t>(sums.orders),
             .asked = orders.size(),
             .exact = orders.front().size() <= most_exact_changes};
  for (std::size_t i = 0; i < sums.brought.size(); ++i)
    out.error.push_back(out.exact
                            ? 0.0
                            : standard_error(static_cast<double>(sums.brought[i]), sums.squares[i],
                                             static_cast<double>(sums.orders)));
  return out;
}

}  // namespace stepcast::sim
