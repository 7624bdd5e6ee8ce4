#include "calibrate/report/gpu_report.hpp"
#include "tests/session.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;
using namespace stepcast::calibrate;
using Catch::Contains;

namespace {

sim::GemmRow product(const std::string& gpu, std::int64_t size, double tflops,
                     const std::string& choice) {
  sim::GemmRow row;
  row.gpu = gpu;
  row.dtype = "bf16";
  row.m = row.n = row.k = size;
  row.layout = "NT";
  row.rate = FlopsPerSecond(tflops * 1e12);
  row.choice = choice;
  row.cache = "cold";
  return row;
}

sim::AttentionRow attention(const std::string& implementation, const std::string& pass,
                            double tflops) {
  sim::AttentionRow row;
  row.gpu = "H100-SXM5-80GB";
  row.dtype = "bf16";
  row.pass = pass;
  row.implementation = implementation;
  row.sequence = 4096;
  row.head_dim = 128;
  row.mask = "causal";
  row.rate = FlopsPerSecond(tflops * 1e12);
  return row;
}

}  // namespace

TEST_CASE("a measured product is set against the published one of its shape and GPU") {
  sim::CalibrationTable measured, published;
  measured.gemm = {product("H100-SXM5-80GB", 4096, 600, "heuristic"),
                   product("H100-SXM5-80GB", 4096, 660, "best_of_8"),
                   product("H100-SXM5-80GB", 8192, 718.2, "heuristic")};
  published.gemm = {product("H100-SXM5-80GB", 4096, 800, ""),
                    product("H100-SXM5-80GB", 4096, 900, "best_of_shapes"),
                    product("A100-SXM4-80GB", 4096, 250, "")};
  const std::string text = gpu_report(measured, published, session());
  CHECK_THAT(text, Contains("measured over published: 1 rows, median 0.75"));
  CHECK_THAT(text, Contains("best of eight over the first proposal: 1 rows, median 1.1"));
  CHECK_THAT(text, Contains("718 TFLOP/s, 0.900 of 798"));
}

TEST_CASE("forward and backward together take the time of both") {
  // F at 350 and 2.5 F at 250 TFLOP/s: 3.5 F in F / 350 + 2.5 F / 250, so 272 TFLOP/s.
  sim::CalibrationTable measured, published;
  measured.attention = {attention("own_flash", "forward", 350),
                        attention("own_flash", "backward", 250)};
  published.attention = {attention("flash2", "forward_backward", 294),
                         attention("flash3", "forward_backward", 500)};
  CHECK_THAT(gpu_report(measured, published, session()),
             Contains("272") && Contains("0.93 of 294"));
}

TEST_CASE("memory-bound kernels are set against the fastest copy, by their largest size") {
  sim::CalibrationTable measured;
  sim::CopyRow copy;
  copy.kind = "memory";
  copy.rate = BytesPerSecond(3e12);
  measured.copies = {copy};
  sim::ElementwiseRow row;
  row.kind = "rmsnorm";
  row.pass = "forward";
  row.bytes = Bytes(27'000'000);
  row.duration = 10_us;  // 2.7 TB/s
  measured.elementwise = {row};
  row.bytes = Bytes(1'000'000);
  measured.elementwise.push_back(row);
  CHECK_THAT(gpu_report(measured, {}, session()), Contains("2700 GB/s") && Contains("90.0 %"));
}

TEST_CASE("an empty table has an empty report, not a division by zero") {
  CHECK_THAT(gpu_report({}, {}, session()), Contains("no published row"));
}

TEST_CASE("a launch stands beside what the catalogue's software pays for one") {
  sim::CalibrationTable measured;
  measured.launches = {{"H100-SXM5-80GB", "kernel", Duration(2'500'000), {}, {}}};
  CHECK_THAT(
      gpu_report(measured, {}, session()),
      Contains("launch of a kernel: 2.5 us; the host's work for it") && Contains("pytorch-fsdp2 "));
}

TEST_CASE("a measured overlap stands beside the simulator's stretch") {
  // 2,048 tiles on 132 SMs are 16 waves. Eight H100 reduce over NVLink with 16 or 24 blocks: on the
  // SMs that are left they are 18 or 19.
  sim::OverlapRow row;
  row.gpu = "H100-SXM5-80GB";
  row.kernel = "gemm bf16 8192x8192x8192 NT";
  row.collective = "allreduce";
  row.ranks = 8;
  row.nodes = 1;
  row.bytes = Bytes(64 << 20);
  row.kernel_alone = Duration(1'400'000'000);
  row.kernel_beside = Duration(1'600'000'000);
  row.collective_alone = row.collective_beside = Duration(300'000'000);
  sim::CalibrationTable measured;
  measured.overlaps = {row};
  const std::string text = gpu_report(measured, {}, session());
  CHECK_THAT(text, Contains("1.143 times as long") &&
                       (Contains("stretch: 1.125)") || Contains("stretch: 1.188)")));
  measured.overlaps[0].gpu = "Unheard-Of";
  CHECK(gpu_report(measured, {}, session()).find("stretch") == std::string::npos);
}
