#include "sim/kernels/elementwise_times.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "sim/kernels/calibrated_kernels.hpp"
#include "sim/kernels/kernel_names.hpp"
#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::ElementwiseRow;
using sim::ElementwiseTimes;
using sim::Provenance;
using workloads::Kernel;
using workloads::KernelFamily;

namespace {

const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .architecture = sim::architecture("hopper"),
                             .sms = 132,
                             .tensor_peak = 989_TFLOPps,
                             .memory_bandwidth = 3350_GBps};

ElementwiseRow row(const std::string& kind, Bytes bytes, Duration duration,
                   const std::string& pass = "forward") {
  ElementwiseRow out{.gpu = "H100-SXM5-80GB",
                     .dtype = "bf16",
                     .kind = kind,
                     .implementation = "own",
                     .tokens = 1,
                     .shape = {},
                     .bytes = bytes,
                     .duration = duration,
                     .source = {"s", "r", "high"}};
  out.pass = pass;
  out.cache = "cold";
  out.quality.samples = 100;
  return out;
}

Kernel kernel(const std::string& name, KernelFamily family, Bytes bytes) {
  Kernel out;
  out.name = name;
  out.family = family;
  out.bytes = bytes;
  return out;
}

const Kernel norm = kernel("layer.norm1.forward", KernelFamily::norm, 64_MiB);

}  // namespace

TEST_CASE("a kernel takes the time that was measured of its kind and bytes") {
  const ElementwiseTimes times({row("rmsnorm", 64_MiB, 40_us)}, h100);
  const auto time = times.time_of(norm);
  REQUIRE(time);
  CHECK(time->duration == 40_us);
  CHECK(time->provenance == Provenance::measured);
}

TEST_CASE("between two sizes it is interpolated, far beyond them extrapolated at the last rate") {
  const ElementwiseTimes times({row("rmsnorm", 16_MiB, 10_us), row("rmsnorm", 64_MiB, 40_us)},
                               h100);
  const auto at = [&](Bytes bytes) {
    return *times.time_of(kernel("layer.norm1.forward", KernelFamily::norm, bytes));
  };
  CHECK(seconds(at(32_MiB).duration) == Approx(20e-6));
  CHECK(at(32_MiB).provenance == Provenance::interpolated);
  CHECK(seconds(at(1_GiB).duration) == Approx(640e-6));
  CHECK(at(1_GiB).provenance == Provenance::extrapolated);
  CHECK(at(1_MiB).provenance == Provenance::extrapolated);
  CHECK(seconds(at(1_MiB).duration) > 10e-6 / 16);  // slower than in proportion: a launch costs
  CHECK(at(1_MiB).duration < 10_us);
}

TEST_CASE("more bytes never take less time") {
  const ElementwiseTimes times({row("rmsnorm", 16_MiB, 10_us), row("rmsnorm", 64_MiB, 40_us)},
                               h100);
  Duration last{};
  for (std::int64_t bytes = 1 << 10; bytes < (1LL << 32); bytes += bytes / 7 + 1) {
    const auto time =
        times.time_of(kernel("layer.norm1.forward", KernelFamily::norm, Bytes(bytes)));
    CHECK(time->duration >= last);
    last = time->duration;
  }
}

TEST_CASE("a kernel without a kind of its own takes another kind's rate, and says so") {
  const ElementwiseTimes times({row("residual_add", 64_MiB, 30_us)}, h100);
  CHECK(times.time_of(kernel("layer.mlp.residual", KernelFamily::pointwise, 64_MiB))->provenance ==
        Provenance::measured);
  CHECK(times.time_of(kernel("layer.mlp.silu", KernelFamily::pointwise, 64_MiB))->provenance ==
        Provenance::derived);
  CHECK_FALSE(times.time_of(norm));  // nothing stands for a norm
}

TEST_CASE("rows of experts take their own time where it was measured, else a copy's, and say so") {
  const Kernel there = kernel("layer.experts.permute.forward", KernelFamily::permute, 64_MiB);
  const Kernel sums = kernel("layer.experts.unpermute.forward", KernelFamily::permute, 64_MiB);
  const ElementwiseTimes times({row("permute", 64_MiB, 30_us), row("copy_in", 64_MiB, 20_us)},
                               h100);
  CHECK(times.time_of(there)->duration == 30_us);
  CHECK(times.time_of(there)->provenance == Provenance::measured);
  CHECK(times.time_of(sums)->duration == 20_us);
  CHECK(times.time_of(sums)->provenance == Provenance::derived);
}

TEST_CASE("the backward of a permutation is the forward of the other") {
  const auto kind = [](const char* name) {
    return sim::elementwise_use(kernel(name, KernelFamily::permute, 1_MiB)).kind;
  };
  CHECK(kind("layer.experts.permute.backward") == kind("layer.experts.unpermute.forward"));
  CHECK(kind("layer.experts.unpermute.backward") == kind("layer.experts.permute.forward"));
  CHECK(kind("layer.experts.permute.backward") != kind("layer.experts.permute.forward"));
}

TEST_CASE("forward and backward are measured apart; LayerNorm serves where RMSNorm is missing") {
  const ElementwiseTimes times(
      {row("layernorm", 64_MiB, 50_us), row("layernorm", 64_MiB, 90_us, "backward")}, h100);
  CHECK(times.time_of(norm)->duration == 50_us);
  CHECK(times.time_of(kernel("layer.norm1.backward", KernelFamily::norm_backward, 64_MiB))
            ->duration == 90_us);
}

TEST_CASE("rows of other GPUs, hot rows and rows that nobody sampled do not count") {
  ElementwiseRow other = row("rmsnorm", 64_MiB, 40_us), hot = other, published = other;
  other.gpu = "A100-SXM4-80GB";
  hot.cache = "hot";
  published.quality.samples = 0;
  CHECK_FALSE(ElementwiseTimes({other, hot, published}, h100).time_of(norm));
}

TEST_CASE("a step's kernel takes the measured time instead of a share of the bandwidth") {
  sim::CalibrationTable table;
  table.elementwise = {row("rmsnorm", 64_MiB, 40_us)};
  const sim::CalibratedKernels kernels(table, h100, {});
  CHECK(kernels.time_of(norm).duration == 40_us);
  CHECK(kernels.time_of(norm).provenance == Provenance::measured);
}

TEST_CASE("layouts follow from the pass that a product belongs to") {
  Kernel product = kernel("layer.mlp.down.forward", KernelFamily::gemm, {});
  CHECK(sim::gemm_layout(product) == "NT");
  product.name = "layer.mlp.down.dgrad";
  CHECK(sim::gemm_layout(product) == "NN");
  product.name = "layer.mlp.down.wgrad";
  CHECK(sim::gemm_layout(product) == "TN");
  product.batch = 32;
  CHECK(sim::gemm_layout(product).empty());
}

TEST_CASE("every kind that a kernel is given has known traffic") {
  for (const auto family :
       {KernelFamily::pointwise, KernelFamily::norm, KernelFamily::norm_backward,
        KernelFamily::rope, KernelFamily::activation, KernelFamily::reduction,
        KernelFamily::softmax, KernelFamily::embedding, KernelFamily::copy,
        KernelFamily::optimizer})
    for (const char* name : {"x", "x.backward", "x.cast", "layer.copy_out", "adamw.fused",
                             "gradients.norm", "layer.mlp.gelu"}) {
      const auto use = sim::elementwise_use(kernel(name, family, 1_MiB));
      CHECK(sim::bytes_per_element(use.kind, use.backward, workloads::Dtype::bf16) > 0);
    }
}
