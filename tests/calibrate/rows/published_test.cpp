// The published rows as a whole: they import, and what the kernel models make of them is within
// the error that the README states.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "calibrate/import/import_files.hpp"
#include "sim/kernels/attention_times.hpp"
#include "sim/kernels/gemm_times.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/tables/calibration_table.hpp"
#include "sim/tables/gpu_names.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::GemmShape;
using sim::GemmTimes;
using sim::Provenance;
using workloads::AttentionKernel;
using workloads::Dtype;

namespace {

topology::Architecture architecture(const char* name) {
  return sim::Catalogue(STEPCAST_SOURCE_DIR "/scenarios").architecture(name, "test");
}

const topology::GpuSpec v100{.name = "v100-sxm2-32gb",
                             .architecture = architecture("volta"),
                             .sms = 80,
                             .tensor_peak = 125_TFLOPps,
                             .fp32_peak = FlopsPerSecond(15.7e12),
                             .memory_bandwidth = 900_GBps};
const topology::GpuSpec a100{.name = "a100-sxm4-80gb",
                             .architecture = architecture("ampere"),
                             .sms = 108,
                             .tensor_peak = 312_TFLOPps,
                             .memory_bandwidth = 2039_GBps};
const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .architecture = architecture("hopper"),
                             .sms = 132,
                             .tensor_peak = 989_TFLOPps,
                             .fp8_peak = 1979_TFLOPps,
                             .memory_bandwidth = 3350_GBps};

const sim::CalibrationTable& published() {
  static const sim::CalibrationTable table = [] {
    const std::string folder = std::string(STEPCAST_SOURCE_DIR) + "/calibrate/published/";
    const std::vector<std::string> files = {folder + "attention.csv",    folder + "collectives.csv",
                                            folder + "elementwise.csv",  folder + "kernels.csv",
                                            folder + "memory_bound.csv", folder + "products.csv"};
    return calibrate::import_files(files).table;
  }();
  return table;
}

double tflops(const GemmTimes& times, const GemmShape& shape) {
  return shape.flops() / seconds(times.time_of(shape, Dtype::fp16)->duration) / 1e12;
}

struct Errors {
  double median = 0, p90 = 0;
};

/// Leave-one-out: every measured shape is predicted from all the others.
Errors held_out(const topology::GpuSpec& gpu) {
  std::vector<sim::GemmRow> rows;
  for (const auto& row : published().gemm)
    if (sim::kinship(row.gpu, gpu.name) <= sim::Kinship::same_chip && row.data != "zeros" &&
        row.source->confidence != "low" && !row.dtype.starts_with("fp8"))
      rows.push_back(row);
  const GemmTimes all(rows, gpu);  // the truth, corrected as rows are
  std::vector<double> errors;
  for (const auto& held : rows) {
    std::vector<sim::GemmRow> others = rows;
    std::erase_if(others,
                  [&](const auto& r) { return r.m == held.m && r.n == held.n && r.k == held.k; });
    const GemmShape shape{held.m, held.n, held.k, 1};
    const double truth = seconds(all.time_of(shape, Dtype::fp16)->duration);
    const double guess = seconds(GemmTimes(others, gpu).time_of(shape, Dtype::fp16)->duration);
    errors.push_back(std::abs(guess / truth - 1));
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors[errors.size() * 9 / 10]};
}

double attention_tflops(const topology::GpuSpec& gpu, AttentionKernel kind, bool backward) {
  const sim::AttentionShape shape{
      .batch = 2, .heads = 32, .sequence = 4096, .head_dim = 128, .backward = backward};
  const auto time = sim::AttentionTimes(published().attention, gpu).time_of(shape, kind);
  return shape.flops() / seconds(time->duration) / 1e12;
}

}  // namespace

TEST_CASE("every published row is imported") {
  CHECK(published().gemm.size() == 362 + 707);
  CHECK(published().attention.size() == 226 + 736);
  CHECK(published().copies.size() == 30);
  CHECK(published().elementwise.size() == 320 + 293);
  CHECK(published().collectives.size() == 742);
}

TEST_CASE("the study's AllReduce table is among the collectives") {
  // GB/s bus bandwidth at 64 MiB and 1 GiB over 4, 16, 64, 256 nodes of H100
  const std::map<std::pair<std::int64_t, std::int64_t>, double> table = {
      {{4, 64}, 217},   {{16, 64}, 163},   {{64, 64}, 137},   {{256, 64}, 118},
      {{4, 1024}, 338}, {{16, 1024}, 323}, {{64, 1024}, 304}, {{256, 1024}, 303}};
  for (const auto& [point, busbw] : table) {
    const auto& rows = published().collectives;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) {
      return r.nccl == "2.20" && r.nodes == point.first && r.bytes.value == point.second << 20;
    });
    REQUIRE(row != rows.end());
    CHECK(row->busbw.value == busbw * 1e9);
  }
}

TEST_CASE("products that were held out are predicted within 5 % in the median") {
  for (const auto& gpu : {v100, a100, h100}) {
    const Errors errors = held_out(gpu);
    std::printf("leave-one-out GEMM error %s: median %.1f %%, p90 %.1f %%\n", gpu.name.c_str(),
                100 * errors.median, 100 * errors.p90);
    CHECK(errors.median < 0.05);
    CHECK(errors.p90 < 0.15);
  }
}

TEST_CASE("products measured on random data are told as they were measured") {
  const GemmTimes times(published().gemm, h100);
  CHECK(tflops(times, {8192, 8192, 8192, 1}) == Approx(798).epsilon(1e-3));
  // The best of a search over shapes: 794.5 are published.
  CHECK(tflops(times, {2048, 2048, 13312, 1}) < 0.95 * 794.5);
  topology::GpuSpec h200 = h100;
  h200.name = "h200-sxm-141gb";
  CHECK(tflops(GemmTimes(published().gemm, h200), {8192, 8192, 8192, 1}) ==
        Approx(788).epsilon(1e-3));
}

TEST_CASE("twice the product never takes less time, unless it was measured to") {
  for (const auto& gpu : {v100, a100, h100}) {
    const GemmTimes times(published().gemm, gpu);
    for (std::int64_t m = 96; m <= 20000; m *= 4)
      for (std::int64_t n = 64; n <= 70000; n *= 4)
        for (std::int64_t k = 80; k <= 30000; k *= 4)
          for (const GemmShape twice : {GemmShape{2 * m, n, k, 1}, GemmShape{m, 2 * n, k, 1},
                                        GemmShape{m, n, 2 * k, 1}, GemmShape{m, n, k, 2}}) {
            const auto whole = times.time_of(twice, Dtype::fp16);
            const auto half = times.time_of({m, n, k, 1}, Dtype::fp16);
            INFO(gpu.name << " " << twice.m << " " << twice.n << " " << twice.k);
            if (whole->provenance != Provenance::measured)
              REQUIRE(whole->duration >= half->duration);
          }
  }
}

TEST_CASE("no rate passes the peak") {
  for (const auto& gpu : {v100, a100, h100}) {
    const GemmTimes times(published().gemm, gpu);
    for (std::int64_t size = 128; size <= 32768; size *= 2)
      for (std::int64_t k = 64; k <= 65536; k *= 2)
        REQUIRE(tflops(times, {size, size, k, 1}) * 1e12 < gpu.tensor_peak.value);
  }
}

TEST_CASE("attention of Llama-2 7B runs at the rates that were published") {
  using enum AttentionKernel;
  // H100, FlashAttention-2: 319 forward at 4k causal; 294 both passes together leave 285 backward.
  CHECK(attention_tflops(h100, flash2, false) == Approx(319).epsilon(0.01));
  CHECK(attention_tflops(h100, flash2, true) == Approx(285).epsilon(0.01));
  CHECK(attention_tflops(h100, flash3, false) > 1.7 * attention_tflops(h100, flash2, false));
  // A100: 173 both passes together.
  const double forward = attention_tflops(a100, flash2, false);
  const double backward = attention_tflops(a100, flash2, true);
  CHECK(3.5 / (1 / forward + 2.5 / backward) == Approx(173).epsilon(0.01));
  CHECK(forward > backward);
  // V100, xformers: 67 TFLOP/s without a mask; diagonal blocks cost the causal rate some of it.
  CHECK(attention_tflops(v100, memory_efficient, false) < 67);
  CHECK(attention_tflops(v100, memory_efficient, false) > 50);
}

TEST_CASE("only the rows whose operand is nearly zero are taken slower than they are published") {
  // vidur's 4096 x 4096 x 11008 down projection at 843 TFLOP/s and 4096 x 14336 x 8192 at 710.
  const GemmTimes times(published().gemm, h100);
  CHECK(tflops(times, {4096, 4096, 11008, 1}) == Approx(843.4 * 788 / 894).epsilon(2e-3));
  CHECK(tflops(times, {4096, 14336, 8192, 1}) == Approx(710.3).epsilon(2e-3));
}
