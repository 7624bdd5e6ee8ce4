#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it gives the names of CUDA.
#include <catch2/catch.hpp>

#include "tests/calibrate/attention_check.hpp"

using namespace stepcast::calibrate;
using namespace stepcast::calibrate::cuda_kernels;

TEST_CASE("the attention kernels' forward source agrees with the reference") {
  struct Case {
    ElementType type;
    std::int64_t batch, sequence, heads, kv_heads, head_dim;
    bool causal;
  };
  // 128 queries and 64 keys a tile: whole tiles, one row, a row more than a tile, grouped heads.
  const Case c = GENERATE(Case{ElementType::bf16, 1, 128, 1, 1, 64, true},
                          Case{ElementType::fp16, 1, 129, 2, 1, 64, false},
                          Case{ElementType::bf16, 2, 1, 2, 2, 128, true},
                          Case{ElementType::fp16, 1, 200, 1, 1, 128, true},
                          Case{ElementType::bf16, 1, 70, 4, 2, 128, false});
  emulated::device = {};
  emulated::device.last_warp_first = GENERATE(false, true);
  AttentionRun run({.type = c.type,
                    .batch = c.batch,
                    .sequence = c.sequence,
                    .heads = c.heads,
                    .kv_heads = c.kv_heads,
                    .head_dim = c.head_dim,
                    .causal = c.causal,
                    .scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim))});
  const AttentionErrors errors = run.forward();
  INFO(c.sequence << " " << c.head_dim << " " << c.causal << ": " << errors.o << " " << errors.lse);
  CHECK(errors.o < tolerance_of(c.type));
  CHECK(errors.lse < 1e-5);
}
