// Recompute by operators: what torch's checkpoint saves of a layer, and what it runs again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/workloads/fixtures.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/pieces/layer_piece.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr std::int64_t tokens = 8192;

/// Llama-3-8B's layer.
TransformerShape llama_8b() {
  TransformerShape shape = llama(32, 4096, 32, 8, 14336);
  shape.vocab = 128256;
  return shape;
}

struct Case {
  TransformerShape shape = llama_8b();
  ParallelPlan plan{};
  Batch batch{.micro_batch = 1, .micro_batches = 1, .sequence = tokens};
  Precision precision{};
  Software software = eager();

  Case& by_operators() { return plan.recompute = Recompute::operators, *this; }
  StepInputs inputs() const { return {shape, plan, batch, precision, software}; }
  std::int64_t kept() const { return ActivationMemory(inputs()).layer(); }

  /// Names of the products in a piece.
  std::vector<std::string> products(bool backward) const {
    const StepInputs in = inputs();
    KernelTable table;
    const Piece piece = backward ? layer_backward(in, table, layer_tensors(shape, plan, false, {}))
                                 : layer_forward(in, table);
    std::vector<std::string> out;
    for (const Action& action : piece)
      if (launches(action) && table.kernels()[action.index].family == KernelFamily::gemm &&
          table.kernels()[action.index].name.ends_with(".forward"))
        out.push_back(table.kernels()[action.index].name);
    return out;
  }
};

}  // namespace

// 2 + 2q/h + 2kv/h + 2q/h + 2f/h + 2 bytes of T h: the layer's input, q and v, attention's output,
// the gate, the last product (PYTORCH, torchtitan's policy); compiled code drops the last. Beside
// it 4 bytes a row and head of the softmax.
TEST_CASE("by operators a Llama layer keeps 15.5 bytes a hidden element, compiled 13.5") {
  const double element = static_cast<double>(tokens) * 4096, statistics = 4.0 * tokens * 32;
  Case c;
  c.by_operators();
  CHECK(static_cast<double>(c.kept()) == 15.5 * element + statistics);
  c.software = compiled();
  CHECK(static_cast<double>(c.kept()) == 13.5 * element + statistics);
}

// 4 inputs of norms, 4 of what they feed, 3 of q, k and v of groups, 2 of attention's output, 4
// times 7 of the MLP: 41 bytes of T h; then gradients of gate and up in the place of the product's
// input and its gradient, 14, and of the residual stream, 2. Runs of a Llama-3-8B on A100 that
// differ in the micro-batch alone grow by as much in backward (FMSB-031 and -032 of what_ran.csv:
// 57 bytes).
TEST_CASE("a Llama layer's backward has 57 bytes of a hidden element at its fullest") {
  const double element = static_cast<double>(tokens) * 4096, statistics = 4.0 * tokens * 32;
  Case c;
  c.software.norm.fused = true;
  c.software.attention.repeats_kv = false;
  const auto sum = [](const std::vector<std::int64_t>& bytes) {
    return static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  };
  const StepInputs in = c.inputs();
  const ActivationMemory memory(in);
  CHECK(sum(memory.layer_tensors()) == 41 * element + statistics);
  CHECK(sum(memory.layer_tensors()) + sum(memory.work_tensors()) == 57 * element + statistics);
  // In tiles attention's half is the fuller one: 9 kept, gradients of the stream and of the core's
  // output 4, of q, k, v 3, an fp32 sum of dQ 4, dK and dV of every head 4.
  CHECK(sum(memory.attention_tensors()) + sum(memory.attention_work_tensors()) ==
        24 * element + statistics);
  c.software.attention.repeats_kv = true;
  CHECK(sum(ActivationMemory(c.inputs()).layer_tensors()) == 44 * element + statistics);
}

TEST_CASE("every second product from the first is saved, the others and no attention run again") {
  Case c;
  CHECK(c.products(false) ==
        std::vector<std::string>{"layer.attention.q.forward", "layer.attention.k.forward",
                                 "layer.attention.v.forward", "layer.attention.o.forward",
                                 "layer.mlp.gate.forward", "layer.mlp.up.forward",
                                 "layer.mlp.down.forward"});
  CHECK(c.products(true).empty());
  c.by_operators();
  CHECK(c.products(true) == std::vector<std::string>{"layer.attention.k.forward",
                                                     "layer.attention.o.forward",
                                                     "layer.mlp.up.forward"});
}

TEST_CASE("selective means what the software means by it") {
  Case operators, selective;
  operators.by_operators();
  selective.plan.recompute = Recompute::selective;
  CHECK(selective.kept() > operators.kept());
  selective.software.selective = SelectiveRecompute::operators;
  CHECK(selective.kept() == operators.kept());
  CHECK(selective.products(true) == operators.products(true));
}

// What backward makes anew is what it needs and has not kept: with what is kept it has all.
TEST_CASE("kept and made again come to all that a layer keeps without recompute, and no less") {
  for (const Software& software : {eager(), compiled()})
    for (const std::int64_t kv_heads : {8, 32}) {
      Case c;
      c.shape = llama(32, 4096, 32, kv_heads, 14336);
      c.software = software;
      const std::int64_t all = ActivationMemory(c.inputs()).layer_without_recompute();
      c.by_operators();
      const ActivationMemory memory(c.inputs());
      const std::vector<std::int64_t> again = memory.tensors_again();
      const std::int64_t made = std::accumulate(again.begin(), again.end(), std::int64_t{0});
      CHECK(made < all);
      CHECK(memory.layer() + made >= all);
    }
}

TEST_CASE("products of experts are never saved, their exchange is") {
  Case c;
  c.shape = llama(48, 2048, 32, 4, 0);
  c.shape.experts = {.count = 128, .per_token = 8, .ffn = 768};
  c.by_operators();
  const std::int64_t here = ActivationMemory(c.inputs(), {{.mlp = Mlp::experts}}).layer();
  // Input, q, v, attention's output and its statistics; o is the fourth product, and not saved.
  const std::int64_t element = 2 * tokens;
  CHECK(here == element * (2048 + 2048 + 256 + 2048) + 4 * tokens * 32);
  c.plan.data_degree = 8;
  c.plan.expert.degree = 8;
  const std::int64_t away = ActivationMemory(c.inputs(), {{.mlp = Mlp::experts}}).layer();
  CHECK(away > here + 2 * element * 8 * 2048);  // rows sent and received
}

TEST_CASE("exchanges that are not saved are kept by nobody, and run again") {
  Case c;
  c.shape.experts.count = 8;
  c.shape.experts.per_token = 2;
  c.shape.experts.ffn = 1024;
  c.plan.data_degree = c.plan.expert.degree = 8;
  c.plan.routing.kind = RoutingKind::balanced;
  c.software.experts.runs = true;
  c.by_operators();
  const LayerKind experts{{.mlp = Mlp::experts}};
  const auto kept = [&] { return ActivationMemory(c.inputs(), experts).layer(); };
  const auto exchanges = [&] {
    const StepInputs in = c.inputs();
    KernelTable table;
    const Piece piece =
        layer_backward(in, table, layer_tensors(c.shape, c.plan, false, experts), experts);
    std::int64_t count = 0;
    for (const Collective& collective : table.collectives())
      count += collective.name == "layer.experts.dispatch.forward" ||
                       collective.name == "layer.experts.combine.forward"
                   ? 1
                   : 0;
    return count;
  };
  const std::int64_t with = kept();
  CHECK(exchanges() == 0);
  c.software.keeps_exchanges = false;
  // Rows there and back, as good as.
  CHECK(static_cast<double>(with - kept()) == Approx(8.0 * tokens * 4096).epsilon(0.001));
  CHECK(exchanges() == 2);
}

TEST_CASE("rows that are weighed in fp32 are kept so, whatever is compiled") {
  Case c;
  c.shape.experts.count = 8;
  c.shape.experts.per_token = 2;
  c.shape.experts.ffn = 1024;
  c.software.experts.runs = true;
  const LayerKind experts{{.mlp = Mlp::experts}};
  const std::int64_t rows = 2 * tokens * c.shape.hidden;  // elements
  for (const Fusion fusion : {Fusion::eager, Fusion::compiled}) {
    c.software.fusion = fusion;
    c.software.experts.weighed_wide = false;
    const std::int64_t narrow = ActivationMemory(c.inputs(), experts).layer();
    c.software.experts.weighed_wide = true;
    CHECK(ActivationMemory(c.inputs(), experts).layer() - narrow == (4 - 2) * rows);
    KernelTable table;
    const StepInputs in = c.inputs();
    layer_forward(in, table, experts);
    std::int64_t bytes = 0;
    for (const Kernel& kernel : table.kernels())
      if (kernel.name.starts_with("layer.experts.weigh")) bytes += kernel.bytes.value;
    CHECK(bytes == (6 + 8 + 6) * rows);
  }
}
