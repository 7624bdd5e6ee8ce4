// Throughput that others have published of layers and grouped products, as a step would get it.
#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "sim/files/csv.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/import/published_csv.hpp"
#include "sim/kernels/calibrated_kernels.hpp"
#include "sim/scenario/catalogue.hpp"

using namespace stepcast;
using workloads::Dtype;
using workloads::Kernel;
using workloads::KernelFamily;

namespace {

sim::CalibratedKernels kernels_of(const std::string& gpu) {
  static const sim::Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  static const sim::CalibrationTable table = sim::import_published_csv(
      sim::read_csv(STEPCAST_SOURCE_DIR "/calibrate/published/products.csv"));
  return {table, catalogue.gpu(sim::toml_text(gpu, "a test")), {}};
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype) {
  Kernel kernel;
  kernel.family = KernelFamily::gemm;
  kernel.dtype = dtype;
  kernel.m = m, kernel.n = n, kernel.k = k;
  return kernel;
}

/// Transformer Engine's layer (docs/examples/gemm_profiling): 15,872 tokens, hidden 4096, 16,384
/// inside: twelve products, and casts of inputs, weights and gradients, `bytes` an element.
double layer_seconds(const sim::CalibratedKernels& kernels, Dtype dtype, double bytes) {
  constexpr std::int64_t tokens = 15872;
  constexpr std::pair<std::int64_t, std::int64_t> sizes[] = {
      {12288, 4096}, {4096, 4096}, {16384, 4096}, {4096, 16384}};
  double sum = 0;
  for (const auto& [n, k] : sizes) {
    for (const Kernel& kernel :
         {product(tokens, n, k, dtype), product(tokens, k, n, dtype), product(n, k, tokens, dtype)})
      sum += seconds(kernels.time_of(kernel).duration);
    if (bytes == 0) continue;
    for (const std::int64_t elements : {tokens * k, n * k, tokens * n}) {
      Kernel cast;
      cast.family = KernelFamily::quantize;
      cast.dtype = dtype;
      cast.bytes = Bytes(static_cast<std::int64_t>(static_cast<double>(elements) * bytes));
      sum += seconds(kernels.time_of(cast).duration);
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a layer in eight bits is faster than in 16, but never twice with its casts") {
  const auto kernels = kernels_of("b300-sxm");
  const double half = layer_seconds(kernels, Dtype::bf16, 0);
  const auto gain = [&](Dtype dtype, double bytes) {
    return half / layer_seconds(kernels, dtype, bytes);
  };
  // Products alone: 1.92, 1.83, 3.48. The tutorial makes each pass cast all that it reads, a step
  // what is new: its 1.40, 1.42 and 1.98 are lower bounds.
  CHECK(gain(Dtype::fp8, 0) == Approx(1.92).epsilon(0.1));
  CHECK(gain(Dtype::mxfp8, 0) == Approx(1.83).epsilon(0.1));
  CHECK(gain(Dtype::nvfp4, 0) == Approx(3.48).epsilon(0.1));
  CHECK(gain(Dtype::fp8, 5) > 1.40);
  CHECK(gain(Dtype::fp8, 5) < 1.92);
  CHECK(gain(Dtype::mxfp8, 4.06) > 1.42);
  CHECK(gain(Dtype::mxfp8, 4.06) < 1.83);
  CHECK(gain(Dtype::nvfp4, 5.1) > 1.98);
  CHECK(gain(Dtype::nvfp4, 5.1) < 3.48);
}

TEST_CASE("torchao's grouped products on a B200 take within 20 % of what was published") {
  const auto kernels = kernels_of("b200-sxm");
  const auto forward_and_backward = [&](std::int64_t experts, std::int64_t n, std::int64_t k) {
    const std::int64_t rows = 128000 / experts;
    double sum = 0;
    for (Kernel kernel : {product(rows, n, k, Dtype::bf16), product(rows, k, n, Dtype::bf16),
                          product(n, k, rows, Dtype::bf16)}) {
      kernel.family = KernelFamily::grouped_gemm;
      kernel.batch = experts;
      kernel.one_launch = true;
      sum += seconds(kernels.time_of(kernel).duration);
    }
    return 1e3 * sum;
  };
  const double wide[] = {43.1, 39.5, 39.2, 37.7}, narrow[] = {13.1, 14.9, 15.8, 15.0};
  for (int i = 0; i < 4; ++i) {
    CHECK(forward_and_backward(std::int64_t{1} << i, 8192, 5120) == Approx(wide[i]).epsilon(0.2));
    CHECK(forward_and_backward(std::int64_t{1} << i, 2048, 7168) == Approx(narrow[i]).epsilon(0.2));
  }
}
