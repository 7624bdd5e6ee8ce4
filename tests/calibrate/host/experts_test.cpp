// The kernels of a layer of experts against what their words say, and their gradients against
// finite differences in double.
#include "calibrate/host/experts.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace stepcast::calibrate::host {
namespace {

using Numbers = std::vector<double>;
using Integers = std::vector<std::int32_t>;

Numbers drawn(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> between(-1.0, 1.0);
  Numbers values(count);
  for (double& value : values) value = between(random);
  return values;
}

/// What a router makes of logits.
struct Chosen {
  Integers choice, row, counts;
  Numbers weights;
};

Chosen choose(const Numbers& logits, const ExpertChoice& how) {
  const auto experts = static_cast<std::size_t>(how.experts);
  const std::size_t chosen = logits.size() / experts * static_cast<std::size_t>(how.per_token);
  const std::size_t rows = how.padded ? experts * static_cast<std::size_t>(how.capacity) : chosen;
  Chosen out{Integers(chosen), Integers(chosen), Integers(experts), Numbers(rows)};
  choose_experts<double>(out.choice, out.row, out.counts, out.weights, logits, how);
  return out;
}

/// Central differences of sum_i slopes[i] f(x)[i].
void check_slopes(Numbers x, const Numbers& known, const Numbers& slopes,
                  const std::function<Numbers(const Numbers&)>& f) {
  const auto value = [&] {
    const Numbers y = f(x);
    return std::inner_product(y.begin(), y.end(), slopes.begin(), 0.0);
  };
  constexpr double h = 1e-6;
  REQUIRE(known.size() == x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x[i];
    x[i] = before + h;
    const double above = value();
    x[i] = before - h;
    const double below = value();
    x[i] = before;
    CHECK(known[i] == Approx((above - below) / (2 * h)).epsilon(1e-5).margin(1e-8));
  }
}

}  // namespace

TEST_CASE("a token goes to the experts of its highest scores, of equals to the first") {
  const Numbers logits{0.0, 3.0, 1.0, 2.0,   // 1, 3
                       5.0, 5.0, 5.0, 5.0};  // 0, 1
  const Chosen chosen = choose(logits, {.experts = 4, .per_token = 2});
  CHECK(chosen.choice == Integers{1, 3, 0, 1});
  CHECK(chosen.counts == Integers{1, 2, 0, 1});
  CHECK(chosen.row == Integers{1, 3, 0, 2});  // by expert, then by token
  const double high = 1.0 / (1.0 + std::exp(-1.0));
  CHECK(chosen.weights[1] == Approx(high));  // the softmax over the two: they sum to one
  CHECK(chosen.weights[3] == Approx(1.0 - high));
  CHECK(chosen.weights[0] == Approx(0.5));
}

TEST_CASE("of one expert for each token the weight is the score itself") {
  const Numbers logits{0.0, 1.0, -1.0};
  const double all = 1.0 + std::exp(1.0) + std::exp(-1.0);
  CHECK(choose(logits, {.experts = 3, .per_token = 1}).weights[0] == Approx(std::exp(1.0) / all));
  const Chosen sigmoid = choose(logits, {.experts = 3, .per_token = 1, .sigmoid = true});
  CHECK(sigmoid.weights[0] == Approx(1.0 / (1.0 + std::exp(-1.0))));
}

TEST_CASE("an expert that is full takes no token more, and padding is zeros") {
  Numbers logits;  // all tokens want expert 0, then 1
  for (int t = 0; t < 3; ++t) logits.insert(logits.end(), {9.0, 8.0, 0.0});
  const Chosen dropped = choose(logits, {.experts = 3, .per_token = 2, .capacity = 2});
  CHECK(dropped.counts == Integers{2, 2, 0});
  CHECK(dropped.row == Integers{0, 2, 1, 3, -1, -1});
  const Chosen padded =
      choose(logits, {.experts = 3, .per_token = 2, .capacity = 4, .padded = true});
  CHECK(padded.counts == Integers{4, 4, 4});
  CHECK(padded.row == Integers{0, 4, 1, 5, 2, 6});
  CHECK(padded.weights[3] == 0.0);
  CHECK(padded.weights[11] == 0.0);
}

TEST_CASE("the router's gradient is the slope of its weights") {
  for (const ExpertChoice how :
       {ExpertChoice{.experts = 5, .per_token = 2}, ExpertChoice{.experts = 4, .per_token = 1},
        ExpertChoice{.experts = 5, .per_token = 3, .sigmoid = true},
        ExpertChoice{.experts = 4, .per_token = 2, .capacity = 2},
        ExpertChoice{.experts = 4, .per_token = 2, .capacity = 6, .padded = true}}) {
    const Numbers logits = drawn(6 * static_cast<std::size_t>(how.experts), 3);
    const Chosen chosen = choose(logits, how);
    const Numbers slopes = drawn(chosen.weights.size(), 4);
    Numbers known(logits.size());
    choose_experts_backward<double>(known, slopes, logits, chosen.choice, chosen.row, how);
    // Rows that no token has are no function of the logits.
    check_slopes(logits, known, slopes, [&](const Numbers& x) { return choose(x, how).weights; });
  }
}

TEST_CASE("rows summed back are the tokens times the experts that took them") {
  const Numbers x = drawn(3 * 4, 5);
  const Integers row{2, 0, 1, -1, 4, 3};  // the second token was dropped once
  Numbers rows(5 * 4, 7.0), sums(x.size());
  rows_of_tokens<double>(rows, x, row, 4);
  sums_of_rows<double>(sums, rows, row, 4);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(sums[i] == Approx((i / 4 == 1 ? 1.0 : 2.0) * x[i]));
}

TEST_CASE("rows by source lie by expert when sorted, and by source again") {
  // Two sources, three experts; a row is a number that says source, expert and place.
  const Integers counts{1, 0, 2, 2, 1, 0};
  const Numbers by_source{10, 120, 121, 200, 201, 210};
  Numbers by_expert(6), again(6);
  sort_rows<double>(by_expert, by_source, counts, 3, 1, false);
  CHECK(by_expert == Numbers{10, 200, 201, 210, 120, 121});
  sort_rows<double>(again, by_expert, counts, 3, 1, true);
  CHECK(again == by_source);
}

TEST_CASE("grouped products are those of each expert, and of no row none") {
  constexpr std::size_t n = 3, k = 2;
  const Integers counts{1, 0, 0, 1, 0, 2};  // two sources: 2, 0 and 2 rows
  const Numbers a = drawn(4 * k, 6), b = drawn(3 * n * k, 7), dc = drawn(4 * n, 8);
  const std::vector<std::size_t> expert_of{0, 0, 2, 2};
  Numbers c(4 * n), da(4 * k), db(3 * n * k, 7.0);
  grouped_gemm<double>(c, a, b, counts, {3, n, k, "NT"});
  grouped_gemm<double>(da, dc, b, counts, {3, k, n, "NN"});
  grouped_gemm<double>(db, dc, a, counts, {3, n, k, "TN"});
  Numbers expected(db.size());
  for (std::size_t r = 0; r < 4; ++r) {
    const double* weights = &b[expert_of[r] * n * k];
    for (std::size_t j = 0; j < n; ++j) {
      CHECK(c[r * n + j] == Approx(a[r * k] * weights[j * k] + a[r * k + 1] * weights[j * k + 1]));
      for (std::size_t i = 0; i < k; ++i)
        expected[expert_of[r] * n * k + j * k + i] += dc[r * n + j] * a[r * k + i];
    }
    for (std::size_t i = 0; i < k; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += dc[r * n + j] * weights[j * k + i];
      CHECK(da[r * k + i] == Approx(sum));
    }
  }
  for (std::size_t i = 0; i < db.size(); ++i) CHECK(db[i] == Approx(expected[i]).margin(1e-12));
}

TEST_CASE("the weighted activation's gradients are its slopes, of inputs and weights") {
  constexpr std::size_t rows = 3, width = 5;
  const Numbers gate = drawn(rows * width, 9), up = drawn(rows * width, 12);
  const Numbers weights = drawn(rows, 10), slopes = drawn(rows * width, 11);
  const auto activation = [](const Numbers& g, const Numbers& u, const Numbers& w) {
    Numbers y(rows * width);
    weighted_silu_mul_forward<double>(y, g, u, w);
    return y;
  };
  Numbers dgate(gate.size()), dup(up.size()), dweights(rows);
  weighted_silu_mul_backward<double>(dgate, dup, dweights, slopes, gate, up, weights);
  check_slopes(gate, dgate, slopes, [&](const Numbers& g) { return activation(g, up, weights); });
  check_slopes(up, dup, slopes, [&](const Numbers& u) { return activation(gate, u, weights); });
  check_slopes(weights, dweights, slopes,
               [&](const Numbers& w) { return activation(gate, up, w); });
}

}  // namespace stepcast::calibrate::host
