// How plans are ranked: order, regret and pairs, against what can be counted by hand.
#include "validate/published/ranking.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace stepcast::validate;

namespace {

PublishedResult plan(std::int64_t tensor, double measured, double predicted) {
  PublishedResult r;
  r.row.id = "AAAA-" + std::to_string(tensor);
  r.row.model = "name " + std::to_string(tensor);  // of one shape all the same
  r.row.layers = 24;
  r.row.hidden = 2048;
  r.row.gpus = 8;
  r.row.tp = tensor;
  r.gpu_kind = "H100";
  r.in_scope = true;
  r.measured_s = measured;
  r.predicted_s = predicted;
  return r;
}

Ranking of(const std::vector<PublishedResult>& rows) {
  std::vector<const PublishedResult*> scored;
  for (const PublishedResult& row : rows) scored.push_back(&row);
  return ranking_of(scored, [](const PublishedResult& r) { return *r.predicted_s; });
}

}  // namespace

TEST_CASE("Spearman's correlation sees order alone") {
  CHECK(*spearman({1, 2, 3, 4}, {1, 10, 100, 1000}) == Approx(1.0));
  CHECK(*spearman({1, 2, 3, 4}, {9, 8, 7, -6}) == Approx(-1.0));
  // d = (0, 1, -1, 0): 1 - 6 x 2 / (4 x 15)
  CHECK(*spearman({1, 2, 3, 4}, {1, 3, 2, 4}) == Approx(0.8));
  // Ties take their mean rank: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4 give sqrt(0.9).
  CHECK(*spearman({1, 2, 2, 3}, {1, 2, 3, 4}) == Approx(std::sqrt(0.9)));
  CHECK_FALSE(spearman({1, 2, 3}, {5, 5, 5}));
}

TEST_CASE("regret is what the first choice takes longer than the best") {
  // Predicted fastest: tensor 4, measured 1.3; the best is tensor 1.
  const Ranking r =
      of({plan(1, 1.0, 2.0), plan(2, 1.2, 3.0), plan(4, 1.3, 1.0), plan(8, 2.0, 4.0)});
  CHECK(r.groups == 1);
  CHECK(r.plans == 4);
  CHECK(r.regret == Approx(0.3));
  CHECK(r.worst_regret == Approx(0.3));
  CHECK(r.worst == "AAAA-4");
  CHECK(r.regret_of_three == Approx(0.0));
  // Six pairs, all over 5 % apart: those of 4 with 1 and 2 are the wrong way round.
  CHECK(*r.pairs_in_order == Approx(4.0 / 6.0));
  // Ranks 1 2 3 4 against 2 3 1 4.
  CHECK(*r.correlation == Approx(1.0 - 6.0 * 6.0 / 60.0));
}

TEST_CASE("pairs within five percent do not count, predictions alike count half") {
  const Ranking r = of({plan(1, 1.00, 1.0), plan(2, 1.04, 0.5), plan(4, 2.0, 1.0)});
  // 1 against 4 is predicted alike, 2 against 4 rightly; 1 against 2 is within 5 %.
  CHECK(*r.pairs_in_order == Approx(0.75));
}

TEST_CASE("who predicts all plans alike chooses at random") {
  const Ranking r = of({plan(1, 1.0, 5), plan(2, 2.0, 5), plan(4, 3.0, 5), plan(8, 6.0, 5)});
  CHECK(*r.correlation == 0.0);
  CHECK(r.regret == Approx(2.0));
  CHECK(*r.pairs_in_order == Approx(0.5));
  // Three of four: the best is among them in three cases of four, else the second.
  CHECK(r.regret_of_three == Approx(0.25));
}

TEST_CASE("repeats of a plan are one plan, and groups need three") {
  auto again = plan(1, 3.0, 1.0);
  again.row.id = "AAAA-9";
  const Ranking two = of({plan(1, 1.0, 1.0), again, plan(2, 1.5, 2.0)});
  CHECK(two.groups == 0);
  CHECK_FALSE(two.correlation);
  // At its median of 2 s plan 1 is slower than plan 2.
  const Ranking r = of({plan(1, 1.0, 1.0), again, plan(2, 1.5, 2.0), plan(4, 3.0, 3.0)});
  CHECK(r.plans == 3);
  CHECK(r.regret == Approx(2.0 / 1.5 - 1.0));
}

TEST_CASE("groups are of one shape, whatever the model is called") {
  auto other = plan(4, 3.0, 3.0);
  CHECK(of({plan(1, 1.0, 1.0), plan(2, 2.0, 2.0), other}).groups == 1);
  other.row.layers = 48;
  CHECK(of({plan(1, 1.0, 1.0), plan(2, 2.0, 2.0), other}).groups == 0);
}

TEST_CASE("pairs are counted by source and by how far apart they are predicted") {
  // Predicted 1.00, 1.01, 1.30: gaps of 0.010, 0.262 and 0.252; 1.00 is measured slower than 1.01.
  const std::vector<PublishedResult> rows{plan(1, 2.0, 1.00), plan(2, 1.0, 1.01),
                                          plan(4, 3.0, 1.30)};
  std::vector<const PublishedResult*> scored;
  for (const PublishedResult& row : rows) scored.push_back(&row);
  const auto counts = pair_counts(scored);
  REQUIRE(counts.size() == 2);
  CHECK(counts[0].source == "AAAA");
  CHECK(counts[0].gap == 0.0);
  CHECK(counts[0].pairs == 1.0);
  CHECK(counts[0].in_order == 0.0);
  CHECK(counts[1].gap == 0.2);
  CHECK(counts[1].pairs == 2.0);
  CHECK(counts[1].in_order == 2.0);
}
