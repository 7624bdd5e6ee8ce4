#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it gives the names of CUDA.
#include <catch2/catch.hpp>

#include "tests/calibrate/attention_check.hpp"

using namespace stepcast::calibrate;
using namespace stepcast::calibrate::cuda_kernels;

TEST_CASE("the attention kernels for Volta agree with the reference") {
  struct Case {
    std::int64_t batch, sequence, heads, kv_heads, head_dim;
    bool causal;
  };
  // Forward 64 queries and 32 keys a tile, backward 32 and 32.
  const Case c = GENERATE(Case{1, 64, 1, 1, 64, true}, Case{1, 65, 2, 1, 64, false},
                          Case{2, 33, 2, 2, 128, true}, Case{1, 90, 1, 1, 128, false});
  emulated::device = {};
  emulated::device.capability_major = 7;
  emulated::device.shared_bytes_of_block = 48 * 1024;
  emulated::device.last_warp_first = GENERATE(false, true);
  AttentionRun run({.type = ElementType::fp16,
                    .batch = c.batch,
                    .sequence = c.sequence,
                    .heads = c.heads,
                    .kv_heads = c.kv_heads,
                    .head_dim = c.head_dim,
                    .causal = c.causal,
                    .scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim))});
  const AttentionErrors forward = run.forward(), backward = run.backward();
  CHECK(forward.o < tolerance_of(ElementType::fp16));
  CHECK(forward.lse < 1e-5);
  CHECK(backward.dq < 2 * tolerance_of(ElementType::fp16));
  CHECK(backward.dk < 2 * tolerance_of(ElementType::fp16));
  CHECK(backward.dv < 2 * tolerance_of(ElementType::fp16));
}
