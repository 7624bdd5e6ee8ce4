#include "validate/published/ran.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

#include "sim/files/csv.hpp"
#include "tests/session.hpp"
#include "validate/published/open_choices.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

const std::vector<PublishedResult>& shipped() {
  static const std::vector<PublishedResult> results = predict_published(
      "what_ran.csv",
      published_rows(sim::read_csv(STEPCAST_SOURCE_DIR "/validate/published/what_ran.csv")),
      session(), {.threads = 1, .only = {}, .quiet = true, .bucket = Bucket::none});
  return results;
}

PublishedResult forecast(bool died, double needed) {
  PublishedResult out;
  out.row.columns = ColumnSet::what_ran;
  out.row.ran_out_of_memory = died;
  out.predicted_s = 1.0;
  out.needed_gib = needed;
  out.gpu_memory_gib = 80;
  out.p_fits = needed > 80 ? 0.01 : 0.9;
  return out;
}

}  // namespace

TEST_CASE("law: every shipped row of what ran is counted once") {
  const RanSummary s = ran_summary(shipped());
  CHECK(s.rows == 256);
  CHECK(s.ran + s.died + s.not_entered + s.aside == s.rows);
  CHECK(s.refused_ran <= s.ran);
  CHECK(s.foreseen_died <= s.died);
  std::size_t reasons = 0;
  for (const auto& [reason, rows] : s.reasons) reasons += rows;
  CHECK(reasons == s.not_entered);
  for (const char* list : {"framework", "recompute"}) {
    std::size_t rows = 0, in = 0, refused = 0, foreseen = 0;
    for (const RanGroup& group : s.groups)
      if (group.list == list) {
        rows += group.rows;
        in += group.entered;
        refused += group.refused_ran;
        foreseen += group.foreseen_died;
      }
    CHECK(rows == s.rows - s.aside);
    CHECK(in == s.ran + s.died);
    CHECK(refused == s.refused_ran);
    CHECK(foreseen == s.foreseen_died);
  }
  CHECK(s.aside == 18);  // 6 of AMD, 12 of GeForce and RTX
  CHECK(s.ran >= 40);
  CHECK(s.died >= 15);
  // Of runs that died nine of ten are foreseen, of those that ran at most 3 % are refused.
  CHECK(10 * s.foreseen_died >= 9 * s.died);
  CHECK(100 * s.refused_ran <= 3 * s.ran);
}

TEST_CASE("law: what is not entered says why, and what is open says what was taken") {
  for (const PublishedResult& r : shipped()) {
    INFO(r.row.id);
    CHECK(entered(r) == (r.refused.empty() && !r.aside));
    if (!entered(r) || !r.row.activation_checkpointing.empty()) continue;
    CHECK(std::ranges::any_of(r.assumed, [](const std::string& sentence) {
      return sentence.find("not stated: ") != sentence.npos &&
             sentence.find("; taken: ") != sentence.npos;
    }));
  }
}

TEST_CASE("a verdict follows what is needed against the card") {
  CHECK(verdict_of(forecast(false, 79)) == "ran");
  CHECK(verdict_of(forecast(false, 81)) == "refused_ran");
  CHECK(verdict_of(forecast(true, 79)) == "died");
  CHECK(verdict_of(forecast(true, 81)) == "foreseen_died");
  PublishedResult none;
  CHECK(verdict_of(none) == "not_entered");
  none.aside = true;
  CHECK(verdict_of(none) == "aside");
}

TEST_CASE("peaks are those of runs, two figures apart, and GB of an open base apart") {
  PublishedResult r = forecast(false, 60);
  r.allocated_gib = 55, r.reserved_gib = 58, r.process_gib = 60;
  CHECK(peaks_of(r).empty());
  r.row.mem_gib_per_gpu = 50;
  r.row.mem_figure = "allocated";
  r.row.further_figure = "process";
  r.row.further_gib = 64;
  REQUIRE(peaks_of(r).size() == 2);
  CHECK(peaks_of(r)[0].error() == Approx(0.1));
  CHECK(peaks_of(r)[1].error() == Approx(60.0 / 64 - 1));
  r.process_gib = 90, r.reserved_gib = 88;  // segments are given back before the card is full
  CHECK(peaks_of(r)[1].forecast_gib == 80);
  r.row.mem_base_open = true;
  const std::vector<PublishedResult> rows = {r};
  const RanSummary s = ran_summary(rows);
  CHECK(s.memory.empty());
  CHECK(s.open_peaks == 2);
  CHECK(s.worst.empty());
  r.row.ran_out_of_memory = true;
  CHECK(peaks_of(r).empty());
}

TEST_CASE("the reported peak chooses what is open; without one the default or what fits") {
  PublishedRow row;
  row.columns = ColumnSet::what_ran;
  row.seq_len = 4096, row.micro_batch_seqs = 1, row.gpus = 8;
  FrameworkDefaults framework;
  framework.recompute = workloads::Recompute::selective;
  framework.compiles = true;
  const auto open = open_choices(row, framework);
  REQUIRE(open.size() >= 6);
  CHECK(open.front().name == "none");
  CHECK(open.back().name == "full, compiled");
  CHECK(std::ranges::count_if(open, [](const auto& choice) { return choice.is_default; }) == 1);
  row.compile = "no";
  CHECK(open_choices(row, framework).size() == open.size() / 2);
  row.activation_checkpointing = "full";
  CHECK(open_choices(row, framework).size() == 1);
  row.compile.clear();
  CHECK(open_choices(row, framework).size() == 2);

  PublishedRow blank;
  std::vector<ChoiceForecast> forecasts;
  for (std::size_t i = 0; i < 3; ++i)  // none, selective, full
    forecasts.push_back({&open[i], 90.0 - 30.0 * static_cast<double>(i), i > 1});
  CHECK(taken_choice(blank, forecasts).index == 2);  // the default does not fit
  blank.mem_gib_per_gpu = 62;
  CHECK(taken_choice(blank, forecasts).index == 1);
  blank.ran_out_of_memory = true;
  const TakenChoice died = taken_choice(blank, forecasts);
  CHECK(died.index == 1);
  CHECK(died.told.find("the framework's own default") != died.told.npos);
}

TEST_CASE("sequence, batch, GPUs and expert ranks that nobody states are open as well") {
  PublishedRow row;
  row.columns = ColumnSet::what_ran;
  row.activation_checkpointing = "full";
  FrameworkDefaults framework;
  const auto size = [&] { return open_choices(row, framework).size(); };
  CHECK(size() == 3 * 4 * 4);  // 2,048 to 8,192 tokens; 1 to 8 sequences; 1 to 8 GPUs
  const auto usual_batch = [&] {
    for (const OpenChoice& choice : open_choices(row, framework))
      if (choice.is_default) return choice.row.micro_batch_seqs.value_or(0);
    return std::int64_t{0};
  };
  CHECK(usual_batch() == 1);
  framework.micro_batch = 8;  // of LLaMA-Factory
  CHECK(usual_batch() == 8);
  CHECK(open_choices(row, framework).front().tokens);
  row.gpus = 16;
  row.micro_batch_seqs = 1;
  CHECK(size() == 3);
  row.seq_len = 4096;
  CHECK(size() == 1);
  CHECK_FALSE(open_choices(row, framework).front().tokens);
  row.packing = "unpacked";  // 512 to 4,096 tokens
  CHECK(size() == 4);
  CHECK(open_choices(row, framework).front().row.seq_len == 512);
  row.packing.clear();
  row.experts = 128;
  CHECK(size() == 1);
  framework.expert_degree_open = true;
  CHECK(size() == 5);  // 1 to 16
  CHECK(told_open(row, framework) == "the expert degree is not stated: ");
}

TEST_CASE("of a run that died with so much allocated the least choice that has it is taken") {
  std::vector<OpenChoice> open(3);
  for (OpenChoice& choice : open) choice.tokens = true;
  const std::vector<ChoiceForecast> forecasts = {
      {&open[0], 90, false}, {&open[1], 70, true}, {&open[2], 50, true}};
  PublishedRow row;
  row.ran_out_of_memory = true;
  row.mem_gib_per_gpu = 60;
  CHECK(taken_choice(row, forecasts).index == 1);
  row.mem_gib_per_gpu = 95;
  CHECK(taken_choice(row, forecasts).index == 0);
}

TEST_CASE("lengths that are uneven are taken at their mean, and their peaks are not compared") {
  std::size_t uneven = 0;
  for (const PublishedResult& r : shipped()) {
    if (!r.tokens_open || r.row.packing.empty() == false || !entered(r)) continue;
    const auto says = [&](const char* words) {
      return std::ranges::any_of(r.assumed, [&](const std::string& sentence) {
        return sentence.find(words) != sentence.npos;
      });
    };
    if (!says("uneven length")) continue;
    ++uneven;
    CHECK_FALSE(r.times_a_step());
    for (const PeakError& peak : peaks_of(r)) CHECK_FALSE(peak.scored());
    // FMSB-065: 1,951.473 tokens/s x 18.182 s / 128 sequences.
    if (r.row.id == "FMSB-065") CHECK(r.row.seq_len == 277);
  }
  CHECK(uneven == 12);
}
