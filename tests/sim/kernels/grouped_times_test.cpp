#include "sim/kernels/grouped_times.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "sim/kernels/calibrated_kernels.hpp"
#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::GemmRow;
using sim::GemmTimes;
using sim::GroupedCall;
using sim::GroupedTimes;
using sim::Provenance;
using workloads::Dtype;

namespace {

const topology::GpuSpec b200{.name = "b200-sxm",
                             .architecture = sim::architecture("blackwell"),
                             .sms = 148,
                             .tensor_peak = 2250_TFLOPps,
                             .fp8_peak = 4500_TFLOPps,
                             .memory_bandwidth = 8000_GBps,
                             .tdp = Watts(1000)};

double seconds_of(const GroupedCall& call, Dtype dtype = Dtype::bf16,
                  const std::vector<GemmRow>& rows = {}) {
  const GemmTimes gemms(rows, b200);
  return seconds(GroupedTimes(rows, b200, gemms).time_of(call, dtype, gemms)->duration);
}

GemmRow row(const GroupedCall& call, double tflops, const std::string& dtype = "bf16") {
  GemmRow out{.gpu = "B200",
              .dtype = dtype,
              .m = call.each.m,
              .n = call.each.n,
              .k = call.each.k,
              .layout = "",
              .data = "",
              .rate = FlopsPerSecond(tflops * 1e12),
              .source = {"a test", "here", "high"}};
  out.accumulate = call.accumulate;
  out.groups = call.each.batch;
  out.call = call.one_launch ? "one_launch" : "loop";
  return out;
}

/// Of 8 experts, 2048 wide and 7168 deep, with so many rows each.
workloads::Kernel experts(std::int64_t rows, bool accumulate = false) {
  workloads::Kernel kernel;
  kernel.family = workloads::KernelFamily::grouped_gemm;
  kernel.batch = 8;
  kernel.one_launch = true;
  kernel.accumulate = accumulate;
  kernel.m = accumulate ? 2048 : rows;
  kernel.n = accumulate ? 7168 : 2048;
  kernel.k = accumulate ? rows : 7168;
  return kernel;
}

bool bound_by_bytes(const workloads::Kernel& kernel) {
  return sim::CalibratedKernels({}, b200, {}).time_of(kernel).memory_fraction > 0.8;
}

}  // namespace

TEST_CASE("one expert's product is a product, however it is called") {
  const sim::GemmShape shape{4096, 4096, 4096, 1};
  const double alone = seconds(GemmTimes({}, b200).time_of(shape, Dtype::bf16)->duration);
  CHECK(seconds_of({shape, false, false}) == Approx(alone));
  CHECK(seconds_of({shape, false, true}) == Approx(alone));
}

TEST_CASE("in one launch the tiles of all experts fill the waves, in a loop those of two") {
  // 128 x 1536 outputs: 6 tiles of 128 x 256 each, so 148 SMs hold those of 24 experts.
  const sim::GemmShape small{128, 1536, 2048, 24};
  const double together = seconds_of({small, false, true});
  const double loop = seconds_of({small, false, false});
  CHECK(loop > 2 * together);
  // Large products fill the GPU anyway: as one wave's end is little, both take the same.
  const sim::GemmShape large{16384, 4096, 4096, 24};
  CHECK(seconds_of({large, false, false}) ==
        Approx(seconds_of({large, false, true})).epsilon(0.02));
}

TEST_CASE("a loop takes a round for every two products") {
  const sim::GemmShape four{512, 2048, 2048, 4}, forty{512, 2048, 2048, 40};
  CHECK(seconds_of({forty, false, false}) == Approx(10 * seconds_of({four, false, false})));
}

TEST_CASE("more rows or more experts never take less time") {
  for (const bool one_launch : {false, true})
    for (std::int64_t experts = 1; experts <= 128; experts *= 2)
      for (std::int64_t rows = 16; rows <= 32768; rows *= 2) {
        const double now = seconds_of({{rows, 2048, 7168, experts}, false, one_launch});
        CHECK(now <= seconds_of({{2 * rows, 2048, 7168, experts}, false, one_launch}) * (1 + 1e-9));
        CHECK(now <= seconds_of({{rows, 2048, 7168, 2 * experts}, false, one_launch}) * (1 + 1e-9));
      }
}

TEST_CASE("few rows are bound by reading weights, weight gradients by their fp32 sums") {
  // 2 n k bytes at 0.85 x 8 TB/s against 2 r n k FLOP: r = 0.5 x 2250 / 8 and more; the sums are
  // read and written, 8 bytes for 2 r FLOP, which takes four times the rows.
  CHECK(bound_by_bytes(experts(64)));
  CHECK_FALSE(bound_by_bytes(experts(1024)));
  CHECK(bound_by_bytes(experts(256, true)));
  CHECK_FALSE(bound_by_bytes(experts(8192, true)));
}

TEST_CASE("a measured call is told as it was measured, and lends its level to others") {
  const GroupedCall call{{4096, 2048, 7168, 8}, false, true};
  const GemmTimes gemms({}, b200);
  const GroupedTimes times({row(call, 1234, "mxfp8")}, b200, gemms);
  const auto time = times.time_of(call, Dtype::mxfp8, gemms);
  CHECK(time->provenance == Provenance::measured);
  CHECK(call.each.flops() / seconds(time->duration) == Approx(1234e12));
  GroupedCall near = call;
  near.each.m = 8192;
  const auto other = times.time_of(near, Dtype::mxfp8, gemms);
  CHECK(other->provenance == Provenance::interpolated);
  CHECK(near.each.flops() / seconds(other->duration) == Approx(1234e12).epsilon(0.1));
}

TEST_CASE("calls in a loop say nothing of one launch") {
  const GroupedCall loop{{4096, 2048, 7168, 8}, false, false}, launch{loop.each, false, true};
  const std::vector<GemmRow> rows{row(loop, 300)};
  CHECK(seconds_of(loop, Dtype::bf16, rows) == Approx(loop.each.flops() / 300e12));
  CHECK(seconds_of(launch, Dtype::bf16, rows) == Approx(seconds_of(launch)));
}
