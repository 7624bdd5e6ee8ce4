#include "sim/kernels/attention_times.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::AttentionRow;
using sim::AttentionShape;
using sim::AttentionTimes;
using sim::Provenance;
using workloads::AttentionKernel;

namespace {

const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .architecture = sim::architecture("hopper"),
                             .sms = 132,
                             .tensor_peak = 989_TFLOPps,
                             .memory_bandwidth = 3350_GBps};

AttentionRow row(const std::string& pass, std::int64_t sequence, double tflops,
                 const std::string& implementation = "flash2", const std::string& mask = "causal",
                 const std::string& gpu = "H100-SXM5-80GB") {
  return {.gpu = gpu,
          .dtype = "fp16",
          .pass = pass,
          .implementation = implementation,
          .batch = 16384 / sequence,
          .heads = 16,
          .kv_heads = 16,
          .sequence = sequence,
          .head_dim = 128,
          .mask = mask,
          .rate = FlopsPerSecond(tflops * 1e12),
          .source = {"a test", "here", "high"}};
}

AttentionShape shape(std::int64_t sequence, bool backward = false, bool causal = true) {
  return {.batch = 2,
          .heads = 32,
          .sequence = sequence,
          .head_dim = 128,
          .causal = causal,
          .backward = backward};
}

double tflops(const AttentionTimes& times, const AttentionShape& s,
              AttentionKernel kernel = AttentionKernel::flash2) {
  const auto time = times.time_of(s, kernel);
  REQUIRE(time);
  return s.flops() / seconds(time->duration - 3_us) / 1e12;  // less the shortest kernel
}

}  // namespace

TEST_CASE("attention counts 4 b h s^2 d FLOP, half of it causal, 2.5 times backward") {
  CHECK(shape(1024, false, false).flops() == 4.0 * 2 * 32 * 1024 * 1024 * 128);
  CHECK(shape(1024, true, true).flops() == 0.5 * 2.5 * shape(1024, false, false).flops());
  CHECK(shape(1000).blocks() == 2 * 32 * 8);
}

TEST_CASE("between two lengths the rate lies on a straight line in log-log space") {
  const AttentionTimes times({row("forward", 1024, 200), row("forward", 4096, 400)}, h100);
  CHECK(tflops(times, shape(1024)) == Approx(200).epsilon(1e-3));
  CHECK(tflops(times, shape(2048)) == Approx(282.84).epsilon(1e-3));
  CHECK(tflops(times, shape(16384)) == Approx(400).epsilon(1e-3));  // beyond: the last rate
  CHECK(tflops(times, shape(512)) == Approx(141.42).epsilon(1e-3));
  CHECK(times.time_of(shape(2048), AttentionKernel::flash2)->provenance ==
        Provenance::interpolated);
  CHECK(times.time_of(shape(16384), AttentionKernel::flash2)->provenance ==
        Provenance::extrapolated);
}

TEST_CASE("a combined figure less the measured forward pass leaves the backward pass") {
  const AttentionTimes times({row("forward_backward", 4096, 294), row("forward", 4096, 319)}, h100);
  // 3.5 / 294 - 1 / 319 = 2.5 / b: b = 285
  CHECK(tflops(times, shape(4096, true)) == Approx(285.0).epsilon(2e-3));
  CHECK(times.time_of(shape(4096, true), AttentionKernel::flash2)->provenance ==
        Provenance::derived);
  const double both = seconds(times.time_of(shape(4096), AttentionKernel::flash2)->duration) +
                      seconds(times.time_of(shape(4096, true), AttentionKernel::flash2)->duration);
  CHECK(3.5 * shape(4096).flops() / both / 1e12 == Approx(294).epsilon(2e-3));
}

TEST_CASE("a combined figure alone is split by the ratio measured elsewhere") {
  const AttentionTimes times(
      {row("forward_backward", 4096, 173), row("forward", 4096, 100, "flash2", "causal", "A100"),
       row("backward", 4096, 80, "flash2", "causal", "A100")},
      h100);
  const double forward = tflops(times, shape(4096));
  const double backward = tflops(times, shape(4096, true));
  CHECK(backward / forward == Approx(0.8).epsilon(1e-3));
  CHECK(3.5 / (1 / forward + 2.5 / backward) == Approx(173).epsilon(1e-3));
}

TEST_CASE("with the full mask alone the causal rate follows from FlashAttention-2's ratio") {
  const AttentionTimes times({row("forward", 4096, 60, "memory_efficient", "full"),
                              row("forward", 4096, 200, "flash2", "full", "A100"),
                              row("forward", 4096, 180, "flash2", "causal", "A100")},
                             h100);
  CHECK(tflops(times, shape(4096), AttentionKernel::memory_efficient) == Approx(54).epsilon(1e-3));
}

TEST_CASE("a kernel of another implementation stands in, but is called extrapolated") {
  const AttentionTimes times({row("forward", 4096, 300)}, h100);
  CHECK(times.time_of(shape(4096), AttentionKernel::flash3)->provenance ==
        Provenance::extrapolated);
  CHECK_FALSE(AttentionTimes({}, h100).time_of(shape(4096), AttentionKernel::flash2));
}

TEST_CASE("FlashAttention 1 has half the rate of 2 where it was not measured") {
  const std::vector<AttentionRow> rows{row("forward", 2048, 400), row("backward", 2048, 300)};
  const AttentionTimes times(rows, h100);
  const auto second = times.time_of(shape(2048), AttentionKernel::flash2);
  const auto first = times.time_of(shape(2048), AttentionKernel::flash1);
  REQUIRE((first && second));
  CHECK(seconds(first->duration) - 3e-6 ==
        Approx(2 * (seconds(second->duration) - 3e-6)).epsilon(1e-6));
  CHECK(first->provenance == Provenance::derived);
  CHECK(
      tflops(AttentionTimes({row("forward", 2048, 400), row("forward", 2048, 250, "flash1")}, h100),
             shape(2048), AttentionKernel::flash1) == Approx(250).epsilon(0.02));
}

TEST_CASE("fewer blocks than SMs leave the others idle") {
  const AttentionTimes times({row("forward", 1024, 200)}, h100);
  const AttentionShape small{.batch = 1, .heads = 1, .sequence = 1024, .head_dim = 128};
  // 8 blocks on 132 SMs
  CHECK(tflops(times, small) == Approx(200 * 8.0 / 132).epsilon(1e-3));
}
