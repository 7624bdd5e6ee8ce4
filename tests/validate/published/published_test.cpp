#include "validate/published/published.hpp"

#include <catch2/catch.hpp>

#include "sim/files/csv.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::validate;

TEST_CASE("law: equal rows are forecast once, and each as if it stood alone") {
  std::vector<PublishedRow> rows =
      published_rows(sim::read_csv(STEPCAST_SOURCE_DIR "/validate/published/mlgv.csv"));
  REQUIRE(rows.size() > 24);
  rows.resize(24);
  const std::vector<PublishedRow> again = rows;
  rows.insert(rows.end(), again.begin(), again.end());
  const std::vector<PublishedResult> together = predict_published("t.csv", rows, session(), {});
  std::size_t forecast = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].id);
    const PublishedResult alone = predict_published("t.csv", {rows[i]}, session(), {}).at(0);
    CHECK(together[i].predicted_s == alone.predicted_s);
    CHECK(together[i].memory_gib == alone.memory_gib);
    CHECK(together[i].needed_gib == alone.needed_gib);
    CHECK(together[i].refused == alone.refused);
    CHECK(together[i].assumed == alone.assumed);
    CHECK(together[i].warnings == alone.warnings);
    if (alone.predicted_s) ++forecast;
  }
  CHECK(forecast > rows.size() / 4);
}
