#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it gives the names of CUDA.
#include <catch2/catch.hpp>

#include "tests/calibrate/attention_check.hpp"

using namespace stepcast::calibrate;
using namespace stepcast::calibrate::cuda_kernels;

namespace {

const AttentionShape llama{.type = ElementType::bf16,
                           .batch = 1,
                           .sequence = 4096,
                           .heads = 32,
                           .kv_heads = 8,
                           .head_dim = 128,
                           .causal = true,
                           .scale = 0.088F};

}  // namespace

TEST_CASE("attention names what a GPU or a shape lacks") {
  emulated::device = {};
  CHECK(!attention_obstacle(llama, Pass::backward));
  AttentionShape shape = llama;
  shape.head_dim = 96;
  CHECK(attention_obstacle(shape, Pass::forward));
  shape = llama;
  shape.kv_heads = 5;
  CHECK(attention_obstacle(shape, Pass::forward));

  emulated::device.capability_major = 7;  // a V100
  emulated::device.shared_bytes_of_block = 96 * 1024;
  CHECK(attention_obstacle(llama, Pass::forward));
  shape = llama;
  shape.type = ElementType::fp16;
  CHECK(!attention_obstacle(shape, Pass::backward));

  emulated::device.capability_major = 8;  // an RTX 3090: forward alone
  emulated::device.shared_bytes_of_block = 99 * 1024;
  CHECK(!attention_obstacle(llama, Pass::forward));
  CHECK(attention_obstacle(llama, Pass::backward));
}

TEST_CASE("backward's scratch memory holds dQ in fp32, delta, and grouped dK and dV") {
  const std::size_t elements = 4096 * 32 * 128;
  CHECK(attention_workspace_bytes(llama) == 4 * elements + 2 * 2 * elements + 4 * 4096 * 32);
  AttentionShape shape = llama;
  shape.kv_heads = 32;
  CHECK(attention_workspace_bytes(shape) == 4 * elements + 4 * 4096 * 32);
}
