#include "validate/published/score.hpp"

#include <catch2/catch.hpp>

using namespace stepcast::validate;

namespace {

PublishedResult result(const std::string& id, double measured, double predicted) {
  PublishedResult r;
  r.row.id = id;
  r.row.source = "a report";
  r.row.gpu = "A100";
  r.row.model = "m";
  r.row.gpus = 8;
  r.row.seq_len = 2048;
  r.row.global_batch_seqs = 64;
  r.row.layers = 24;
  r.row.hidden = 2048;
  r.row.params_b = 1.3;
  r.gpu_kind = "A100";
  r.in_scope = true;
  r.measured_s = measured;
  r.predicted_s = predicted;
  return r;
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

TEST_CASE("a quantile lies between its neighbours linearly") {
  CHECK(quantile({4, 1, 3, 2}, 0.0) == 1.0);
  CHECK(quantile({4, 1, 3, 2}, 1.0) == 4.0);
  CHECK(quantile({4, 1, 3, 2}, 0.5) == Approx(2.5));
  CHECK(quantile({0, 10}, 0.9) == Approx(9.0));
}

TEST_CASE("the constant of the baseline is the middle of what the rows reach") {
  // The same work in 1, 2 and 4 seconds: the constant is the middle rate, which takes 2 s.
  std::vector<PublishedResult> rows = {result("AAAA-1", 1, 1), result("AAAA-2", 2, 2),
                                       result("AAAA-3", 4, 4)};
  add_baseline(rows);
  for (const PublishedResult& row : rows) CHECK(*row.baseline_s == Approx(2.0));
  // Full recompute is a third more work.
  rows[0].row.activation_checkpointing = "full";
  add_baseline(rows);
  CHECK(*rows[0].baseline_s / *rows[1].baseline_s == Approx(4.0 / 3.0));
}

TEST_CASE("only rows in scope with a prediction are scored, and sources count alike") {
  std::vector<PublishedResult> rows;
  for (int i = 0; i < 5; ++i)
    rows.push_back(result("AAAA-" + std::to_string(i), 1.0 + i, 1.1 * (1.0 + i)));
  for (int i = 0; i < 10; ++i)
    rows.push_back(result("BBBB-" + std::to_string(i), 1.0 + i, 0.7 * (1.0 + i)));
  rows.push_back(result("CCCC-1", 1, 9));  // a source of one row: not in the mean over sources
  rows.push_back(result("AAAA-8", 1, 9));
  rows.back().in_scope = false;
  rows.push_back(result("AAAA-9", 1, 9));
  rows.back().predicted_s.reset();
  rows.back().refused = "some reason";
  add_baseline(rows);
  const PublishedSummary s = summary_of(rows);
  CHECK(s.rows == 18);
  CHECK(s.in_scope == 17);
  CHECK(s.predicted == 16);
  CHECK(s.sources == 2);
  CHECK(s.mean_source_median == Approx(0.5 * (0.1 + 0.3)));
  CHECK(s.ours->bias == Approx(-0.3));
  REQUIRE(s.refusals.size() == 1);
  CHECK(s.refusals[0] == std::pair<std::string, std::size_t>("some reason", 1));
  // Two groups of one plan each order perfectly; the baseline cannot tell their rows apart.
  CHECK(s.groups == 2);
  CHECK(*s.rank_correlation == Approx(1.0));
  CHECK_FALSE(s.baseline_rank_correlation);
}
