#include "workloads/memory/figures.hpp"

#include <catch2/catch.hpp>

#include "tests/workloads/fixtures.hpp"
#include "workloads/pieces/activation_memory.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr double gib = 1073741824.0;
constexpr double h100_gib = 81559.0 / 1024;  // as nvidia-smi shows
constexpr double v100_gib = 32510.0 / 1024;

ParallelPlan plan_of(DataParallel kind, std::int64_t data, std::int64_t tensor = 1,
                     std::int64_t pipeline = 1) {
  ParallelPlan plan;
  plan.data = kind;
  plan.data_degree = data;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  return plan;
}

double total_gib(const TransformerShape& s, const ParallelPlan& p, const Batch& b,
                 const Software& software = eager()) {
  return static_cast<double>(fullest_memory(s, p, b, {}, software, 24).total().value) / gib;
}

double part(const Memory& memory, const std::string& name) {
  for (const MemoryPart& p : memory.parts)
    if (p.name == name) return static_cast<double>(p.bytes.value);
  FAIL("no part " << name);
  return 0;
}

constexpr Batch two{.micro_batch = 2, .micro_batches = 1, .sequence = 4096};
constexpr Batch one{.micro_batch = 1, .micro_batches = 1, .sequence = 4096};

}  // namespace

TEST_CASE("7B with local batch 2 fits on 8 H100 as in the study, with batch 3 it does not") {
  CHECK(total_gib(llama_7b(), plan_of(DataParallel::zero2, 8), two) < h100_gib);
  Batch three = two;
  three.micro_batch = 3;
  CHECK(total_gib(llama_7b(), plan_of(DataParallel::zero2, 8), three) > h100_gib);
}

TEST_CASE("70B without tensor parallelism keeps 130 GiB unsharded under zero2 and is refused") {
  const auto plan = plan_of(DataParallel::zero2, 256);
  const Memory memory = fullest_memory(llama_70b(), plan, one, {}, eager(), 24);
  CHECK(part(memory, "gathered parameters") >= 2 * 68'976'648'192.0);
  CHECK(static_cast<double>(memory.total().value) / gib > h100_gib);
}

TEST_CASE("a loss of one kernel keeps 4 bytes a logit where eager code keeps 14") {
  const TransformerShape shape = llama_7b();
  const ParallelPlan plan = plan_of(DataParallel::zero2, 8);
  const Precision precision;
  Software fused = eager();
  fused.loss.fused = true;
  const auto bytes = [&](const Software& software) {
    const StepInputs in{shape, plan, two, precision, software};
    const ActivationMemory kept(in);
    return kept.head() + kept.loss_work();
  };
  const std::int64_t logits = 2 * 4096 * shape.vocab;
  CHECK(bytes(eager()) - bytes(fused) == 10 * logits);
  CHECK(total_gib(shape, plan, two) > total_gib(shape, plan, two, fused));
}

TEST_CASE("FSDP state is 16 bytes a parameter over the shard ranks") {
  for (const std::int64_t n : {8, 64, 512}) {
    const Memory m =
        memory_of_stage(llama_7b(), plan_of(DataParallel::zero2, n), two, {}, eager(), 0);
    const double p = 6'738'415'616.0 / static_cast<double>(n);
    CHECK(part(m, "parameters") == Approx(4 * p).epsilon(1e-6));
    CHECK(part(m, "optimizer") == Approx(8 * p).epsilon(1e-6));
    CHECK(part(m, "gathered parameters") >= 2 * 6'738'415'616.0);
  }
}

TEST_CASE("what Megatron documents per parameter: 18 bytes, distributed 6 + 12/d") {
  // core_v0.12.0 dist_optimizer.md, bf16 with fp32 gradients.
  const double p = 6'738'415'616.0;
  const auto state = [](const Memory& m) {
    return part(m, "parameters") + part(m, "gradients") + part(m, "optimizer");
  };
  CHECK(state(fullest_memory(llama_7b(), plan_of(DataParallel::ddp, 8), one, {}, fused(), 24)) ==
        Approx(18 * p));
  CHECK(state(fullest_memory(llama_7b(), plan_of(DataParallel::zero1, 8), one, {}, fused(), 24)) ==
        Approx((6 + 12.0 / 8) * p));
}

TEST_CASE("memory falls with the data degree, and each doubling saves less") {
  for (const DataParallel kind : {DataParallel::zero1, DataParallel::zero2, DataParallel::zero3})
    for (const TransformerShape& s : {llama_7b(), llama_70b()}) {
      double before = total_gib(s, plan_of(kind, 4), one), saved_before = 1e9;
      for (std::int64_t n = 8; n <= 2048; n *= 2) {
        const double now = total_gib(s, plan_of(kind, n), one);
        CHECK(now < before);
        CHECK(before - now < saved_before);
        saved_before = before - now;
        before = now;
      }
    }
}

TEST_CASE("stronger sharding never needs more") {
  for (const std::int64_t n : {2, 8, 64}) {
    const double z1 = total_gib(llama_7b(), plan_of(DataParallel::zero1, n), one);
    const double z2 = total_gib(llama_7b(), plan_of(DataParallel::zero2, n), one);
    const double z3 = total_gib(llama_7b(), plan_of(DataParallel::zero3, n), one);
    CHECK(total_gib(llama_7b(), plan_of(DataParallel::ddp, n), one) >= z1);
    CHECK(z1 >= z2);
    CHECK(z2 > z3);
  }
}

TEST_CASE(
    "zero3 that gathers embedding and head by themselves needs less than zero2, however shallow") {
  Software software = eager();
  software.data.flat_parameters = FlatParameters::buckets;
  for (const std::int64_t layers : {1, 2, 4, 32})
    for (const bool deepspeed : {false, true}) {
      software.optimizer.states = deepspeed ? OptimizerStates::deepspeed : OptimizerStates::masters;
      TransformerShape shape = llama_7b();
      shape.layers = layers;
      shape.vocab = 128'256;  // embedding and head are most of a shallow model
      CAPTURE(layers, deepspeed);
      const double z2 = total_gib(shape, plan_of(DataParallel::zero2, 64), one, software);
      CHECK(total_gib(shape, plan_of(DataParallel::zero3, 64), one, software) <= z2);
    }
}

TEST_CASE(
    "activations: none > selective > full for unfused attention; 1F1B holds less than GPipe") {
  Software software = fused();
  software.attention.kernel = AttentionKernel::unfused;
  ParallelPlan plan = plan_of(DataParallel::zero1, 1, 8, 8);
  plan.sequence_parallel = true;
  const Batch batch{.micro_batch = 1, .micro_batches = 64, .sequence = 2048};
  const auto activations = [&] {
    return part(memory_of_stage(gpt(96, 12288, 96, 2048), plan, batch, {}, software, 0),
                "activations");
  };
  const double none = activations();
  plan.recompute = Recompute::selective;
  const double selective = activations();
  plan.recompute = Recompute::full;
  const double full = activations();
  CHECK(none > selective);
  CHECK(selective > full);
  plan.recompute = Recompute::none;
  plan.schedule = Schedule::gpipe;  // 64 micro-batches instead of 8 on the first stage
  CHECK(activations() == Approx(8 * none));
}

TEST_CASE("activations of a GPT block follow Korthikanti's formula without dropout") {
  // s b h / t (34 + 5 a s / h) of arXiv 2205.05198 counts dropout masks (1 for each of two, a s / h
  // for attention), a dropped-out copy of the scores (2 a s / h) and the scores before dropout
  // (2 a s / h). Without dropout: 12 + 4 + 4 f / h = 32, and 2 a s / h.
  Software software = fused();
  software.attention.kernel = AttentionKernel::unfused;
  ParallelPlan plan = plan_of(DataParallel::zero1, 1, 8, 8);
  plan.sequence_parallel = true;
  const Batch batch{.micro_batch = 1, .micro_batches = 64, .sequence = 2048};
  const Memory m = memory_of_stage(gpt(96, 12288, 96, 2048), plan, batch, {}, software, 7);
  const double sbh = 2048.0 * 12288 / 8;
  const double statistics = 4 * 2048.0 * 96 / 8;
  CHECK(part(m, "activations") ==
        Approx(12 * (sbh * (32 + 2 * 96 * 2048.0 / 12288) + statistics)).epsilon(1e-9));
}

TEST_CASE("with dropout they follow Korthikanti's formula, scores before dropout left out") {
  // s b h / t (34 + 5 a s / h): softmax output, mask and what dropout leaves are 5 a s / h, two
  // masks 2.
  Software software = fused();
  software.attention.kernel = AttentionKernel::fused_softmax;
  ParallelPlan plan = plan_of(DataParallel::zero1, 1, 8, 8);
  plan.sequence_parallel = true;
  const Batch batch{.micro_batch = 1, .micro_batches = 64, .sequence = 2048};
  TransformerShape shape = gpt(96, 12288, 96, 2048);
  shape.dropout = true;
  const Memory m = memory_of_stage(shape, plan, batch, {}, software, 7);
  const double sbh = 2048.0 * 12288 / 8;
  const double statistics = 4 * 2048.0 * 96 / 8;
  // The gradients of so many scores make attention's half of the last layer the fuller one: what
  // the MLP's has kept, 2 + 2 + 8 + 8 and a mask of 1, is gone by then.
  CHECK(part(m, "activations") ==
        Approx(12 * (sbh * (34 + 5 * 96 * 2048.0 / 12288) + statistics) - 21 * sbh).epsilon(1e-9));
}

TEST_CASE("the fullest stage is the peak") {
  const ParallelPlan plan = plan_of(DataParallel::zero2, 4, 2, 4);
  const Batch batch{.micro_batch = 1, .micro_batches = 8, .sequence = 4096};
  const double peak = total_gib(llama_7b(), plan, batch);
  double most = 0;
  for (std::int64_t stage = 0; stage < 4; ++stage)
    most = std::max(
        most, static_cast<double>(
                  memory_of_stage(llama_7b(), plan, batch, {}, eager(), stage).total().value) /
                  gib);
  CHECK(peak == most);
}

TEST_CASE("a V100 holds 7B at 4096 tokens only with model parallelism") {
  CHECK(total_gib(llama_7b(), plan_of(DataParallel::zero2, 256), one) > v100_gib);
  ParallelPlan plan = plan_of(DataParallel::zero2, 64, 4);
  plan.sequence_parallel = true;
  CHECK(total_gib(llama_7b(), plan, one) < v100_gib);
}

TEST_CASE("one tensor rank keeps what it keeps, whether it may cut the sequence or not") {
  ParallelPlan plan = plan_of(DataParallel::zero1, 8);
  for (const Recipe recipe : {Recipe::fp8_block, Recipe::nvfp4}) {  // gathered in 16 bits
    const Precision low{.recipe = recipe};
    const auto needed = [&](bool cut) {
      plan.sequence_parallel = cut;
      return fullest_memory(llama_7b(), plan, one, low, fused(), 24).total();
    };
    CHECK(needed(true) == needed(false));
  }
}

TEST_CASE("interleaving keeps 1 + (p-1)/(pv) times the activations of the first stage") {
  const Batch batch{.micro_batch = 1, .micro_batches = 32, .sequence = 4096};
  const auto activations = [&](std::int64_t v) {
    ParallelPlan plan;
    plan.data = DataParallel::ddp;
    plan.pipeline = 4;
    plan.virtual_stages = v;
    for (const MemoryPart& part : memory_of_stage(llama_7b(), plan, batch, {}, eager(), 1).parts)
      if (part.name == "activations") return static_cast<double>(part.bytes.value);
    return -1.0;
  };
  // Stage 1 of 4 has no embedding: p - r = 3 stages in flight, (2(p-1-r) + (v-1)p + 1) / v chunks.
  CHECK(activations(2) / activations(1) == Approx((2 * 2 + 4 + 1) / 2.0 / 3.0));
  CHECK(activations(4) / activations(1) == Approx((2 * 2 + 12 + 1) / 4.0 / 3.0));
}

TEST_CASE("hsdp keeps a shard of the smaller group") {
  const auto optimizer = [](std::int64_t degree) {
    ParallelPlan plan;
    plan.data = DataParallel::zero3;
    plan.data_degree = 64;
    plan.shard_degree = degree;
    for (const MemoryPart& part : memory_of_stage(llama_7b(), plan, {}, {}, compiled(), 0).parts)
      if (part.name == "optimizer") return static_cast<double>(part.bytes.value);
    return -1.0;
  };
  CHECK(optimizer(8) / optimizer(0) == Approx(8.0).epsilon(1e-6));
  CHECK(optimizer(64) == optimizer(0));
}

TEST_CASE("bytes per parameter: 6 + 12/d, with bf16 moments 6 + 8/d, with bf16 gradients 4 + 8/d") {
  const std::int64_t d = 8;
  const auto per_parameter = [&](const Precision& precision) {
    const Memory memory =
        fullest_memory(llama_7b(), plan_of(DataParallel::zero1, d), one, precision, fused(), 24);
    const double bytes =
        part(memory, "parameters") + part(memory, "gradients") + part(memory, "optimizer");
    return bytes / static_cast<double>(parameters(llama_7b()));
  };
  CHECK(per_parameter({}) == Approx(6 + 12.0 / d).epsilon(1e-6));
  CHECK(per_parameter({.moments = Dtype::bf16}) == Approx(6 + 8.0 / d).epsilon(1e-6));
  CHECK(per_parameter({.gradient_reduce = Dtype::bf16, .moments = Dtype::bf16}) ==
        Approx(4 + 8.0 / d).epsilon(1e-6));
}

TEST_CASE("a recipe keeps copies of weights, and inputs of products in their type") {
  const TransformerShape s = llama_7b();
  const std::int64_t layer = 4 * s.hidden * s.hidden + 3 * s.hidden * s.ffn_hidden;
  const auto of = [&](const Precision& precision, const std::string& name) {
    return part(fullest_memory(s, plan_of(DataParallel::zero1, 8), one, precision, fused(), 24),
                name);
  };
  const auto copies = [&](Precision p) {
    return (of(p, "parameters") - of({}, "parameters")) / static_cast<double>(s.layers * layer);
  };
  CHECK(copies({.recipe = Recipe::fp8_delayed}) == 1);
  CHECK(copies({.recipe = Recipe::fp8_delayed, .transposes = true}) == 2);
  CHECK(copies({.recipe = Recipe::mxfp8}) == 2 + 2.0 / 32);
  CHECK(copies({.recipe = Recipe::mxfp8, .fp8_parameters = true}) == 2.0 / 32);
  CHECK(copies({.recipe = Recipe::fp8_current, .fp8_parameters = true}) == -1);
  // Of norms and products before the projections a byte in the place of two; attention keeps its
  // output in 16 bits beside o's input.
  const std::int64_t t = 4096;
  const ParallelPlan plan = plan_of(DataParallel::zero1, 8);
  const Software software = fused();
  const Precision none, eight{.recipe = Recipe::fp8_delayed};
  const auto kept = [&](const Precision& p) {
    const StepInputs in{s, plan, one, p, software};
    return ActivationMemory(in).layer_without_recompute();
  };
  CHECK(kept(none) - kept(eight) == 2 * t * s.hidden + t * s.ffn_hidden - t * s.hidden);
}

// Weights, gradients and moments of 2 bytes each: 8 a parameter, without masters.
TEST_CASE("without masters all states are in 16 bits, whole or sharded") {
  Precision precision;
  precision.masters = false;
  Software software = eager();
  software.optimizer.kernel = OptimizerKernel::fused;  // foreach has a tensor more in its update
  const double all = static_cast<double>(parameters(llama_7b()));
  for (const auto& [kind, shards] :
       {std::pair{DataParallel::ddp, 1.0}, {DataParallel::zero3, 8.0}}) {
    const ParallelPlan plan = plan_of(kind, kind == DataParallel::ddp ? 1 : 8);
    const Memory memory = memory_of_stage(llama_7b(), plan, one, precision, software, 0);
    CHECK(part(memory, "parameters") == Approx(2 * all / shards).epsilon(0.001));
    const Memory wide = memory_of_stage(llama_7b(), plan, one, {}, software, 0);
    const double masters = kind == DataParallel::ddp ? 4 : 0;
    CHECK(part(memory, "optimizer") == Approx(4 * all / shards).epsilon(0.001));
    CHECK(part(wide, "optimizer") == Approx((8 + masters) * all / shards).epsilon(0.001));
  }
}

// 2 bytes of every parameter while there are logits, 4 when the last gradient is made.
TEST_CASE("torch's gradients are not there at the loss, and all of them at the update") {
  Precision precision;
  precision.masters = false;
  Software software = eager();
  software.optimizer.kernel = OptimizerKernel::fused;
  const double all = static_cast<double>(parameters(llama_7b()));
  const auto gradients = [&](std::int64_t sequence, std::int64_t micro_batches) {
    const Batch batch{.micro_batch = 1, .micro_batches = micro_batches, .sequence = sequence};
    const ParallelPlan plan = plan_of(DataParallel::ddp, 1);
    return part(memory_of_stage(llama_7b(), plan, batch, precision, software, 0), "gradients");
  };
  CHECK(gradients(64, 1) == Approx(2 * all).epsilon(0.001));
  CHECK(gradients(65'536, 1) < 0.1 * all);  // the logits are more
  CHECK(gradients(65'536, 2) >= 2 * all);   // those of the first wait for the second's
  precision.masters = true;                 // whose gradients live in buffers
  CHECK(gradients(65'536, 1) >= 2 * all);
}

TEST_CASE("FSDP's offload leaves no shard on the GPU, DeepSpeed's of the optimizer 16-bit ones") {
  ParallelPlan plan = plan_of(DataParallel::zero3, 8);
  plan.offload.optimizer = plan.offload.parameters = 1.0;
  const Memory none = memory_of_stage(llama_7b(), plan, one, {}, eager(), 0);
  CHECK(part(none, "parameters") == 0);
  CHECK(part(none, "optimizer") == 0);
  Software deepspeed = eager();
  deepspeed.data.flat_parameters = FlatParameters::buckets;
  plan.offload.parameters = 0.0;
  const Memory shards = memory_of_stage(llama_7b(), plan, one, {}, deepspeed, 0);
  const double all = static_cast<double>(parameters(llama_7b()));
  CHECK(part(shards, "parameters") == Approx(2 * all / 8).epsilon(0.001));
  CHECK(part(shards, "optimizer") == 0);
}

TEST_CASE("tiles of the MLP keep its input alone, and have one tile's tensors at once") {
  const TransformerShape shape = llama_7b();
  const Precision precision;
  const Software software = eager();
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  const ActivationMemory whole({shape, plan, one, precision, software});
  const std::int64_t f = 2 * 4096 * shape.ffn_hidden;
  const std::int64_t kept = whole.layer();
  plan.mlp_tiles = 4;
  const ActivationMemory tiled({shape, plan, one, precision, software});
  CHECK(tiled.layer() == kept - 4 * f);  // gate, its silu, up and the product
}
