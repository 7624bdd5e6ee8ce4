#include "calibrate/report/card.hpp"
#include "tests/session.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace stepcast;
using namespace stepcast::calibrate;
using Catch::Contains;

namespace {

const sim::CalibrationTable& published() {
  static const auto table = session().tables({"published"});
  return *table;
}

/// All-reduces of 8 GPUs in a DGX A100 as they were published, each `slower` times as long.
sim::CalibrationTable reduces(double slower) {
  sim::CalibrationTable out;
  for (const sim::CollectiveRow& row : published().collectives)
    if (row.gpu == "A100-SXM4-80GB" && row.collective == "allreduce" && row.ranks == 8 &&
        row.duration > Duration{} && row.algorithm.empty()) {
      out.collectives.push_back(row);
      out.collectives.back().duration = to_duration(slower * seconds(row.duration));
    }
  REQUIRE(out.collectives.size() > 3);
  return out;
}

sim::LaunchRow launch(double nanoseconds, double spread) {
  sim::LaunchRow row;
  row.gpu = "host-core";
  row.what = "kernel";
  row.duration = to_duration(1e-9 * nanoseconds);
  row.quality.spread = spread;
  return row;
}

}  // namespace

TEST_CASE("a node as good as published has nothing below par, a slower one all") {
  const Card good = card_of(reduces(1.0), {}, session());
  CHECK_FALSE(good.rows.empty());
  CHECK(good.below().empty());
  CHECK_THAT(to_text(good), Contains("nothing is more than 10 % slower"));

  const Card slow = card_of(reduces(1.5), {}, session());
  REQUIRE(slow.rows.size() == good.rows.size());
  CHECK_FALSE(slow.below().empty());
  // Of one size there are several published figures: par is their middle.
  std::vector<double> ratios;
  for (const CardRow& row : slow.rows) ratios.push_back(row.ratio);
  std::ranges::sort(ratios);
  CHECK(ratios[ratios.size() / 2] == Approx(1.5).epsilon(0.02));
  CHECK_THAT(to_text(slow), Contains("below par\n  allreduce on 8 ranks"));
}

TEST_CASE("what was not published in this shape is held against the forecast") {
  sim::CalibrationTable measured;
  sim::GemmRow product;
  product.gpu = "H100-SXM5-80GB";
  product.dtype = "bf16";
  product.m = 7168;
  product.n = 5120;
  product.k = 6144;
  product.layout = "NT";
  product.cache = "cold";
  product.choice = "heuristic";
  product.rate = FlopsPerSecond(400e12);
  measured.gemm = {product};
  const Card card = card_of(measured, {}, session());
  REQUIRE(card.rows.size() == 1);
  CHECK_FALSE(card.rows[0].measured);
  // Large products of an H100 reach some 600 to 800 TFLOP/s.
  CHECK(card.rows[0].ratio > 1.4);
  CHECK(card.rows[0].ratio < 2.1);
  CHECK(card.rows[0].figure == "400 TFLOP/s");
  CHECK(card.below().size() == 1);

  Par lenient;
  lenient.slack = 1.5;
  CHECK(card_of(measured, lenient, session()).below().empty());
}

TEST_CASE("a host is held against no datasheet, and spread is no shortfall") {
  sim::CalibrationTable measured;
  measured.launches = {launch(2.0, 0.01)};
  sim::GemmRow product;
  product.gpu = "host-core";
  product.dtype = "fp32";
  product.m = product.n = product.k = 1024;
  product.rate = FlopsPerSecond(1e9);
  measured.gemm = {product};
  const Card card = card_of(measured, {}, session());
  CHECK(card.rows.empty());
  REQUIRE(card.unmatched.size() == 2);
  CHECK_THAT(to_text(card), Contains("--against FILE.h5"));

  CardRow row;
  row.ratio = 1.3;
  row.spread = 0.05;
  CHECK(row.is_below({}));
  row.spread = 0.25;
  CHECK_FALSE(row.is_below({}));
}
