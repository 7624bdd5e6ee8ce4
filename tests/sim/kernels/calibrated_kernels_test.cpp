#include "sim/kernels/calibrated_kernels.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::CalibratedKernels;
using sim::Provenance;
using workloads::Kernel;
using workloads::KernelFamily;

namespace {

const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .architecture = sim::architecture("hopper"),
                             .sms = 132,
                             .tensor_peak = 989_TFLOPps,
                             .memory_bandwidth = 3350_GBps};

Kernel pass(Bytes bytes, KernelFamily family = KernelFamily::pointwise) {
  Kernel kernel;
  kernel.family = family;
  kernel.bytes = bytes;
  return kernel;
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.family = KernelFamily::gemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  return kernel;
}

}  // namespace

TEST_CASE("a kernel that moves bytes takes bytes over the achieved share of the bandwidth") {
  const CalibratedKernels kernels({}, h100, {});
  // 2.8475 GB at 0.85 x 3350 GB/s = 1 ms
  const auto time = kernels.time_of(pass(Bytes(2'847'500'000)));
  CHECK(seconds(time.duration) == Approx(1e-3));
  CHECK(time.provenance == Provenance::derived);
  CHECK(time.memory_fraction == Approx(0.85));
  CHECK(time.tiles == 0);
}

TEST_CASE("no kernel is shorter than 3 us") {
  const CalibratedKernels kernels({}, h100, {});
  CHECK(kernels.time_of(pass(16_B)).duration == 3_us);
  CHECK(kernels.time_of(product(16, 16, 16)).duration >= 3_us);
}

TEST_CASE("copies to the host take its link, updates there its memory, and neither an SM") {
  const CalibratedKernels kernels({}, h100, {}, {.link = 63_GBps, .memory = 76.8_GBps});
  // 55 of 63 GB/s are 0.87; updates take 0.8 of 76.8 GB/s.
  const auto copy = kernels.time_of(pass(Bytes(54'810'000'000), KernelFamily::host_copy));
  CHECK(seconds(copy.duration) == Approx(1.0));
  CHECK(copy.memory_fraction == Approx(54.81 / 3350));
  const auto update = kernels.time_of(pass(Bytes(61'440'000'000), KernelFamily::host_update));
  CHECK(seconds(update.duration) == Approx(1.0));
  CHECK(update.memory_fraction == 0.0);
  CHECK(copy.tiles + update.tiles == 0);
}

TEST_CASE("vLLM's measured norms do not count for eager PyTorch") {
  sim::CalibrationTable table;
  table.elementwise.push_back({.gpu = "H100-SXM5-80GB",
                               .dtype = "fp16",
                               .kind = "rmsnorm",
                               .implementation = "vllm",
                               .tokens = 4096,
                               .shape = "",
                               .bytes = 64_MiB,
                               .duration = 1_ms,
                               .source = {}});
  const Kernel norm = pass(64_MiB, KernelFamily::norm);
  CHECK(CalibratedKernels(table, h100, {}).time_of(norm).duration ==
        CalibratedKernels({}, h100, {}).time_of(norm).duration);
}

TEST_CASE("a product that adds to fp32 gradients reads and writes them where bytes bound it") {
  const CalibratedKernels kernels({}, h100, {});
  Kernel thin = product(16384, 16384, 16);
  const auto plain = kernels.time_of(thin);
  thin.accumulate = true;
  const auto adding = kernels.time_of(thin);
  // 2 B per output against 8 B, and little else: 16384^2 outputs, 2 x 16384 x 16 inputs of 2 B
  CHECK(seconds(adding.duration) == Approx((8.0 * 16384 * 16384 + 1048576) / (0.85 * 3350e9)));
  CHECK(adding.duration > plain.duration * 3);
  CHECK(adding.provenance == Provenance::derived);
}

TEST_CASE("attention that nothing is known of falls back on the datasheet") {
  Kernel attention;
  attention.family = KernelFamily::attention_forward;
  attention.batch = 2;
  attention.heads = 32;
  attention.sequence = 4096;
  attention.head_dim = 128;
  const auto time = CalibratedKernels({}, h100, {}).time_of(attention);
  CHECK(time.provenance == Provenance::datasheet);
  CHECK(time.tensor_fraction == Approx(0.5));
  CHECK(time.tiles == 2 * 32 * 32);
}

/// A product of 4096 in every direction.
sim::GemmRow cube_on(const char* gpu, FlopsPerSecond rate) {
  return {.gpu = gpu,
          .dtype = "bf16",
          .m = 4096,
          .n = 4096,
          .k = 4096,
          .layout = "",
          .data = "random",
          .rate = rate,
          .source = {"", "", "high"}};
}

TEST_CASE("within a step, Hopper's tensor cores run at 0.86 of their short-run rate") {
  // Measured in a short run: 4096 x 4096 x 4096 at 700 TFLOP/s. A100 keeps its rate.
  sim::CalibrationTable table;
  table.gemm = {cube_on("H100-SXM5-80GB", 700_TFLOPps), cube_on("A100-SXM4-80GB", 250_TFLOPps)};
  const topology::GpuSpec a100{.name = "a100-sxm4-80gb",
                               .architecture = sim::architecture("ampere"),
                               .sms = 108,
                               .tensor_peak = 312_TFLOPps,
                               .memory_bandwidth = 2039_GBps};
  const double flops = 2.0 * 4096 * 4096 * 4096;
  const auto hopper = CalibratedKernels(table, h100, {}).time_of(product(4096, 4096, 4096));
  const auto ampere = CalibratedKernels(table, a100, {}).time_of(product(4096, 4096, 4096));
  CHECK(seconds(hopper.duration) == Approx(flops / 700e12 / 0.86));
  CHECK(hopper.provenance == Provenance::interpolated);  // corrected: not the measured figure
  CHECK(seconds(ampere.duration) == Approx(flops / 250e12));
  CHECK(ampere.provenance == Provenance::measured);
}

TEST_CASE("a product whose rows are no multiple of 16 bytes leaves the fast kernels") {
  sim::CalibrationTable table;
  table.gemm = {cube_on("H100-SXM5-80GB", 700_TFLOPps)};
  const CalibratedKernels kernels(table, h100, {});
  const auto time_of = [&](std::int64_t m, std::int64_t n, std::int64_t k, std::string_view pass) {
    Kernel kernel = product(m, n, k);
    kernel.name = std::string("layer.mlp.up.") + std::string(pass);
    return kernels.time_of(kernel);
  };
  const double whole = seconds(time_of(4096, 4096, 4104, "forward").duration);
  for (const std::int64_t k : {4097, 4098, 4100}) {
    const auto time = time_of(4096, 4096, k, "forward");
    CHECK(seconds(time.duration) / whole == Approx(130.56 / 36.96).epsilon(2e-3));
    CHECK(time.provenance == Provenance::derived);
  }
  // n is a row of the result, m is none: tokens may have any count ...
  CHECK(seconds(time_of(4096, 4100, 4096, "forward").duration) > 3 * whole);
  CHECK(seconds(time_of(4100, 4096, 4096, "forward").duration) < 1.1 * whole);
  // ... but where the weight's gradient is made, m and n are features and k counts tokens
  CHECK(seconds(time_of(4100, 4096, 4096, "wgrad").duration) > 3 * whole);
  CHECK(seconds(time_of(4096, 4096, 4100, "wgrad").duration) < 1.1 * whole);
}

TEST_CASE("misaligned products are slower on all three generations, and never faster") {
  for (const char* name : {"volta", "ampere", "hopper", "blackwell"}) {
    topology::GpuSpec gpu = h100;
    gpu.architecture = sim::architecture(name);
    const CalibratedKernels kernels({}, gpu, {});
    const auto time_of = [&](std::int64_t n) {
      Kernel kernel = product(2048, n, 2048);
      kernel.name = "head.forward";
      kernel.dtype = workloads::Dtype::fp16;
      return kernels.time_of(kernel).duration;
    };
    CHECK(time_of(50257) > 1.5 * time_of(50264));
    CHECK(time_of(50264) <= time_of(50304));
  }
}

TEST_CASE("attention works on head dimensions in whole multiples of 8") {
  const CalibratedKernels kernels({}, h100, {});
  const auto time_of = [&](std::int64_t head_dim) {
    Kernel kernel;
    kernel.family = KernelFamily::attention_forward;
    kernel.batch = 1;
    kernel.heads = kernel.kv_heads = 32;
    kernel.sequence = 4096;
    kernel.head_dim = head_dim;
    kernel.causal = true;
    return kernels.time_of(kernel).duration;
  };
  CHECK(time_of(80) < time_of(81));
  CHECK(time_of(81) == time_of(88));
  CHECK(time_of(87) == time_of(88));
}

TEST_CASE("within a step, a V100 at 300 W holds 1,330 of its 1,530 MHz, more at 350 W") {
  sim::CalibrationTable table;
  table.gemm = {cube_on("V100-SXM2", 100_TFLOPps)};
  table.gemm.front().dtype = "fp16";
  const auto time_at = [&](double watts) {
    const topology::GpuSpec v100{.name = "v100-sxm2-32gb",
                                 .architecture = sim::architecture("volta"),
                                 .sms = 80,
                                 .tensor_peak = 125_TFLOPps,
                                 .memory_bandwidth = 900_GBps,
                                 .tdp = Watts(watts)};
    Kernel kernel = product(4096, 4096, 4096);
    kernel.dtype = workloads::Dtype::fp16;
    return seconds(CalibratedKernels(table, v100, {}).time_of(kernel).duration);
  };
  const double short_run = 2.0 * 4096 * 4096 * 4096 / 100e12;
  CHECK(time_at(300) == Approx(short_run * 1530 / 1330));
  CHECK(time_at(350) == Approx(short_run * 1530 / 1330 / std::cbrt(350.0 / 300.0)));
  CHECK(time_at(1000) == Approx(short_run));  // beyond the limit the boost clock holds
}

TEST_CASE("a part with a lower power limit holds the cube root of its watts") {
  sim::CalibrationTable table;
  table.gemm = {cube_on("H100-SXM5-80GB", 700_TFLOPps)};
  const auto time_at = [&](double watts) {
    topology::GpuSpec gpu = h100;
    gpu.tdp = Watts(watts);
    return seconds(CalibratedKernels(table, gpu, {}).time_of(product(4096, 4096, 4096)).duration);
  };
  const double whole = time_at(700);
  CHECK(time_at(500) / whole == Approx(std::cbrt(700.0 / 500.0)));
  CHECK(time_at(350) / whole == Approx(std::cbrt(2.0)));
  CHECK(time_at(2000) / whole == Approx(0.86).epsilon(1e-3));  // never above the short-run rate
}

TEST_CASE("what stepcast-calibrate measured is at the power limit already and stays as it is") {
  sim::GemmRow row = cube_on("H100-SXM5-80GB", 600_TFLOPps);
  row.layout = "NT";
  row.cache = "cold";
  row.quality.samples = 100;
  sim::CalibrationTable table;
  table.gemm = {row};
  const auto measured = CalibratedKernels(table, h100, {}).time_of(product(4096, 4096, 4096));
  CHECK(seconds(measured.duration) == Approx(2.0 * 4096 * 4096 * 4096 / 600e12));
  CHECK(measured.provenance == Provenance::measured);

  // A published row of the same shape beside it: half of the time rests on a short run.
  row.quality.samples = 0;
  table.gemm.push_back(row);
  const auto mixed = CalibratedKernels(table, h100, {}).time_of(product(4096, 4096, 4096));
  CHECK(mixed.duration > measured.duration);
  CHECK(seconds(mixed.duration) < seconds(measured.duration) / 0.86);
  CHECK(mixed.provenance == Provenance::interpolated);
}

TEST_CASE("attention that stepcast-calibrate measured is not slowed down either") {
  sim::AttentionRow row{.gpu = "H100-SXM5-80GB",
                        .dtype = "bf16",
                        .pass = "forward",
                        .implementation = "flash2",
                        .batch = 2,
                        .heads = 32,
                        .kv_heads = 32,
                        .sequence = 4096,
                        .head_dim = 128,
                        .mask = "causal",
                        .rate = 300_TFLOPps,
                        .source = {"", "", "high"}};
  Kernel attention;
  attention.family = KernelFamily::attention_forward;
  attention.batch = 2;
  attention.heads = 32;
  attention.sequence = 4096;
  attention.head_dim = 128;
  attention.causal = true;
  const auto time = [&](std::int64_t samples) {
    row.quality.samples = samples;
    sim::CalibrationTable table;
    table.attention = {row};
    return CalibratedKernels(table, h100, {}).time_of(attention).duration;
  };
  CHECK(seconds(time(0)) == Approx(seconds(time(100)) / 0.86));
}
