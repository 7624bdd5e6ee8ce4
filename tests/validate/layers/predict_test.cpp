#include "validate/layers/predict.hpp"

#include <catch2/catch.hpp>

#include "sim/files/csv.hpp"
#include "tests/session.hpp"
#include "validate/layers/report.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

std::vector<LayerRow> shipped_layers() {
  return layer_rows(sim::read_csv(catalogue().directory() + "/../validate/layers/moe_layers.csv"));
}

double seconds_of(const LayerRow& row) {
  const auto results = predict_layers({row}, session());
  INFO(results[0].refused);
  REQUIRE(results[0].predicted());
  return results[0].both_s();
}

}  // namespace

TEST_CASE("every shipped layer is predicted, half of them within 15 %") {
  const auto results = predict_layers(shipped_layers(), session());
  for (const LayerResult& r : results) {
    INFO(r.row.id << " " << r.refused);
    CHECK(r.predicted());
    CHECK(r.forward.products > 0);
    CHECK(r.forward.exchange > 0);
    CHECK(r.backward.products > r.forward.products);
  }
  const LayerScores scores = scores_of(results);
  REQUIRE(scores.both);
  CHECK(scores.both->median_ape <= 0.15);
}

TEST_CASE("a layer takes longer for more tokens, wider experts and more of them for a token") {
  const LayerRow row = shipped_layers()[0];
  const double base = seconds_of(row);
  LayerRow changed = row;
  changed.sequence *= 2;
  CHECK(seconds_of(changed) > 1.5 * base);
  changed = row;
  changed.ffn *= 2;
  CHECK(seconds_of(changed) > base);
  changed = row;
  changed.per_token /= 2;
  CHECK(seconds_of(changed) < base);
}

TEST_CASE("alone on its rank a layer exchanges nothing") {
  LayerRow row = shipped_layers()[0];
  row.gpus = row.expert = 1;
  row.experts = 4;
  row.per_token = 1;
  row.groups = row.group_limit = 1;
  const auto results = predict_layers({row}, session());
  INFO(results[0].refused);
  REQUIRE(results[0].predicted());
  CHECK(results[0].forward.exchange == 0);
  CHECK(results[0].backward.exchange == 0);
}

TEST_CASE("a layer whose experts the ranks cannot share is refused with the reason") {
  LayerRow row = shipped_layers()[0];
  row.experts = 12;
  row.per_token = 2;
  row.groups = row.group_limit = 1;
  const auto results = predict_layers({row}, session());
  CHECK_FALSE(results[0].predicted());
  CHECK(results[0].refused.find("expert") != std::string::npos);
  CHECK(layers_text("t", results).find("is refused: ") != std::string::npos);
}
