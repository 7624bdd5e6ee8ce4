#include "validate/trainer/device/kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

namespace stepcast::validate {
namespace {

using Doubles = std::vector<double>;

constexpr std::size_t vocab = 6, width = 2;
const std::vector<Token> ids{0, 5, 2, 2, 4};

Doubles numbers(std::size_t count, double first) {
  Doubles out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(std::sin(first + 1.7 * static_cast<double>(i)));
  return out;
}

/// Columns [first, first + size) of rows of `vocab`.
Doubles columns(const Doubles& whole, const VocabularyPart& part) {
  Doubles out;
  for (std::size_t at = 0; at < whole.size(); ++at)
    if (part.has(static_cast<Token>(at % vocab))) out.push_back(whole[at]);
  return out;
}

const VocabularyPart all{0, vocab};
const std::vector<VocabularyPart> halves{{0, 3}, {3, 3}};

void check_near(const Doubles& a, const Doubles& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-12));
}

TEST_CASE("the rows of a cut embedding add up to those of the whole one") {
  const auto kernels = make_host_kernels<double>(8, 2);
  const Doubles table = numbers(vocab * width, 0.3), dy = numbers(ids.size() * width, 2.0);
  Doubles whole(dy.size()), sum(dy.size()), gradient(table.size()), joined;
  kernels->embedding_forward(whole, table, ids, all);
  kernels->embedding_backward(gradient, dy, ids, all);
  for (const VocabularyPart& part : halves) {
    const auto from = static_cast<std::size_t>(part.first) * width;
    const std::span<const double> rows = std::span(table).subspan(from, 3 * width);
    Doubles some(dy.size(), 7.0), slope(3 * width);
    kernels->embedding_forward(some, rows, ids, part);
    kernels->embedding_backward(slope, dy, ids, part);
    kernels->add(sum, sum, some);
    joined.insert(joined.end(), slope.begin(), slope.end());
  }
  check_near(sum, whole);
  check_near(joined, gradient);
}

TEST_CASE("the loss of cut rows is that of whole rows, and so is its gradient") {
  const auto kernels = make_host_kernels<double>(8, 2);
  const std::size_t n = ids.size();
  Doubles logits = numbers(n * vocab, 0.1), lse(n), target(n);
  kernels->loss_forward(lse, target, logits, ids, all);
  std::vector<Doubles> lses, targets;
  Doubles most(n, -1e9), sum(n), target_sum(n), joined(n);
  for (const VocabularyPart& part : halves) {
    lses.emplace_back(n);
    targets.emplace_back(n);
    kernels->loss_forward(lses.back(), targets.back(), columns(logits, part), ids, part);
    for (std::size_t t = 0; t < n; ++t) most[t] = std::max(most[t], lses.back()[t]);
  }
  for (std::size_t r = 0; r < halves.size(); ++r) {
    Doubles mine(n);
    kernels->lse_to_sums(mine, lses[r], most);
    kernels->add(sum, sum, mine);
    kernels->add(target_sum, target_sum, targets[r]);
  }
  kernels->sums_to_lse(joined, most, sum);
  check_near(joined, lse);
  check_near(target_sum, target);
  Doubles of_parts(1), of_all(1);
  kernels->add_loss(of_parts, joined, target_sum);
  kernels->add_loss(of_all, lse, target);
  CHECK(of_parts[0] == Approx(of_all[0]));

  std::vector<Doubles> slopes;
  for (const VocabularyPart& part : halves) {
    slopes.push_back(columns(logits, part));
    kernels->loss_backward(slopes.back(), joined, ids, part, 0.5);
  }
  kernels->loss_backward(logits, lse, ids, all, 0.5);
  for (std::size_t r = 0; r < halves.size(); ++r) check_near(slopes[r], columns(logits, halves[r]));
}

}  // namespace
}  // namespace stepcast::validate
