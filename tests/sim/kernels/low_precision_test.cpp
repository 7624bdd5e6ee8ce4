// Products and casts of eight and four bits: which units multiply them, what few rows tell of a
// type, and what a step holds of a rate at the power limit.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "sim/kernels/calibrated_kernels.hpp"
#include "sim/kernels/gemm_times.hpp"
#include "sim/kernels/operand_types.hpp"
#include "sim/kernels/sustained.hpp"
#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::GemmRow;
using sim::GemmTimes;
using sim::Provenance;
using workloads::Dtype;

namespace {

const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .architecture = sim::architecture("hopper"),
                             .sms = 132,
                             .tensor_peak = FlopsPerSecond(989.4e12),
                             .fp8_peak = FlopsPerSecond(1978.9e12),
                             .memory_bandwidth = 3350_GBps,
                             .tdp = Watts(700)};
const topology::GpuSpec b200{.name = "b200-sxm",
                             .architecture = sim::architecture("blackwell"),
                             .sms = 148,
                             .tensor_peak = 2250_TFLOPps,
                             .fp8_peak = 4500_TFLOPps,
                             .fp4_peak = 9000_TFLOPps,
                             .memory_bandwidth = 8000_GBps,
                             .tdp = Watts(1000)};

GemmRow row(const std::string& gpu, const std::string& dtype, std::int64_t size, double tflops) {
  return {.gpu = gpu,
          .dtype = dtype,
          .m = size,
          .n = size,
          .k = size,
          .layout = "",
          .data = "random",
          .rate = FlopsPerSecond(tflops * 1e12),
          .source = {"a test", "here", "high"}};
}

double tflops(const GemmTimes& times, std::int64_t size, Dtype dtype) {
  const sim::GemmShape shape{size, size, size, 1};
  return shape.flops() / seconds(times.time_of(shape, dtype)->duration) / 1e12;
}

}  // namespace

TEST_CASE("sources name a type with its scales, which make one type or another") {
  CHECK(sim::operand_type("fp16(fp32 acc)") == Dtype::bf16);
  CHECK(sim::operand_type("fp8(rowwise)") == Dtype::fp8);
  CHECK(sim::operand_type("fp8(1x128,128x128)") == Dtype::fp8_block);
  CHECK(sim::operand_type("nvfp4") == Dtype::nvfp4);
  CHECK_FALSE(sim::operand_type("int8"));
}

TEST_CASE("microscaled types have no peak before Blackwell, and blocks none on it") {
  CHECK(sim::peak_of(h100, Dtype::mxfp8).value == 0);
  CHECK(sim::peak_of(h100, Dtype::nvfp4).value == 0);
  CHECK(sim::peak_of(h100, Dtype::fp8_block) == h100.fp8_peak);
  CHECK(sim::peak_of(b200, Dtype::nvfp4) == b200.fp4_peak);
  CHECK(sim::multiplied_as(Dtype::fp8_block, b200.architecture) == Dtype::mxfp8);
  CHECK(sim::multiplied_as(Dtype::fp8_block, h100.architecture) == Dtype::fp8_block);
  const sim::GemmShape shape{4096, 4096, 4096, 1};
  CHECK_FALSE(GemmTimes({}, h100).time_of(shape, Dtype::mxfp8));
  CHECK(GemmTimes({}, b200).time_of(shape, Dtype::fp8_block)->duration ==
        GemmTimes({}, b200).time_of(shape, Dtype::mxfp8)->duration);
}

TEST_CASE("a measured product of few bits is told as measured, and another type's row is not") {
  const GemmTimes times({row("B200", "mxfp8", 8192, 2700), row("B200", "fp8(rowwise)", 8192, 2900),
                         row("B200", "nvfp4", 8192, 5000), row("B200", "bf16", 8192, 1500)},
                        b200);
  CHECK(tflops(times, 8192, Dtype::mxfp8) == Approx(2700));
  CHECK(tflops(times, 8192, Dtype::fp8) == Approx(2900));
  CHECK(tflops(times, 8192, Dtype::nvfp4) == Approx(5000));
  CHECK(tflops(times, 8192, Dtype::bf16) == Approx(1500));
}

TEST_CASE("where few have measured a type, its shapes differ as in 16 bits at the few's level") {
  // 16 bits: 700 at 8192 and 350 at 2048; fp8 1.5 times the first. So 1.5 times the second as well.
  const GemmTimes times(
      {row("H100-SXM5-80GB", "bf16", 8192, 700), row("H100-SXM5-80GB", "bf16", 2048, 350),
       row("H100-SXM5-80GB", "fp8", 8192, 1050)},
      h100);
  const sim::GemmShape far{2048, 2048, 2048, 1};
  const double half = seconds(times.time_of(far, Dtype::bf16)->duration);
  const double eight = seconds(times.time_of(far, Dtype::fp8)->duration);
  CHECK(half / eight > 1.2);
  CHECK(half / eight < 1.6);
  CHECK(times.time_of(far, Dtype::fp8)->provenance == Provenance::extrapolated);
}

TEST_CASE("a sibling's rows of few bits scale as those of 16 do, whatever their own peaks") {
  topology::GpuSpec gpu = b200;
  gpu.relatives = {{"b300-sxm", 2250_TFLOPps, {}, 4500_TFLOPps, 13500_TFLOPps, Watts(1100)},
                   {"b200-sxm", 2250_TFLOPps, {}, 4500_TFLOPps, 9000_TFLOPps, Watts(1000)}};
  const GemmTimes times({row("B300-SXM", "nvfp4", 8192, 5000)}, gpu);
  CHECK(tflops(times, 8192, Dtype::nvfp4) == Approx(5000).epsilon(0.01));
}

TEST_CASE("rows held by a power limit are told as short runs, and in a step as they were") {
  GemmRow held = row("B200", "bf16", 16384, 1100), fast = row("B200", "bf16", 8192, 1430);
  held.limit = fast.limit = "power";
  const GemmTimes times({held, fast}, b200);
  CHECK(tflops(times, 16384, Dtype::bf16) == Approx(1430));
  CHECK(tflops(times, 8192, Dtype::bf16) == Approx(1430));  // that machine's other state
  sim::CalibrationTable table;
  table.gemm = {held, fast};
  workloads::Kernel kernel;
  kernel.family = workloads::KernelFamily::gemm;
  kernel.m = kernel.n = kernel.k = 16384;
  const auto time = sim::CalibratedKernels(table, b200, {}).time_of(kernel);
  CHECK(2.0 * std::pow(16384.0, 3) / seconds(time.duration) / 1e12 == Approx(1100));
}

TEST_CASE(
    "rows timed after thousands of runs are in a step what they are, elsewhere as watts tell") {
  topology::GpuSpec rack = b200;
  rack.name = "gb200", rack.sms = 152, rack.tdp = Watts(1200);
  rack.tensor_peak = 2500_TFLOPps, rack.fp8_peak = 5000_TFLOPps;
  GemmRow held = row("GB200", "fp8(tensorwise)", 8192, 2877);
  held.limit = "sustained";
  sim::CalibrationTable table;
  table.gemm = {held};
  workloads::Kernel kernel;
  kernel.family = workloads::KernelFamily::gemm;
  kernel.dtype = Dtype::fp8;
  kernel.m = kernel.n = kernel.k = 8192;
  const auto rate = [&](topology::GpuSpec gpu) {
    gpu.relatives = {{"gb200", 2500_TFLOPps, {}, 5000_TFLOPps, {}, Watts(1200), 152},
                     {"b200-sxm", 2250_TFLOPps, {}, 4500_TFLOPps, {}, Watts(1000), 148}};
    const auto time = sim::CalibratedKernels(table, gpu, {}).time_of(kernel);
    return 2.0 * std::pow(8192.0, 3) / seconds(time.duration) / 1e12;
  };
  CHECK(rate(rack) == Approx(2877).epsilon(1e-6));
  const double watts = (1000.0 / 148) / (1200.0 / 152);  // of an SM, and so many fewer SMs
  CHECK(rate(b200) == Approx(2877.0 * 148 / 152 * std::pow(watts, 0.70)).epsilon(2e-3));
}

TEST_CASE("mxfp8 has the shapes of fp8, at its own level") {
  std::vector<GemmRow> rows{row("B200", "mxfp8", 4096, 2000)};
  for (const std::int64_t size : {512, 1024, 2048, 4096, 8192, 16384})
    for (int i = 0; i < 3; ++i) rows.push_back(row("B200", "fp8", size, size < 2048 ? 500 : 2500));
  const GemmTimes times(rows, b200);
  CHECK(tflops(times, 4096, Dtype::mxfp8) == Approx(2000));
  for (const std::int64_t size : {1024, 8192})
    CHECK(tflops(times, size, Dtype::mxfp8) / tflops(times, size, Dtype::fp8) ==
          Approx(0.8).epsilon(0.03));
}

TEST_CASE("Blackwell holds what the watts of an SM leave, whatever peak a sheet states") {
  // 2.0 times an H100 at 750 W, 2.8 times on a GB200 at 1,200 W.
  topology::GpuSpec capped = b200, rack = b200;
  capped.tdp = Watts(750);
  rack.name = "gb200";
  rack.sms = 152;
  rack.tensor_peak = 2500_TFLOPps;
  rack.tdp = Watts(1200);
  const double ratio = 2500.0 / 2250 * sim::sustained_share(rack) / sim::sustained_share(capped);
  CHECK(ratio == Approx(2.8 / 2.0).epsilon(0.02));
  double last = 0;
  for (const double watts : {400., 750., 1000., 1200., 1400., 2000., 4000.}) {
    capped.tdp = Watts(watts);
    const double share = sim::sustained_share(capped);
    CHECK(share >= last);
    CHECK(share <= 1.0);
    last = share;
  }
  topology::GpuSpec faster = b200;  // a what-if: twice the peak of the same watts is twice as fast
  faster.tensor_peak = 4500_TFLOPps;
  CHECK(sim::sustained_share(faster) * 2 > 1.8 * sim::sustained_share(b200));
}

TEST_CASE("bytes of few bits are counted as they are: operands in their type, results in 16 bits") {
  workloads::Kernel kernel;
  kernel.family = workloads::KernelFamily::gemm;
  kernel.dtype = Dtype::nvfp4;
  kernel.m = 8;  // so few rows that reading the weights takes the time
  kernel.n = kernel.k = 16384;
  const auto time = sim::CalibratedKernels({}, b200, {}).time_of(kernel);
  const double bytes = (8.0 * 16384 + 16384.0 * 16384) / 2 + 8.0 * 16384 * 2;
  CHECK(time.memory_fraction ==
        Approx(bytes / seconds(time.duration) / b200.memory_bandwidth.value).epsilon(1e-3));
}
