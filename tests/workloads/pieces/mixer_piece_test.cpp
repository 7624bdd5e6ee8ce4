// Laws of layers whose mixer is not softmax attention over all keys, and of what newer models have
// around attention: gates, norms behind, norms over all heads, an index.
#include "workloads/pieces/mixer_piece.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/workloads/fixtures.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/pieces/layer_piece.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/model_size.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

/// The delta rule's sizes are Qwen3-Next's, the state space's those of Nemotron-3-Nano.
TransformerShape mixed() {
  TransformerShape s = llama(4, 2048, 16, 4, 4096);
  s.head_dim = 128;
  s.delta = {.key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128};
  s.state_space = {.heads = 64, .head_dim = 64, .groups = 8, .state = 128};
  return s;
}
TransformerShape indexed() {
  TransformerShape s = llama(4, 1024, 16, 16, 4096);
  s.latent = {.kv_rank = 256, .q_rank = 512, .nope = 64, .rope = 32, .value = 64};
  s.head_dim = 96;
  s.index = {.heads = 8, .dim = 64, .top = 256};
  return s;
}

const LayerKind all_kinds[] = {{{Mixer::full}},
                               {{Mixer::delta}},
                               {{Mixer::state_space}},
                               {{Mixer::both}},
                               {{Mixer::delta, Mlp::none}},
                               {{Mixer::state_space, Mlp::none}},
                               {{Mixer::none, Mlp::dense}}};

struct Written {
  std::vector<Kernel> kernels;
  std::vector<Collective> collectives;
  Piece piece;
  double flops(KernelFamily family) const {
    double sum = 0;
    for (const Action& action : piece)
      if (launches(action) && kernels[action.index].family == family)
        sum += kernels[action.index].flops.value;
    return sum;
  }
};

struct Case {
  TransformerShape shape = mixed();
  LayerKind kind{};
  ParallelPlan plan{};
  Software software = fused();
  Batch batch{.micro_batch = 2, .micro_batches = 1, .sequence = 2048};
  Precision precision{};

  StepInputs inputs() const { return {shape, plan, batch, precision, software}; }
  ParameterTensors tensors() const {
    return layer_tensors(shape, plan, software.products.packed, kind);
  }
  Written forward() const {
    KernelTable table;
    Written out{.kernels = {}, .collectives = {}, .piece = layer_forward(inputs(), table, kind)};
    out.kernels = table.take_kernels(), out.collectives = table.take_collectives();
    return out;
  }
  Written backward() const {
    KernelTable table;
    Written out{.kernels = {},
                .collectives = {},
                .piece = layer_backward(inputs(), table, tensors(), kind)};
    out.kernels = table.take_kernels(), out.collectives = table.take_collectives();
    return out;
  }
};

ParallelPlan tensor(std::int64_t degree) {
  ParallelPlan plan;
  plan.tensor = degree;
  plan.sequence_parallel = degree > 1;
  return plan;
}

std::int64_t held(const Case& c) { return ActivationMemory(c.inputs(), c.kind).layer(); }

}  // namespace

TEST_CASE("every gradient of a layer is marked once, whatever its mixer and its norms") {
  for (const LayerKind& kind : all_kinds)
    for (const NormPlace place : {NormPlace::before, NormPlace::both, NormPlace::behind})
      for (const Software& software : {fused(), eager(), compiled()})
        for (const std::int64_t degree : {1, 2}) {
          Case c{.kind = kind, .plan = tensor(degree), .software = software};
          c.shape.norm_place = place;
          c.shape.gate = AttentionGate::element;
          c.shape.qk_norm_whole = true;
          std::vector<int> marks(c.tensors().size(), 0);
          for (const Action& action : c.backward().piece)
            if (action.kind == Action::Kind::gradient) ++marks[action.index];
          CHECK(std::ranges::count(marks, 1) == std::ssize(marks));
        }
  Case c{.shape = indexed()};
  std::vector<int> marks(c.tensors().size(), 0);
  for (const Action& action : c.backward().piece)
    if (action.kind == Action::Kind::gradient) ++marks[action.index];
  CHECK(std::ranges::count(marks, 1) == std::ssize(marks));
}

TEST_CASE("products of a mixer are two FLOPs a weight, backward twice that") {
  for (const LayerKind& kind : all_kinds) {
    const Case c{.kind = kind};
    std::int64_t weights = 0;
    for (const ParameterTensor& t : c.tensors()) weights += t.matmul ? t.elements : 0;
    const double expected = 2.0 * 2 * 2048 * static_cast<double>(weights);
    CHECK(c.forward().flops(KernelFamily::gemm) == Approx(expected).epsilon(1e-12));
    CHECK(c.backward().flops(KernelFamily::gemm) == Approx(2 * expected).epsilon(1e-12));
  }
}

TEST_CASE("a recurrence does the FLOPs of its chunks for every token and head") {
  const Case delta{.kind = {{Mixer::delta}}}, states{.kind = {{Mixer::state_space}}};
  CHECK(delta.forward().flops(KernelFamily::delta_forward) == 2.0 * 2048 * 32 * 180'224);
  CHECK(states.forward().flops(KernelFamily::state_space_forward) ==
        2.0 * 2048 * 64 * (49'152 + 2 * 128 * 128 / 8));
  CHECK(delta.backward().flops(KernelFamily::delta_backward) ==
        2.5 * delta.forward().flops(KernelFamily::delta_forward));
  const Case both{.kind = {{Mixer::both}}};
  CHECK(both.forward().flops(KernelFamily::state_space_forward) ==
        states.forward().flops(KernelFamily::state_space_forward));
  CHECK(both.forward().flops(KernelFamily::attention_forward) ==
        Case{}.forward().flops(KernelFamily::attention_forward));
}

TEST_CASE("tensor ranks share the heads of a mixer, and context ranks exchange them") {
  for (const Mixer mixer : {Mixer::delta, Mixer::state_space}) {
    const KernelFamily family =
        mixer == Mixer::delta ? KernelFamily::delta_forward : KernelFamily::state_space_forward;
    const Case one{.kind = {{mixer}}};
    Case cut = one;
    cut.plan = tensor(4);
    CHECK(4 * cut.forward().flops(family) == one.forward().flops(family));
    CHECK(4 * cut.forward().flops(KernelFamily::gemm) == one.forward().flops(KernelFamily::gemm));
    Case context = one;
    context.plan.context = 2;
    CHECK(2 * context.forward().flops(family) == one.forward().flops(family));
    const auto exchanges = [&](const Written& w) {
      return std::ranges::count_if(w.piece,
                                   [](const Action& a) { return a.kind == Action::Kind::context; });
    };
    CHECK(exchanges(one.forward()) == 0);
    CHECK(exchanges(context.forward()) == 2);
    CHECK(exchanges(context.backward()) == 2);
  }
}

TEST_CASE("what a layer of the delta rule keeps of a token is what its kernels save") {
  // Input 4 kB; before the convolution 16; q, k, v repeated 24; inverses 4; decays and steps 192
  // bytes; gate, output and the last product's input 8 each.
  Case c{.kind = {{Mixer::delta, Mlp::none}}};
  const std::int64_t tokens = 2 * 2048;
  CHECK(held(c) == tokens * (2 * 2048 + 2 * 2048 + 2 * 8192 + 2 * 12288 + 2 * 64 * 32 + 6 * 32 +
                             3 * 2 * 4096));
}

TEST_CASE("a gate, norms behind and a norm of all heads add what they keep") {
  const Case plain;
  const std::int64_t tokens = 2 * 2048, query = 16 * 128, kv = 4 * 128, h = 2048;
  Case c = plain;
  c.shape.gate = AttentionGate::element;
  CHECK(held(c) - held(plain) == tokens * 2 * 2 * query);
  CHECK(c.shape.hidden * query == elements_of(c.tensors()) - elements_of(plain.tensors()));
  c.shape.gate = AttentionGate::head;
  CHECK(c.shape.hidden * 16 == elements_of(c.tensors()) - elements_of(plain.tensors()));
  c = plain;
  c.shape.norm_place = NormPlace::both;
  CHECK(held(c) - held(plain) == 2 * tokens * 2 * h);
  c.shape.norm_place = NormPlace::behind;
  CHECK(held(c) == held(plain));
  c = plain;
  c.shape.qk_norm_whole = true;
  CHECK(held(c) - held(plain) == tokens * 2 * (query + kv));
  CHECK(elements_of(c.tensors()) - elements_of(plain.tensors()) == query + kv);
}

TEST_CASE("attention of an index is cheaper than all keys only for long sequences") {
  // DeepSeek-V3.2: the core of 2,048 latent keys does the FLOPs of 128 expanded heads at 16
  // thousand tokens.
  Case sparse{.shape = llama(4, 7168, 128, 128, 18432)}, dense = sparse;
  for (Case* c : {&sparse, &dense}) {
    c->shape.latent = {.kv_rank = 512, .q_rank = 1536, .nope = 128, .rope = 64, .value = 128};
    c->shape.head_dim = 192;
    c->batch.micro_batch = 1;
  }
  sparse.shape.index = {.heads = 64, .dim = 128, .top = 2048};
  const auto ratio = [&](std::int64_t sequence) {
    sparse.batch.sequence = dense.batch.sequence = sequence;
    const Written s = sparse.forward(), d = dense.forward();
    double scores = 0;
    for (const Kernel& k : s.kernels)
      if (k.name == "layer.index.scores.forward") scores += k.flops.value;
    return (s.flops(KernelFamily::sparse_forward) + scores) /
           d.flops(KernelFamily::attention_forward);
  };
  CHECK(ratio(4096) == Approx(2.75).epsilon(0.03));
  CHECK(ratio(16'384) == Approx(1.0).epsilon(0.03));
  CHECK(ratio(32'768) < 0.65);
}

TEST_CASE("FLOPs of hybrids are Megatron's") {
  // hybrid_flops() of training.py at d98e8a6 (read 2026-08), of a token of Nemotron-3-Nano at
  // 8,192 tokens: a state space's inner width is taken as twice the hidden one.
  TransformerShape s = llama(52, 2688, 32, 2, 0);
  s.head_dim = 128;
  s.vocab = 131'072;
  s.activation = Activation::squared_relu;
  s.experts = {.count = 128, .per_token = 6, .ffn = 1856, .shared_ffn = 3712};
  s.state_space = {.heads = 64, .head_dim = 64, .groups = 8, .state = 128};
  std::string wrong;
  REQUIRE(read_pattern("MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", s.pattern, wrong));
  const double h = 2688, inner = 2 * h, states = 8 * 128;
  const double mamba = 2 * h * (2 * inner + 2 * states + 64) + 7 * inner * 128 + 2 * inner * h;
  const double attention = 2 * h * 128 * (32 + 2 * 2 + 32) + 2.0 * 8192 * 128 * 32;
  const double experts = 4 * h * (6 * 1856 + 3712) + 2 * h * 128;
  const double head = 2 * h * 131'072;
  CHECK(causal_model_flops(s, 1, 8192).value ==
        Approx(3 * (23 * mamba + 6 * attention + 23 * experts + head)).epsilon(1e-9));
  // gdn_layer_flops(), of a token of a layer.
  const TransformerShape d = [] {
    TransformerShape out = mixed();
    out.layers = 1;
    read_pattern("G", out.pattern, out.name);
    return out;
  }();
  const double qk = 2048, v = 4096, n = 32;
  const double gdn =
      2 * (2048 * (2 * qk + 2 * v + 2 * n) + 4 * (2 * qk + v) + 4 * n * 128 * 128 + 2048 * v);
  CHECK(causal_model_flops(d, 1, 512).value ==
        Approx(3 * (gdn + 2.0 * 2048 * 32000)).epsilon(1e-9));
}

// Of 128 x 128 a head and chunks of 64: 7 of the keys' width and 3 of the values', 4 bytes each, 6
// of a chunk's width, rows and triangles 4 x 63 x 64 x 65 / 3 / 64, the state 1,024: 13,140 bytes a
// token and head. What kernels keep instead goes: a chunk's inverse and the values in 16 bits, the
// decay in fp32 and the step in 16 bits.
TEST_CASE("a delta rule by operators, as deterministic mode runs it, keeps 13,140 bytes a row") {
  Case c{.kind = {{Mixer::delta, Mlp::none}}};
  const std::int64_t kernels = held(c), rows = 2 * 2048 * 32;
  c.software.deterministic = true;
  const std::int64_t of_kernels = rows * (2 * 64 + 2 * 128 + 4 + 2);
  CHECK(static_cast<double>(held(c) - kernels + of_kernels) ==
        Approx(13140.0 * static_cast<double>(rows)));
  const auto launched = [&](const Written& written) {
    return std::ranges::count_if(written.piece, [&](const Action& action) {
      return launches(action) &&
             written.kernels[action.index].name.starts_with("layer.delta.operator");
    });
  };
  CHECK(launched(c.forward()) == 63 * 6 + 2048 / 64 * 14);
  CHECK(launched(c.backward()) == 2 * launched(c.forward()));
  c.kind = {};
  const std::int64_t filled = held(c);
  c.software.deterministic = false;
  CHECK(held(c) == filled);
}

// Three fp32 copies a norm with a weight, two of the router's; 16-bit inputs of shared experts and
// of the router's scale; norms of kernels keep their inputs, of which there are two.
TEST_CASE("norms by operators on both sides of experts keep 68 bytes a hidden element more") {
  Case c{.kind = {{Mixer::full, Mlp::experts}}, .plan = tensor(2)};
  c.shape.experts = {.count = 8, .per_token = 2, .ffn = 1024, .shared_ffn = 2048};
  c.shape.norm_place = NormPlace::both;
  c.software.experts.runs = true;
  const std::int64_t elements = 2 * 2048 * 2048 / 2;  // of a rank's part of the sequence
  const auto more = [&] {
    c.software.experts.operator_norms = false;
    const std::int64_t kernels = held(c);
    c.software.experts.operator_norms = true;
    return held(c) - kernels;
  };
  CHECK(more() == 68 * elements);
  c.shape.experts.shared_ffn = 0;
  CHECK(more() == 42 * elements);
  c.shape.norm_place = NormPlace::before;
  CHECK(more() == 0);
}
