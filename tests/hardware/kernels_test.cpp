#include <catch2/catch.hpp>
#include <string>

#include "tests/hardware/gpu.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using hardware::prepared;

namespace {

/// It agrees with float64 on two draws of inputs, and takes time.
void check(const Task& task) {
  const auto kernel = prepared(task);
  if (!kernel) return;
  INFO(to_text(task));
  for (int draw = 0; draw < 2; ++draw) {
    const double error = kernel->relative_error();
    CHECK(error <= kernel->tolerance());
  }
  CHECK(kernel->run(10, Cache::cold).total > Duration(0));
  CHECK(kernel->run(10, Cache::hot).total > Duration(0));
}

}  // namespace

TEST_CASE("products in every layout and dtype agree with float64") {
  for (const char* dtype : {"bf16", "fp16", "tf32", "fp32", "fp8"})
    for (const char* layout : {"NT", "NN", "TN"})
      for (const bool accumulate : {false, true})
        check(GemmTask{.dtype = dtype,
                       .m = 272,
                       .n = 528,
                       .k = 1040,
                       .layout = layout,
                       .accumulate = accumulate});
}

TEST_CASE("the best of eight proposals is no slower than the first") {
  GemmTask task{.dtype = "fp16", .m = 4096, .n = 1024, .k = 4096};
  const auto first = prepared(task);
  task.best_of_8 = true;
  const auto best = prepared(task);
  REQUIRE(first);
  REQUIRE(best);
  CHECK(best->relative_error() <= best->tolerance());
  // 5 %: clocks move between the two.
  CHECK(seconds(best->run(100, Cache::cold).total) <=
        1.05 * seconds(first->run(100, Cache::cold).total));
}

TEST_CASE("attention agrees with float64, forward and backward") {
  for (const char* dtype : {"bf16", "fp16"})
    for (const std::int64_t head_dim : {64, 128})
      for (const bool causal : {false, true})
        for (const bool backward : {false, true})
          for (const std::int64_t kv_heads : {1, 8})
            check(AttentionTask{.dtype = dtype,
                                .backward = backward,
                                .batch = 2,
                                .heads = 8,
                                .kv_heads = kv_heads,
                                .sequence = 512,
                                .head_dim = head_dim,
                                .causal = causal});
}

TEST_CASE("memory-bound kernels agree with float64, forward and backward") {
  for (const char* dtype : {"bf16", "fp32"}) {
    for (const char* kind :
         {"rmsnorm", "layernorm", "rope", "silu_mul", "gelu", "embedding", "cross_entropy"})
      for (const bool backward : {false, true})
        check(ElementwiseTask{
            .kind = kind, .dtype = dtype, .tokens = 1000, .width = 4096, .backward = backward});
    for (const char* kind : {"residual_add", "cast", "copy_in", "copy_out"})
      check(ElementwiseTask{.kind = kind, .dtype = dtype, .tokens = 1, .width = 1'000'000});
  }
  for (const char* kind : {"adamw", "grad_norm"})
    check(ElementwiseTask{.kind = kind, .dtype = "fp32", .tokens = 1, .width = 1'000'000});
}

TEST_CASE("copies arrive whole") {
  for (const char* kind : {"memory", "host_to_device", "device_to_host"})
    check(CopyTask{kind, 16_MiB});
}
