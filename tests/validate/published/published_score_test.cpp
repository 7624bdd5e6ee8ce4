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
  r.parameters = 1.3e9;
  r.gpu_kind = "A100";
  r.in_scope = true;
  r.measured_s = measured;
  r.predicted_s = predicted;
  return r;
}

}  // namespace

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
}

TEST_CASE("a row without a count of parameters has the baseline's of its shape") {
  std::vector<PublishedResult> rows = {result("AAAA-1", 1, 1), result("AAAA-2", 2, 2)};
  rows[0].row.params_b.reset();  // the count that predict_published() takes from the shape
  rows[1].parameters *= 2;
  add_baseline(rows);
  CHECK(*rows[1].baseline_s > *rows[0].baseline_s);
  CHECK(*rows[0].baseline_s != Approx(*rows[0].predicted_s));
}

TEST_CASE("memory is judged by what ran and by what ran out") {
  std::vector<PublishedResult> rows = {result("AAAA-1", 1, 1), result("AAAA-2", 2, 2),
                                       result("AAAA-3", 0, 1), result("AAAA-4", 0, 1)};
  for (PublishedResult& row : rows) row.gpu_memory_gib = 80;
  rows[0].memory_gib = 70;
  rows[0].needed_gib = 70;
  rows[1].memory_gib = 90;
  rows[1].needed_gib = 90;
  rows[2].memory_gib = 90;
  rows[2].needed_gib = 90;
  rows[3].memory_gib = 70;
  rows[3].needed_gib = 70;
  for (const std::size_t i : {2U, 3U}) {
    rows[i].row.ran_out_of_memory = true;
    rows[i].row.scorable = false;
  }
  add_baseline(rows);
  const PublishedSummary s = summary_of(rows);
  CHECK(s.ran == 2);
  CHECK(s.too_large == 1);
  CHECK(s.ran_out == 2);
  CHECK(s.foreseen == 1);
}

TEST_CASE("errors by degree") {
  std::vector<PublishedResult> rows = {result("AAAA-1", 1, 1.1), result("AAAA-2", 1, 0.8),
                                       result("AAAA-3", 1, 0.6)};
  rows[0].row.tp = 1;
  rows[1].row.tp = rows[2].row.tp = 8;
  const auto scores = degree_scores(rows);
  REQUIRE(scores.size() == 3);  // tensor 1 and 8, and 8 GPUs
  CHECK(scores[1].knob == "tensor");
  CHECK(scores[1].degree == 8);
  CHECK(scores[1].errors.bias == Approx(-0.3));
  CHECK(scores[2].knob == "GPUs");
  CHECK(scores[2].rows == 3);
}

TEST_CASE("a source of whole runs is marked, and a second mean leaves it out") {
  std::vector<PublishedResult> rows;
  for (int i = 0; i < 5; ++i) {
    rows.push_back(result("AAAA-" + std::to_string(i), 1, 1.1));
    rows.push_back(result("BBBB-" + std::to_string(i), 1, 0.7));
    rows.back().row.notes = "step = GPU-hours*3600/GPUs/steps";
  }
  rows[0].virtual_open = true;
  add_baseline(rows);
  const PublishedSummary summary = summary_of(rows);
  CHECK(summary.sources == 2);
  CHECK(summary.mean_source_median == Approx(0.2));
  CHECK(summary.unmarked == 1);
  CHECK(summary.mean_unmarked_median == Approx(0.1));
  CHECK_FALSE(summary.by_source[0].whole_runs);
  CHECK(summary.by_source[1].whole_runs);
  CHECK(summary.virtual_open_rows == 1);
  CHECK(summary.virtual_open->bias == Approx(0.1));
  CHECK(summary.others->median == Approx(0.3));
}

TEST_CASE("a reported peak is held against the figure that its source reports") {
  PublishedResult r;
  r.memory_gib = 11;
  r.allocated_gib = 9, r.reserved_gib = 10, r.process_gib = 12;
  r.row.mem_gib_per_gpu = 10;
  CHECK(r.memory_error() == Approx(0.1));
  r.row.mem_figure = "allocated";
  CHECK(r.memory_error() == Approx(-0.1));
  r.row.mem_figure = "reserved";
  CHECK(r.memory_error() == Approx(0.0));
  r.row.mem_figure = "process";
  CHECK(r.memory_error() == Approx(0.2));
}
