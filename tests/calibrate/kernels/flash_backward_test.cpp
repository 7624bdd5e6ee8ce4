#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it gives the names of CUDA.
#include <catch2/catch.hpp>

#include "tests/calibrate/attention_check.hpp"

using namespace stepcast::calibrate;
using namespace stepcast::calibrate::cuda_kernels;

TEST_CASE("the attention kernels' backward source agrees with the reference") {
  struct Case {
    ElementType type;
    std::int64_t batch, sequence, heads, kv_heads, head_dim;
    bool causal;
  };
  // 128 keys and 64 queries a tile.
  const Case c = GENERATE(Case{ElementType::bf16, 1, 128, 1, 1, 64, true},
                          Case{ElementType::fp16, 1, 130, 2, 1, 64, false},
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
  run.forward();
  const AttentionErrors errors = run.backward();
  INFO(c.sequence << " " << c.head_dim << " " << c.causal << ": dq " << errors.dq << " dk "
                  << errors.dk << " dv " << errors.dv);
  // dQ of a lone key is 0 but for rounding: P (dP - delta) with equal dP and delta.
  if (c.sequence > 1) CHECK(errors.dq < 2 * tolerance_of(c.type));
  if (c.sequence > 1) CHECK(errors.dk < 2 * tolerance_of(c.type));
  CHECK(errors.dv < 2 * tolerance_of(c.type));
}
