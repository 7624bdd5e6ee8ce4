#include "validate/published/coverage.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/confidence/evidence.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

const sim::Evidence& shipped() {
  static const sim::Evidence evidence =
      sim::read_evidence(STEPCAST_SOURCE_DIR "/scenarios/confidence");
  return evidence;
}

/// Steps of dense 16-bit models, or of all others.
std::vector<sim::Residual> side(bool dense) {
  std::vector<sim::Residual> out;
  for (const sim::Residual& row : shipped().steps)
    if ((row.of.kind == sim::dense_16_bit) == dense) out.push_back(row);
  return out;
}

}  // namespace

TEST_CASE("a bar of 80 % holds for sources that it has not seen, and is not wider than it must") {
  const Coverage steps = coverage_of(side(true), 0.8, shipped().shift);
  INFO("worst: " << steps.worst.source);
  CHECK(steps.mean >= 0.75);
  CHECK(steps.mean <= 0.92);
  for (const SourceCoverage& source : steps.by_source) {
    INFO(source.source);
    CHECK(source.high <= 0.35);
    CHECK(source.low >= -0.35);
  }
  const Coverage collectives = coverage_of(shipped().collectives, 0.8, shipped().shift);
  CHECK(collectives.mean >= 0.75);
  CHECK(collectives.mean <= 0.95);
}

TEST_CASE("bars of experts and low precision hold for sources and kinds left out") {
  const std::vector<sim::Residual> rows = side(false);
  if (rows.empty()) {
    WARN("the shipped residuals are of dense 16-bit models alone");
    return;
  }
  const Coverage steps = coverage_of(rows, 0.8, shipped().shift);
  INFO("worst: " << steps.worst.source);
  CHECK(steps.mean >= 0.75);
  CHECK(steps.by_kind.size() >= 6);
  for (const KindCoverage& kind : steps.by_kind) {
    INFO(kind.kind);
    CHECK(kind.covered >= 0.7);
  }
}

TEST_CASE("a source that errs otherwise than all others is not covered by a bar of theirs") {
  std::vector<sim::Residual> rows;
  for (int source = 0; source < 12; ++source)
    for (int i = 0; i < 5; ++i)
      rows.push_back({"S" + std::to_string(source), "", 0.01 * i, {"hopper", "x", "nodes"}});
  CHECK(coverage_of(rows, 0.8, 2).mean == 1.0);
  for (int i = 0; i < 5; ++i) rows.push_back({"far", "", 1.0, {"hopper", "x", "nodes"}});
  const Coverage coverage = coverage_of(rows, 0.8, 2);
  CHECK(coverage.worst.source == "far");
  CHECK(coverage.worst.covered == 0.0);
  CHECK(coverage.mean == Approx(12.0 / 13));
}

TEST_CASE("runs of its own bring a source's forecasts nearer") {
  const OwnRunsGain one = gain_of_own_runs(side(true), 1), three = gain_of_own_runs(side(true), 3);
  CHECK(three.sources >= 5);
  CHECK(three.after < one.after);
  CHECK(three.after < 0.95 * three.before);
}
