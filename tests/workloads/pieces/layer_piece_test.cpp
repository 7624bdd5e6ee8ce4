#include "workloads/pieces/layer_piece.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "tests/workloads/fixtures.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

/// What one layer's piece comes to.
struct Layer {
  double flops = 0, other_bytes = 0;  // other: neither GEMM nor the attention kernels
  int gemms = 0, others = 0, gradients = 0;
  std::map<CollectiveKind, int> collectives;
  std::map<CollectiveKind, std::int64_t> collective_bytes;
};

bool is_attention(const Kernel& k) {
  return k.name.find("attention.core") != std::string::npos;  // with its pre and post kernels
}

void add_kernel(Layer& layer, const Kernel& k) {
  layer.flops += k.flops.value;
  if (k.family == KernelFamily::gemm)
    ++layer.gemms;
  else if (!is_attention(k)) {
    ++layer.others;
    layer.other_bytes += static_cast<double>(k.bytes.value);
  }
}

Layer sum_of(const Piece& piece, KernelTable& table) {
  Layer layer;
  const std::vector<Collective> collectives = table.take_collectives();
  for (const Action& action : piece) {
    switch (action.kind) {
      case Action::Kind::kernel:
      case Action::Kind::forward_kernel:
      case Action::Kind::graph_kernel:
        add_kernel(layer, table.kernels()[action.index]);
        break;
      case Action::Kind::collective:
      case Action::Kind::begin:
      case Action::Kind::tensor_ring:
      case Action::Kind::ring_start:
      case Action::Kind::context:
      case Action::Kind::tokens:
      case Action::Kind::begin_tokens:
      case Action::Kind::expert_tensor:
        ++layer.collectives[collectives[action.index].kind];
        layer.collective_bytes[collectives[action.index].kind] +=
            collectives[action.index].bytes.value;
        break;
      case Action::Kind::graph:
      case Action::Kind::module:
      case Action::Kind::end:
      case Action::Kind::ring_wait:
      case Action::Kind::end_tokens:
      case Action::Kind::host_wait:
      case Action::Kind::host_call:
        break;
      case Action::Kind::gradient:
        ++layer.gradients;
        break;
    }
  }
  return layer;
}

struct Case {
  TransformerShape shape = llama_7b();
  ParallelPlan plan = {};
  Batch batch = {.micro_batch = 2, .micro_batches = 1, .sequence = 4096};
  Software software = eager();

  Layer forward() const {
    KernelTable table;
    const Precision precision;
    return sum_of(layer_forward({shape, plan, batch, precision, software}, table), table);
  }
  Layer backward() const {
    KernelTable table;
    const Precision precision;
    const ParameterTensors unit = layer_tensors(shape, plan, software.products.packed);
    const Layer layer =
        sum_of(layer_backward({shape, plan, batch, precision, software}, table, unit), table);
    CHECK(layer.gradients == static_cast<int>(unit.size()));
    return layer;
  }
  double tokens() const { return static_cast<double>(batch.micro_batch * batch.sequence); }
  double a() const { return 2 * tokens() * static_cast<double>(shape.hidden); }
  double f() const { return 2 * tokens() * static_cast<double>(shape.ffn_hidden); }
};

Software packed_eager() {
  Software s = eager();
  s.products.packed = true;
  return s;
}

/// 2 FLOPs per weight and token; attention 4 s^2 d per head, halved by the mask.
double forward_flops(const Case& c) {
  const TransformerShape& s = c.shape;
  const double h = static_cast<double>(s.hidden), q = static_cast<double>(s.heads * s.head_dim);
  const double kv = static_cast<double>(s.kv_heads * s.head_dim);
  const double matrices = s.activation == Activation::swiglu ? 3 : 2;
  const double weights = h * (2 * q + 2 * kv) + matrices * h * static_cast<double>(s.ffn_hidden);
  return c.tokens() * (2 * weights + 2 * static_cast<double>(c.batch.sequence) * q);
}

}  // namespace

TEST_CASE("a layer's forward is 2 FLOPs per weight and token, and half a square of attention") {
  for (const TransformerShape& shape : {llama_7b(), llama_70b(), gpt(2, 1600, 25, 4096)})
    for (const Software& software : {eager(), packed_eager(), compiled(), fused()}) {
      const Case c{.shape = shape, .software = software};
      CHECK(c.forward().flops == Approx(forward_flops(c)).epsilon(1e-12));
    }
}

TEST_CASE("backward is twice the GEMMs and 2.5 times the attention") {
  const Case c{};
  const double attention = c.tokens() * 2 * 4096 * 4096.0;
  const double gemms = forward_flops(c) - attention;
  CHECK(c.backward().flops == Approx(2 * gemms + 2.5 * attention).epsilon(1e-12));
}

TEST_CASE("tensor ranks share a layer's FLOPs evenly") {
  for (const std::int64_t t : {2, 4, 8}) {
    Case c{.shape = llama_70b()};
    const double whole = c.forward().flops;
    c.plan.tensor = t;
    CHECK(c.forward().flops * static_cast<double>(t) == Approx(whole).epsilon(1e-12));
  }
}

TEST_CASE("eager Llama issues 7 GEMMs forward and 14 backward, packed 4 and 8") {
  CHECK(Case{}.forward().gemms == 7);
  CHECK(Case{}.backward().gemms == 14);
  const Case packed{.software = fused()};
  CHECK(packed.forward().gemms == 4);
  CHECK(packed.backward().gemms == 8);
}

// By hand: sums of element-wise traffic, in A = 2 T h and F = 2 T f. Multi-head: g = 1.
TEST_CASE("eager element-wise traffic is 42A + 20A + 5F forward") {
  const Case c{};
  const double rows = 3 * 8 * c.tokens();  // numbers per token: means and roots
  CHECK(c.forward().other_bytes == Approx(62 * c.a() + 5 * c.f()).margin(2 * rows));
  CHECK(c.forward().others == 24);
}

TEST_CASE("eager element-wise traffic is 91A + 20A + 9F backward") {
  const Case c{};
  const double rows = 3 * 12 * c.tokens();
  CHECK(c.backward().other_bytes == Approx((91 + 20) * c.a() + 9 * c.f()).margin(2 * rows));
}

TEST_CASE("compiled and fused element-wise traffic is 9A or 10A + 4A + 3F forward") {
  const Case c{.software = compiled()}, f{.software = fused()};
  CHECK(c.forward().other_bytes == Approx(13 * c.a() + 3 * c.f()));
  CHECK(f.forward().other_bytes == Approx(14 * f.a() + 3 * f.f()));
  CHECK(c.forward().others == 6);
  CHECK(f.forward().others == 7);
}

TEST_CASE("fused element-wise traffic is 12A + 4A + 5F backward") {
  const Case f{.software = fused()};
  const double finalize = 2 * 4 * 264.0 * 4096;
  CHECK(f.backward().other_bytes == Approx(16 * f.a() + 5 * f.f() + finalize));
  CHECK(f.backward().others == 9);
}

TEST_CASE("tensor collectives per layer follow Megatron's table") {
  using enum CollectiveKind;
  Case c{.software = fused()};
  c.plan.tensor = 4;
  for (const bool overlap : {false, true}) {
    c.software.tensor.overlap = overlap;
    c.plan.sequence_parallel = false;
    CHECK(c.forward().collectives == std::map<CollectiveKind, int>{{all_reduce, 2}});
    CHECK(c.backward().collectives == std::map<CollectiveKind, int>{{all_reduce, 2}});
    c.plan.sequence_parallel = true;
    CHECK(c.forward().collectives ==
          std::map<CollectiveKind, int>{{all_gather, 2}, {reduce_scatter, 2}});
    CHECK(c.backward().collectives ==
          std::map<CollectiveKind, int>{{all_gather, 4}, {reduce_scatter, 2}});
    CHECK(c.backward().collective_bytes[all_gather] == static_cast<std::int64_t>(4 * c.a()));
    c.plan.recompute = Recompute::full;
    CHECK(c.backward().collectives ==
          std::map<CollectiveKind, int>{{all_gather, 6}, {reduce_scatter, 4}});
    c.plan.recompute = Recompute::none;
  }
  c.plan.tensor = 1;
  CHECK(c.forward().collectives.empty());
  CHECK(c.backward().collectives.empty());
}

TEST_CASE("DTensor keeps the gathered input: two gathers fewer in backward") {
  Case c{};
  c.plan.tensor = 4;
  c.plan.sequence_parallel = true;
  CHECK(c.backward().collectives[CollectiveKind::all_gather] == 2);
  CHECK(c.backward().collectives[CollectiveKind::reduce_scatter] == 2);
}

TEST_CASE("eager code that saves the cut input gathers it again, as nanotron does") {
  Case c{};
  c.plan.tensor = 4;
  c.plan.sequence_parallel = true;
  c.software.tensor.regathers_inputs = true;
  CHECK(c.backward().collectives[CollectiveKind::all_gather] == 4);
  CHECK(c.backward().collectives[CollectiveKind::reduce_scatter] == 2);
  c.plan.sequence_parallel = false;
  CHECK(c.backward().collectives[CollectiveKind::all_gather] == 0);
}

TEST_CASE("sequence parallelism cuts the norms' traffic by the tensor degree") {
  Case c{.software = fused()};
  c.plan.tensor = 4;
  const double whole = c.forward().other_bytes;
  c.plan.sequence_parallel = true;
  // Norms 2 x 2A and residuals 2 x 3A become a quarter.
  CHECK(whole - c.forward().other_bytes == Approx(0.75 * 10 * c.a()));
}

TEST_CASE("full recompute adds one forward, selective the attention core") {
  Case c{};
  const double plain = c.backward().flops;
  c.plan.recompute = Recompute::full;
  CHECK(c.backward().flops - plain == Approx(c.forward().flops));
  c.software.recompute_stops = true;  // all of it but the last product and the residual sum
  const double last = c.tokens() * 2 * 4096 * 11008;
  CHECK(c.backward().flops - plain == Approx(c.forward().flops - last));
  CHECK(c.backward().others == Case{}.backward().others + c.forward().others - 1);
  c.plan.recompute = Recompute::selective;
  CHECK(c.backward().flops - plain == Approx(c.tokens() * 2 * 4096 * 4096));
}

TEST_CASE("unfused attention moves its score matrix") {
  Case c{.shape = gpt(2, 2048, 16, 2048),
         .batch = {.micro_batch = 1, .micro_batches = 1, .sequence = 2048},
         .software = fused()};
  c.plan.tensor = 8;
  KernelTable table;
  const Precision precision;
  c.software.attention.kernel = AttentionKernel::fused_softmax;
  layer_forward({c.shape, c.plan, c.batch, precision, c.software}, table);
  double softmax_bytes = 0;
  for (const Kernel& k : table.kernels())
    if (k.family == KernelFamily::softmax) softmax_bytes += static_cast<double>(k.bytes.value);
  CHECK(softmax_bytes == 2 * (2.0 * 16 * 2048 * 2048 / 8));  // 2S, S = 2 b a s^2 / t
}

namespace {

/// Bytes that the element-wise kernels of the attention core move.
double core_bytes(const Case& c, bool backward) {
  KernelTable table;
  const Precision precision;
  const StepInputs in{c.shape, c.plan, c.batch, precision, c.software};
  if (backward)
    layer_backward(in, table, layer_tensors(c.shape, c.plan, c.software.products.packed));
  else
    layer_forward(in, table);
  double sum = 0;
  for (const Kernel& k : table.kernels())
    if (is_attention(k) && k.family != KernelFamily::gemm)
      sum += static_cast<double>(k.bytes.value);
  return sum;
}

}  // namespace

TEST_CASE("Megatron's GPT block of 2021 moves what its kernels read and write") {
  Case c{.shape = gpt(2, 2048, 16, 2048),
         .batch = {.micro_batch = 1, .micro_batches = 1, .sequence = 2048},
         .software = fused()};
  c.shape.dropout = true;
  c.plan.tensor = 8;
  c.software.attention.kernel = AttentionKernel::fused_softmax;
  const double a = c.a(), f = c.f() / 8, s = 2.0 * 16 * 2048 * 2048 / 8;
  // LayerNorm 2A each, bias and dropout and residual 3.5A each, bias and GELU 2F.
  CHECK(c.forward().other_bytes == 11 * a + 2 * f);
  CHECK(core_bytes(c, false) == 4.5 * s + 2 * a / 8);  // softmax 2S, dropout 2.5S, contiguous
  // LayerNorm 3A and the sum with the residual's gradient 3A each, dropout 2.5A each, bias sums of
  // o and down A each, of q, k, v 3A/t and of up F, GELU 3F; the norms' partial weight gradients.
  const double partial = 4.0 * 264 * 2048;
  CHECK(c.backward().other_bytes == 19 * a + 3 * a / 8 + 4 * f + 2 * partial);
  CHECK(core_bytes(c, true) == 5.5 * s + 2 * a / 8);
}

TEST_CASE("without a fused softmax scores are scaled, masked and normalised one by one") {
  Case c{.shape = gpt(2, 2048, 16, 2048)};
  const double s = 2.0 * 2 * 16 * 4096 * 4096, out = 2 * c.a(), heads = 6 * c.a();  // q, k, v
  c.software.attention.kernel = AttentionKernel::unfused;
  CHECK(core_bytes(c, false) == 6 * s + out + heads);
  CHECK(core_bytes(c, true) == 7 * s + out + heads);
  c.shape.dropout = true;
  CHECK(core_bytes(c, false) == 8.5 * s + out + heads);
  c.software.fusion = Fusion::compiled;  // all of it in one kernel
  CHECK(core_bytes(c, false) == 3.5 * s + out + heads);
  CHECK(core_bytes(c, true) == 3.5 * s + out + heads);
  c.software = eager();
  c.software.attention.kernel = AttentionKernel::fused_softmax;
  CHECK(core_bytes(c, false) == 4.5 * s + out);
  c.shape.dropout = false;
  CHECK(core_bytes(c, false) == 2 * s + out);
  CHECK(core_bytes(c, true) == 3 * s + out);
}

TEST_CASE("Llama code takes its softmax in fp32 where nothing is fused") {
  Case c{};
  const double s = 2.0 * 2 * 32 * 4096 * 4096, copies = 8 * c.a();
  c.software.attention.kernel = AttentionKernel::unfused;
  CHECK(core_bytes(c, false) == 10 * s + copies);  // scale 2S, mask 2S, softmax 3S, cast 3S
  CHECK(core_bytes(c, true) == 12 * s + copies);   // cast 3S, softmax 5S, mask 2S, scale 2S
  c.software.attention.kernel = AttentionKernel::fused_softmax;
  CHECK(core_bytes(c, false) == 2 * s + 2 * c.a());
}

TEST_CASE("attention in both directions does twice the work of causal attention") {
  Case c{.shape = bert_large()};
  const double both = c.forward().flops;
  c.shape.objective = Objective::next_token;
  CHECK(both - c.forward().flops == Approx(c.tokens() * 2 * 4096 * 1024));
}

TEST_CASE("eager code with a norm kernel moves what torch's LayerNorm does") {
  Case c{};
  c.software.norm.fused = true;
  const double plain = Case{}.forward().other_bytes;
  CHECK(plain - c.forward().other_bytes == Approx(2 * 16 * c.a()).epsilon(1e-3));  // 18A to 2A
  CHECK(c.backward().others < Case{}.backward().others - 20);  // 13 kernels to 2 each
}

TEST_CASE("the same kernel of another layer has the same index") {
  KernelTable table;
  const Case c{};
  const Precision precision;
  const StepInputs in{c.shape, c.plan, c.batch, precision, c.software};
  const Piece one = layer_forward(in, table);
  const std::size_t distinct = table.kernels().size();
  const Piece two = layer_forward(in, table);
  CHECK(table.kernels().size() == distinct);
  REQUIRE(one.size() == two.size());
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].index == two[i].index);
}

TEST_CASE("TensorFlow's layer norm and GELU pass over fp32") {
  Case c{.shape = bert_large()};
  c.batch.sequence = 512;
  const double forward = c.forward().other_bytes, backward = c.backward().other_bytes;
  c.software.composite_blocks = true;
  // Each norm: 18 bytes an element for 4. GELU: 24 for 4.
  CHECK(c.forward().other_bytes - forward == Approx(2 * 7 * c.a() + 10 * c.f()).epsilon(1e-3));
  // Each norm with the residual's gradient: 34 bytes for 16. GELU: 8 more.
  CHECK(c.backward().other_bytes - backward == Approx(2 * 9 * c.a() + 4 * c.f()).epsilon(1e-3));
}
