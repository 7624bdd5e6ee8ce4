#include "sim/kernels/gemm_times.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "engine/units.hpp"
#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::GemmRow;
using sim::GemmShape;
using sim::GemmTimes;
using sim::Provenance;
using workloads::Dtype;

namespace {

const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .architecture = sim::architecture("hopper"),
                             .sms = 132,
                             .tensor_peak = 989_TFLOPps,
                             .fp8_peak = 1979_TFLOPps,
                             .memory_bandwidth = 3350_GBps};

GemmRow row(std::int64_t m, std::int64_t n, std::int64_t k, double tflops,
            const std::string& data = "random") {
  return {.gpu = "H100-SXM5-80GB",
          .dtype = "bf16",
          .m = m,
          .n = n,
          .k = k,
          .layout = "",
          .data = data,
          .rate = FlopsPerSecond(tflops * 1e12),
          .source = {"a test", "here", "high"}};
}

double tflops(const GemmTimes& times, const GemmShape& shape, Dtype dtype = Dtype::bf16) {
  return shape.flops() / seconds(times.time_of(shape, dtype)->duration) / 1e12;
}

}  // namespace

TEST_CASE("a measured product takes what was measured, in both 16-bit types") {
  const GemmTimes times({row(4096, 4096, 4096, 700)}, h100);
  const auto time = times.time_of({4096, 4096, 4096, 1}, Dtype::bf16);
  REQUIRE(time);
  CHECK(time->provenance == Provenance::measured);
  // 2 x 4096^3 FLOP / 700 TFLOP/s = 196.34 us
  CHECK(seconds(time->duration) == Approx(196.34e-6).epsilon(1e-4));
  CHECK(times.time_of({4096, 4096, 4096, 1}, Dtype::fp16)->duration == time->duration);
}

TEST_CASE("repeated measurements of one shape count as their mean time") {
  const GemmTimes times({row(1024, 1024, 1024, 400), row(1024, 1024, 1024, 200)}, h100);
  // 2^31 FLOP: 5.369 us and 10.737 us
  CHECK(seconds(times.time_of({1024, 1024, 1024, 1}, Dtype::bf16)->duration) ==
        Approx(8.053e-6).epsilon(1e-3));
}

TEST_CASE("between two measured shapes lies a rate between theirs") {
  const GemmTimes times({row(4096, 4096, 4096, 700), row(4096, 16384, 4096, 760)}, h100);
  const auto time = times.time_of({4096, 8192, 4096, 1}, Dtype::bf16);
  CHECK(time->provenance == Provenance::interpolated);
  CHECK(tflops(times, {4096, 8192, 4096, 1}) > 690);
  CHECK(tflops(times, {4096, 8192, 4096, 1}) < 770);
}

TEST_CASE("far from every measured shape it is extrapolated") {
  const GemmTimes times({row(4096, 4096, 4096, 700)}, h100);
  CHECK(times.time_of({64, 64, 64, 1}, Dtype::bf16)->provenance == Provenance::extrapolated);
}

TEST_CASE("operands near zero make an H100 fast: such rows are corrected from 4e10 FLOP on") {
  const GemmTimes times({row(8192, 8192, 8192, 867, "small"), row(512, 512, 512, 100, "small")},
                        h100);
  CHECK(tflops(times, {8192, 8192, 8192, 1}) == Approx(867 * 788.0 / 894).epsilon(1e-4));
  CHECK(tflops(times, {512, 512, 512, 1}) == Approx(100).epsilon(1e-4));
}

TEST_CASE("products of zeros are not calibrated with") {
  const GemmTimes times({row(8192, 8192, 8192, 894, "zeros")}, h100);
  CHECK(times.time_of({8192, 8192, 8192, 1}, Dtype::bf16)->provenance == Provenance::datasheet);
}

TEST_CASE("a sibling's rows are scaled by the peak and called extrapolated") {
  topology::GpuSpec card = h100;
  card.name = "h100-pcie-80gb";
  card.tensor_peak = 756_TFLOPps;
  card.relatives = {{h100.name, h100.tensor_peak, {}}, {card.name, card.tensor_peak, {}}};
  const GemmTimes times({row(8192, 8192, 8192, 800)}, card);
  const auto time = times.time_of({8192, 8192, 8192, 1}, Dtype::bf16);
  CHECK(time->provenance == Provenance::extrapolated);
  CHECK(tflops(times, {8192, 8192, 8192, 1}) == Approx(800 * 756.0 / 989).epsilon(0.01));
}

TEST_CASE("the best of a search over shapes tells nothing of the shapes beside it") {
  GemmRow best = row(2048, 2048, 13312, 850);
  best.choice = "best_of_shapes";
  const GemmTimes times({row(4096, 4096, 4096, 700), best}, h100),
      without({row(4096, 4096, 4096, 700)}, h100);
  const GemmShape beside{2048, 2048, 8192, 1};
  CHECK(times.time_of(beside, Dtype::bf16)->duration ==
        without.time_of(beside, Dtype::bf16)->duration);
}

TEST_CASE("begin and end of a tile take as long in eight bits as in sixteen") {
  const GemmTimes times({}, h100);
  const auto trend = [&](std::int64_t k, Dtype dtype) {
    return seconds(*times.trend_of({8192, 8192, k, 1}, dtype));
  };
  const auto without_k = [&](Dtype dtype) { return 2 * trend(4096, dtype) - trend(8192, dtype); };
  CHECK(without_k(Dtype::fp8) == Approx(without_k(Dtype::bf16)).epsilon(0.01));
  CHECK(trend(65536, Dtype::fp8) == Approx(trend(65536, Dtype::bf16) / 2).epsilon(0.01));
}

TEST_CASE("of one row the level holds nearby and fades where shapes are not comparable") {
  const GemmTimes times({row(8192, 8192, 8192, 850)}, h100);
  const auto above_trend = [&](const GemmShape& shape) {
    return std::log(seconds(*times.trend_of(shape, Dtype::bf16)) /
                    seconds(times.time_of(shape, Dtype::bf16)->duration));
  };
  const double there = above_trend({8192, 8192, 8192, 1});
  CHECK(above_trend({8192, 8192, 7168, 1}) > 0.9 * there);
  CHECK(above_trend({512, 4096, 2048, 1}) < 0.5 * there);
  CHECK(above_trend({512, 4096, 2048, 1}) > 0);
}

TEST_CASE("where nothing is measured the datasheet's peak answers, and a missing one is told") {
  topology::GpuSpec volta{.name = "v100-sxm2-32gb",
                          .architecture = sim::architecture("volta"),
                          .sms = 80,
                          .tensor_peak = 125_TFLOPps,
                          .fp32_peak = FlopsPerSecond(15.7e12),
                          .memory_bandwidth = 900_GBps};
  const GemmTimes times({}, volta);
  const GemmShape shape{4096, 4096, 4096, 1};
  CHECK(times.time_of(shape, Dtype::fp16)->provenance == Provenance::datasheet);
  // No chip reaches its datasheet: a share of it, less what prologues and waves cost.
  const double reach = volta.architecture.product_reach;
  CHECK(tflops(times, shape, Dtype::fp16) < reach * 125);
  CHECK(tflops(times, shape, Dtype::fp16) > 0.87 * reach * 125);
  // Volta's tensor cores know no bf16: fp32 units do it.
  CHECK(tflops(times, shape, Dtype::bf16) == Approx(15.7).epsilon(0.01));
  CHECK_FALSE(times.time_of(shape, Dtype::fp8));
}

TEST_CASE("tiles are 128 x 256 on Hopper, turned the better way, and 128 x 128 before") {
  const auto hopper = sim::architecture("hopper"), ampere = sim::architecture("ampere");
  CHECK(sim::gemm_tiles({4096, 4096, 4096, 1}, hopper) == 32 * 16);
  CHECK(sim::gemm_tiles({128, 512, 64, 3}, hopper) == 3 * 2);
  CHECK(sim::gemm_tiles({512, 128, 64, 3}, hopper) == 3 * 2);
  CHECK(sim::gemm_tiles({4096, 4096, 4096, 1}, ampere) == 32 * 32);
}

namespace {

/// As stepcast-calibrate writes it.
GemmRow own(std::int64_t m, std::int64_t n, std::int64_t k, double tflops,
            const std::string& layout) {
  GemmRow out = row(m, n, k, tflops);
  out.layout = layout;
  out.choice = "heuristic";
  out.cache = "cold";
  out.quality.samples = 100;
  return out;
}

/// Eight shapes in one layout, all at one rate.
std::vector<GemmRow> family_of(double tflops, const std::string& layout) {
  std::vector<GemmRow> rows;
  for (const std::int64_t m : {2048, 4096})
    for (const std::int64_t n : {4096, 8192})
      for (const std::int64_t k : {2048, 4096}) rows.push_back(own(m, n, k, tflops, layout));
  return rows;
}

}  // namespace

TEST_CASE("a product measured in the layout of its call answers for that layout") {
  const GemmTimes times({own(4096, 4096, 4096, 700, "NT"), own(4096, 4096, 4096, 500, "TN")}, h100);
  const GemmShape shape{4096, 4096, 4096, 1};
  const auto rate = [&](std::string_view layout) {
    const auto time = times.time_of(shape, Dtype::bf16, {layout, false});
    CHECK(time->provenance == Provenance::measured);
    return shape.flops() / seconds(time->duration) / 1e12;
  };
  CHECK(rate("NT") == Approx(700));
  CHECK(rate("TN") == Approx(500));
  CHECK(times.time_of(shape, Dtype::bf16, {"TN", false})->this_call);
  CHECK_FALSE(times.time_of(shape, Dtype::bf16, {"TN", true})->this_call);  // that one accumulates
}

TEST_CASE("between measured shapes the rows of the same layout decide") {
  std::vector<GemmRow> rows = family_of(700, "NT");
  for (const GemmRow& slower : family_of(350, "TN")) rows.push_back(slower);
  const GemmTimes times(rows, h100);
  const GemmShape between{3072, 6144, 3072, 1};
  const auto rate = [&](std::string_view layout) {
    const auto time = times.time_of(between, Dtype::bf16, {layout, false});
    CHECK(time->provenance == Provenance::interpolated);
    return between.flops() / seconds(time->duration) / 1e12;
  };
  CHECK(rate("TN") == Approx(rate("NT") / 2).epsilon(0.02));
}

TEST_CASE("published rows know no layout that counts: they answer every call alike") {
  std::vector<GemmRow> rows = family_of(700, "NT");
  for (GemmRow& published : rows) published.quality = {};
  const GemmTimes times(rows, h100);
  const GemmShape shape{3072, 6144, 3072, 1};
  CHECK(times.time_of(shape, Dtype::bf16, {"TN", true})->duration ==
        times.time_of(shape, Dtype::bf16)->duration);
}

TEST_CASE("hot operands and the best of eight are not what a step gets") {
  GemmRow hot = own(4096, 4096, 4096, 900, "NT"), best = hot;
  hot.cache = "hot";
  best.choice = "best_of_8";
  const GemmTimes times({own(4096, 4096, 4096, 700, "NT"), hot, best}, h100);
  CHECK(tflops(times, {4096, 4096, 4096, 1}) == Approx(700));
}

TEST_CASE("beyond the measured shapes of a layout the answer is marked extrapolated") {
  const GemmTimes times(family_of(700, "NT"), h100);
  const auto origin = [&](const GemmShape& shape) {
    return times.time_of(shape, Dtype::bf16, {"NT", false})->provenance;
  };
  CHECK(origin({4096, 8192, 4096, 1}) == Provenance::measured);
  CHECK(origin({4096, 8192, 6144, 1}) == Provenance::interpolated);   // half as deep again
  CHECK(origin({4096, 8192, 16384, 1}) == Provenance::extrapolated);  // four times
  CHECK(origin({128, 128, 4096, 1}) == Provenance::extrapolated);
}

TEST_CASE("fp32 and tf32 products are measured apart from the 16-bit ones") {
  topology::GpuSpec gpu = h100;
  gpu.fp32_peak = 67_TFLOPps;
  gpu.tf32_peak = 495_TFLOPps;
  GemmRow single = own(4096, 4096, 4096, 50, "NT"), tf32 = single;
  single.dtype = "fp32";
  tf32.dtype = "tf32";
  tf32.rate = 400_TFLOPps;
  const GemmTimes times({own(4096, 4096, 4096, 700, "NT"), single, tf32}, gpu);
  const GemmShape shape{4096, 4096, 4096, 1};
  CHECK(tflops(times, shape, Dtype::bf16) == Approx(700));
  CHECK(tflops(times, shape, Dtype::fp32) == Approx(50));
  CHECK(tflops(times, shape, Dtype::tf32) == Approx(400));
}

TEST_CASE("a deeper product is nearer to a shape than a wider one by the same factor") {
  // Two rows, a factor of two away in k and in n: the library picks its kernel by m and n.
  GemmRow deep = row(4096, 4096, 8192, 800), wide = row(4096, 8192, 4096, 500);
  const GemmTimes times({deep, wide}, h100);
  CHECK(tflops(times, {4096, 4096, 4096, 1}) > 650);
}

TEST_CASE("a product stands for its transpose where nothing nearer is measured") {
  const GemmTimes times({row(2048, 16384, 4096, 500)}, h100);
  const auto time = times.time_of({16384, 2048, 4096, 1}, Dtype::bf16);
  CHECK(time->provenance == Provenance::interpolated);
  CHECK(tflops(times, {16384, 2048, 4096, 1}) == Approx(500).epsilon(0.05));
}

TEST_CASE("a time says how much of it rests on short runs") {
  const GemmShape shape{4096, 4096, 4096, 1};
  const auto share = [&](const std::vector<GemmRow>& rows, const GemmShape& wanted) {
    return GemmTimes(rows, h100).time_of(wanted, Dtype::bf16, {"NT", false})->short_run;
  };
  CHECK(share({row(4096, 4096, 4096, 700)}, shape) == 1.0);
  CHECK(share({own(4096, 4096, 4096, 700, "NT")}, shape) == 0.0);
  CHECK(share(family_of(700, "NT"), {3072, 6144, 3072, 1}) == 0.0);
  const double mixed = share({row(2048, 4096, 4096, 700), own(8192, 4096, 4096, 700, "NN")}, shape);
  CHECK(mixed > 0.0);
  CHECK(mixed < 1.0);
}
