// Attention kernels of two head dimensions, windows, fewer bits, and on Blackwell.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/kernels/attention_times.hpp"
#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::AttentionRow;
using sim::AttentionShape;
using sim::AttentionTimes;
using sim::Provenance;
using workloads::AttentionKernel;
using workloads::Dtype;

namespace {

const topology::GpuSpec h200{.name = "h200-sxm-141gb",
                             .architecture = sim::architecture("hopper"),
                             .sms = 132,
                             .tensor_peak = 989_TFLOPps,
                             .memory_bandwidth = 4800_GBps};

topology::GpuSpec blackwell(const std::string& name, double half, double four) {
  topology::GpuSpec gpu{.name = name,
                        .architecture = sim::architecture("blackwell"),
                        .sms = 148,
                        .tensor_peak = FlopsPerSecond(half),
                        .fp4_peak = FlopsPerSecond(four),
                        .memory_bandwidth = 8000_GBps};
  gpu.relatives = {{"b200-sxm", 2250_TFLOPps, {}, {}, 9000_TFLOPps, {}},
                   {"b300-sxm", 2250_TFLOPps, {}, {}, 13500_TFLOPps, {}},
                   {"gb200", 2500_TFLOPps, {}, {}, 10000_TFLOPps, {}},
                   {"gb300", 2500_TFLOPps, {}, {}, 15000_TFLOPps, {}}};
  return gpu;
}

AttentionRow row(const std::string& pass, double tflops, const std::string& gpu = "H200-SXM-141GB",
                 const std::string& implementation = "cudnn") {
  return {.gpu = gpu,
          .dtype = "bf16",
          .pass = pass,
          .implementation = implementation,
          .batch = 2,
          .heads = 64,
          .kv_heads = 8,
          .sequence = 8192,
          .head_dim = 128,
          .mask = "causal",
          .rate = FlopsPerSecond(tflops * 1e12),
          .source = {"a test", "here", "high"}};
}

const AttentionShape plain{.batch = 2, .heads = 64, .sequence = 8192, .head_dim = 128};

double tflops(const AttentionTimes& times, const AttentionShape& s,
              AttentionKernel kernel = AttentionKernel::cudnn) {
  const auto time = times.time_of(s, kernel);
  REQUIRE(time);
  return s.flops() / seconds(time->duration - 3_us) / 1e12;  // less the shortest kernel
}

}  // namespace

TEST_CASE("scores count 2 (d + dv) FLOP forward, 6 d + 4 dv backward, inside the window alone") {
  AttentionShape shape = plain;
  const double heads = 2 * 64, square = 8192.0 * 8192;
  shape.value_dim = 128;
  CHECK(shape.flops() == plain.flops());
  shape.head_dim = 192;
  CHECK(shape.flops() == Approx(heads * square / 2 * 2 * (192 + 128)));
  shape.backward = true;
  CHECK(shape.flops() == Approx(heads * square / 2 * (6 * 192 + 4 * 128)));
  AttentionShape window = plain;
  window.window = 1024;
  CHECK(window.flops() == Approx(heads * (8192.0 * 1024 - 1024.0 * 1024 / 2) * 4 * 128));
  window.window = 8192;  // all of it
  CHECK(window.flops() == plain.flops());
}

TEST_CASE("rows of other forms leave plain 16-bit attention as it is") {
  AttentionRow two = row("forward", 643), window = two, eight = two;
  two.head_dim = 192, two.value_dim = 128;
  window.window = 1024, window.rate = 358_TFLOPps;
  eight.dtype = "fp8", eight.rate = 964_TFLOPps;
  const AttentionTimes times({row("forward", 600), two, window, eight}, h200);
  CHECK(tflops(times, plain) == Approx(600));
  AttentionShape asked = plain;
  asked.head_dim = 192, asked.value_dim = 128;
  CHECK(tflops(times, asked) == Approx(643));
  asked = plain;
  asked.window = 1024;
  CHECK(tflops(times, asked) == Approx(358));
  asked = plain;
  asked.dtype = Dtype::fp8;
  CHECK(tflops(times, asked) == Approx(964));
  asked.dtype = Dtype::fp16;
  CHECK(tflops(times, asked) == Approx(600));
}

TEST_CASE("where nobody has measured a form a plainer one stands in, and is called derived") {
  const AttentionTimes times({row("forward", 600), row("backward", 500)}, h200);
  AttentionShape asked = plain;
  asked.head_dim = 192, asked.value_dim = 128;
  CHECK(tflops(times, asked) == Approx(600));
  CHECK(times.time_of(asked, AttentionKernel::cudnn)->provenance >= Provenance::extrapolated);
  asked = plain;
  asked.window = 512;  // as long as what its blocks waste: half the rate
  CHECK(tflops(times, asked) == Approx(300).epsilon(0.01));  // and the launch
  asked.window = 0;
  asked.dtype = Dtype::fp8;
  const double forward = tflops(times, asked);
  CHECK(forward > 600);
  CHECK(forward < 2 * 600);
  asked.backward = true;
  CHECK(tflops(times, asked) == Approx(500));
}

TEST_CASE("a smaller window never takes longer") {
  const AttentionTimes times({row("forward", 600)}, h200);
  Duration last{};
  for (std::int64_t window = 64; window <= 16384; window *= 2) {
    AttentionShape asked = plain;
    asked.window = window;
    const Duration now = times.time_of(asked, AttentionKernel::cudnn)->duration;
    CHECK(now >= last);
    last = now;
  }
}

TEST_CASE("deterministic backward passes answer for no kernel that a software takes") {
  const AttentionTimes times({row("forward", 600), row("backward", 500),
                              row("backward", 300, "H200-SXM-141GB", "cudnn_deterministic")},
                             h200);
  AttentionShape backward = plain;
  backward.backward = true;
  CHECK(tflops(times, backward) == Approx(500));
}

TEST_CASE("a B200 attends as a GB200 does, a B300 as a GB300") {
  const std::vector<AttentionRow> rows{row("forward", 1500, "GB200"),
                                       row("forward", 1800, "GB300")};
  CHECK(tflops(AttentionTimes(rows, blackwell("gb200", 2.5e15, 1e16)), plain) == Approx(1500));
  CHECK(tflops(AttentionTimes(rows, blackwell("b200-sxm", 2.25e15, 9e15)), plain) ==
        Approx(1500 * 0.9));
  CHECK(tflops(AttentionTimes(rows, blackwell("b300-sxm", 2.25e15, 1.35e16)), plain) ==
        Approx(1800 * 0.9));
}

TEST_CASE("on Blackwell FlashAttention-2 stays near its rate on Hopper, and 4 near cuDNN's") {
  const std::vector<AttentionRow> rows{row("forward", 1500, "GB200"),
                                       row("backward", 1300, "GB200"),
                                       row("forward", 330, "H200-SXM-141GB", "flash2"),
                                       row("backward", 300, "H200-SXM-141GB", "flash2")};
  const AttentionTimes times(rows, blackwell("gb200", 2.5e15, 1e16));
  const double second = tflops(times, plain, AttentionKernel::flash2);
  const double fourth = tflops(times, plain, AttentionKernel::flash4);
  CHECK(second == Approx(330.0 * 148 / 132));
  CHECK(fourth > 0.85 * 1500);
  CHECK(fourth < 1500);
  CHECK(times.time_of(plain, AttentionKernel::flash2)->provenance == Provenance::derived);
}
