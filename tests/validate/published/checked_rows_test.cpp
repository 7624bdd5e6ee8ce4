// Runs whose hosts met before each collective: 365 rows of the sweep that are not scored, because
// the check takes up to 98 % of their step. They judge the mechanism, and how many collectives
// nanotron's layers are told to launch.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "engine/arithmetic.hpp"
#include "sim/files/csv.hpp"
#include "tests/session.hpp"
#include "validate/published/published.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

std::vector<PublishedRow> checked_rows() {
  auto rows = published_rows(sim::read_csv(STEPCAST_SOURCE_DIR "/validate/published/sweep.csv"));
  std::erase_if(rows, [](const PublishedRow& row) {
    return row.scorable || row.notes.find("host check") == std::string::npos || row.tp == 1 ||
           row.ran_out_of_memory;
  });
  return rows;
}

/// Median of |forecast / measured - 1|.
double median_error(const std::vector<PublishedRow>& rows) {
  std::vector<double> errors;
  for (const PublishedResult& r :
       predict_published("sweep.csv", rows, session(),
                         {.threads = 1, .only = {}, .quiet = true, .bucket = Bucket::none}))
    if (r.predicted_s) errors.push_back(std::abs(*r.predicted_s / r.measured_s - 1));
  REQUIRE(errors.size() > 300);
  return median(std::move(errors));
}

}  // namespace

TEST_CASE("a check before each collective explains steps that take ten times as long") {
  std::vector<PublishedRow> rows = checked_rows();
  CHECK(median_error(rows) < 0.20);
  for (PublishedRow& row : rows) row.notes.clear();
  CHECK(median_error(rows) > 0.70);
}
