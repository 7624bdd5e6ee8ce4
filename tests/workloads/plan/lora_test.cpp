#include "workloads/plan/lora.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "engine/check.hpp"
#include "tests/workloads/step_reading.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/plan/model_size.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;
using Catch::Matchers::Contains;

namespace {

using enum LoraTarget;
constexpr SetOf<LoraTarget> all_linear{q, k, v, o, gate, up, down};

TransformerShape llama3_8b() {
  TransformerShape s = llama(32, 4096, 32, 8, 14336);
  s.vocab = 128256;
  return s;
}

TransformerShape adapted_8b(std::int64_t rank, SetOf<LoraTarget> targets = {q, v}) {
  TransformerShape s = llama3_8b();
  s.lora.rank = rank;
  s.lora.targets = targets;
  return s;
}

Memory memory_of(const TransformerShape& s, const ParallelPlan& plan, std::int64_t stage = 0,
                 const Software& software = eager()) {
  return memory_of_stage(s, plan, two, {}, software, stage);
}

double gemm_flops(const StepProgram& step) {
  double sum = 0;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == engine::Op::work && step.kernels[i.arg].family == KernelFamily::gemm)
      sum += step.kernels[i.arg].flops.value;
  return sum;
}

std::int64_t kernels_named(const StepProgram& step, const std::string& part) {
  return std::ranges::count_if(step.roles[0].instructions, [&](const auto& i) {
    return i.op == engine::Op::work && step.kernels[i.arg].name.find(part) != std::string::npos;
  });
}

std::string refusal(TransformerShape s, const ParallelPlan& plan = {}) {
  try {
    check(s, plan, two, "a.toml:3");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

// 32 (16 (4096 + 4096) + 16 (4096 + 1024)) beside q and v; PEFT prints the same.
TEST_CASE("adapters of Llama 3 8B have as many parameters as PEFT prints") {
  CHECK(adapter_parameters(adapted_8b(16)) == 6'815'744);
  CHECK(adapter_parameters(adapted_8b(16, all_linear)) == 41'943'040);
  CHECK(adapter_parameters(llama3_8b()) == 0);
  CHECK(trained_parameters(adapted_8b(16)) == 6'815'744);
  CHECK(trained_parameters(llama3_8b()) == parameters(llama3_8b()));
}

TEST_CASE("ranks share adapters without a rest, whatever cuts the model") {
  const TransformerShape s = adapted_8b(16, all_linear);
  for (const bool packed : {false, true})
    for (const std::int64_t tensor : {1, 2, 8})
      for (const std::int64_t pipeline : {1, 4}) {
        const ParallelPlan plan = plan_of(DataParallel::ddp, 1, tensor, pipeline);
        std::int64_t sum = 0;
        for (std::int64_t stage = 0; stage < pipeline; ++stage)
          sum += trained_of(stage_parameters(s, plan, {}, packed, stage)).elements();
        CHECK(tensor * sum == 41'943'040);
      }
}

TEST_CASE("a model without adapters has no frozen tensor") {
  const StageParameters stage = stage_parameters(llama3_8b(), {}, {}, false, 0);
  CHECK(trained_of(stage).elements() == stage.elements());
  CHECK(trained_of(stage).tensors() == stage.tensors());
}

TEST_CASE("frozen weights take the bytes of their type and of its scales") {
  CHECK(frozen_bytes(LoraBase::compute, 1 << 20, 2) == 2 << 20);
  CHECK(frozen_bytes(LoraBase::int8, 1 << 20, 2) == 1 << 20);
  CHECK(frozen_bytes(LoraBase::nf4, 1 << 20, 2) == (1 << 19) + 4 * (1 << 14));
  CHECK(frozen_bytes(LoraBase::nf4_double, 1 << 20, 2) == (1 << 19) + (1 << 14) + 4 * 64);
}

TEST_CASE("states are of adapters alone: 16 bytes each over the shards") {
  const TransformerShape s = adapted_8b(16, all_linear);
  const std::int64_t base = parameters(llama3_8b()), a = 41'943'040;
  const Memory one = memory_of(s, plan_of(DataParallel::ddp, 1));
  CHECK(one.of("parameters").value == 2 * base + 2 * a);
  CHECK(one.of("optimizer").value == 12 * a);
  for (const std::int64_t shards : {2, 8}) {
    const Memory m = memory_of(s, plan_of(DataParallel::zero3, shards));
    CHECK(m.of("parameters").value == (2 * base + 4 * a) / shards);
    CHECK(m.of("optimizer").value == 8 * a / shards);
    CHECK(m.of("gradients").value <= 4 * a);
  }
}

TEST_CASE("a four-bit base lies in its own type, but for embedding, norms and head") {
  TransformerShape s = adapted_8b(16);
  s.lora.base = LoraBase::nf4_double;
  const std::int64_t products = products_per_token(llama3_8b()) - s.vocab * s.hidden;
  const std::int64_t rest = parameters(llama3_8b()) - products;
  const Memory m = memory_of(s, plan_of(DataParallel::ddp, 1));
  const std::int64_t blocks = products / 64;
  CHECK(m.of("parameters").value ==
        products / 2 + blocks + 4 * blocks / 256 + 2 * rest + 2 * 6'815'744);
}

TEST_CASE("a step computes four FLOPs a frozen weight and six an adapter's") {
  const TransformerShape s = adapted_8b(16, all_linear);
  const StepProgram step = step_of(s, plan_of(DataParallel::ddp, 1));
  const double tokens = 2 * 4096, products = static_cast<double>(products_per_token(s));
  CHECK(gemm_flops(step) == Approx(tokens * (4 * products + 6.0 * 41'943'040)));
  const double attention = 12.0 * 32 * 4096 * 4096;
  CHECK(model_flops(s, 2 * 4096, 4096).value ==
        Approx(tokens * (4 * products + 6.0 * 41'943'040 + attention)));
}

TEST_CASE("no gradient of what is frozen is computed, reduced or applied") {
  const TransformerShape s = adapted_8b(16);
  const StepProgram step = step_of(s, plan_of(DataParallel::ddp, 4));
  for (const char* name :
       {"layer.mlp.gate.wgrad", "head.wgrad", "embedding.backward", "norm1.weight"})
    CHECK(kernels_named(step, name) == 0);
  CHECK(kernels_named(step, "lora_a.wgrad") == 2 * 32);
  CHECK(bytes_by_name(step).at("bucket.reduce") == 4 * 6'815'744);
  CHECK(bytes_of_kernels(step, "adamw") <= 96 * 6'815'744);
  const StepProgram sharded = step_of(s, plan_of(DataParallel::zero3, 4));
  const auto bytes = bytes_by_name(sharded);
  CHECK(bytes.at("layer.reduce") == 4 * 6'815'744);
  CHECK(bytes.count("root.reduce") == 0);
  CHECK(bytes.at("layer.gather") == 2 * 2 * (32 * layer_parameters(llama3_8b()) + 6'815'744));
}

TEST_CASE("a narrow base is made wide for every product, forward and backward") {
  TransformerShape s = adapted_8b(16);
  CHECK(kernels_named(step_of(s, plan_of(DataParallel::ddp, 1)), "dequantize") == 0);
  s.lora.base = LoraBase::nf4;
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  CHECK(kernels_named(step_of(s, plan), "dequantize") == 32 * 7 * 2);
  plan.recompute = Recompute::full;
  Software all_again = eager();
  all_again.recompute_stops = false;
  CHECK(kernels_named(step_of(s, plan, two, all_again), "dequantize") == 32 * 7 * 3);
  const std::int64_t weights = products_per_token(s) - s.vocab * s.hidden;
  CHECK(bytes_of_kernels(step_of(s, plan_of(DataParallel::ddp, 1)), "layer.mlp.down.dequantize") ==
        2 * 32 * (2 * 4096 * 14336 + frozen_bytes(LoraBase::nf4, 4096 * 14336, 2)));
  CHECK(weights > 0);
}

TEST_CASE("frozen experts have neither gradients nor states") {
  TransformerShape s = llama(4, 1024, 16, 4, 0);
  s.experts = {.count = 8, .per_token = 2, .ffn = 512};
  s.lora.rank = 8;
  ParallelPlan plan = plan_of(DataParallel::zero1, 4);
  plan.expert.degree = 4;
  const StepProgram step = step_of(s, plan, two, fused());
  CHECK(kernels_named(step, "layer.experts.down.wgrad") == 0);
  CHECK(kernels_named(step, "layer.experts.down.dgrad") == 4);
  CHECK(kernels_named(step, "router.wgrad") == 0);
  const std::int64_t a = adapter_parameters(s);
  CHECK(bytes_by_name(step).at("bucket.reduce") == 4 * a);
  CHECK(memory_of(s, plan, 0, fused()).of("optimizer").value == 12 * a / 4);
}

// Megatron-Bridge: one pair of a product beside all experts of a rank, on the rows that they take.
TEST_CASE("a rank's experts share an adapter, which has as many copies as they") {
  TransformerShape s = llama(4, 1024, 16, 4, 0);
  s.experts = {.count = 8, .per_token = 2, .ffn = 512};
  s.lora = {.rank = 8, .targets = {gate, up, down}, .experts = true};
  CHECK(refusal(s).empty());
  const std::int64_t pairs = 4 * 3 * 8 * (1024 + 512);
  CHECK(adapter_parameters(s) == pairs);
  ParallelPlan plan = plan_of(DataParallel::zero1, 4);
  for (const std::int64_t degree : {1, 4}) {
    plan.expert.degree = degree;
    const StageParameters trained = trained_of(stage_parameters(s, plan, {}, true, 0));
    CHECK(trained.elements() == pairs);
    for (const ParameterTensor& tensor : layer_tensors(s, plan, true, layer_kind(s, {}, 0)))
      CHECK((tensor.frozen || tensor.expert));
    const StepProgram step = step_of(s, plan, two, fused());
    for (const char* product : {"gate", "up", "down"})
      for (const char* pass : {"lora_a.forward", "lora_b.forward", "lora_a.wgrad", "lora_b.dgrad"})
        CHECK(kernels_named(step, std::string("layer.experts.") + product + "." + pass) == 4);
    // Two sequences of 4,096 tokens, each token at two experts.
    const double tokens = 2 * 4096;
    double adapters = 0;
    for (const auto& i : step.roles[0].instructions)
      if (i.op == engine::Op::work && step.kernels[i.arg].name.find(".lora_") != std::string::npos)
        adapters += step.kernels[i.arg].flops.value;
    // The fullest of several ranks takes a few rows more.
    const double rest = degree == 1 ? 1e-12 : 0.02;
    CHECK(adapters == Approx(tokens * 6.0 * 2.0 * static_cast<double>(pairs)).epsilon(rest));
  }
}

TEST_CASE("adapters of gate, up and down lie beside shared experts") {
  TransformerShape s = llama(4, 1024, 16, 4, 0);
  s.experts = {.count = 8, .per_token = 2, .ffn = 512, .shared_ffn = 768};
  s.lora = {.rank = 8, .targets = {gate, up, down}};
  CHECK(refusal(s).empty());
  CHECK(adapter_parameters(s) == 4 * 3 * 8 * (1024 + 768));
  for (const bool packed : {false, true})
    for (const std::int64_t tensor : {1, 2, 4}) {
      const StageParameters rank =
          stage_parameters(s, plan_of(DataParallel::ddp, 1, tensor), {}, packed, 0);
      CHECK(tensor * trained_of(rank).elements() == adapter_parameters(s));
    }
  const StepProgram step = step_of(s, plan_of(DataParallel::ddp, 1));
  CHECK(kernels_named(step, "layer.shared.down.lora_b.forward") == 4);
  CHECK(kernels_named(step, "layer.experts.down.lora") == 0);
}

TEST_CASE("layers of other mixers have adapters beside their MLP alone") {
  TransformerShape s = llama(4, 1024, 16, 4, 2048);
  s.delta = {.key_heads = 4, .value_heads = 8, .key_dim = 64, .value_dim = 64};
  s.pattern = {{Mixer::delta, Mlp::dense}, {Mixer::full, Mlp::dense}};
  s.lora = {.rank = 8, .targets = {q, down}};
  CHECK(refusal(s).empty());
  CHECK(adapter_parameters(s) == 2 * 8 * (1024 + 1024) + 4 * 8 * (2048 + 1024));
  const StepProgram step = step_of(s, plan_of(DataParallel::ddp, 1));
  CHECK(kernels_named(step, "layer.attention.q.lora_a.forward") == 2);
  CHECK(kernels_named(step, "layer.mlp.down.lora_a.forward") == 4);
  s.pattern = {{Mixer::delta, Mlp::dense}};
  s.lora.targets = {q};
  CHECK_THAT(refusal(s), Contains("no product that lora_targets names"));
}

TEST_CASE("what adapters of experts read again is kept, and no more") {
  TransformerShape s = llama(1, 1024, 16, 4, 0);
  s.experts = {.count = 8, .per_token = 2, .ffn = 512};
  s.lora = {.rank = 8, .targets = {q}};
  const auto kept = [&](SetOf<LoraTarget> targets) {
    s.lora.targets = targets;
    s.lora.experts = true;
    return memory_of(s, plan_of(DataParallel::ddp, 1), 0, fused()).of("activations").value;
  };
  const std::int64_t rows = 2 * two.micro_batch * two.sequence, none = kept({q});
  CHECK(kept({q, up}) - none == 2 * rows * (1024 + 8));
  CHECK(kept({q, gate, up}) - none == 2 * rows * (1024 + 2 * 8));
  CHECK(kept({q, down}) - none == 2 * rows * (512 + 8));
}

TEST_CASE("what is not modelled is refused with the key to change") {
  TransformerShape experts = llama(4, 1024, 16, 4, 0);
  experts.experts = {.count = 8, .per_token = 2, .ffn = 512};
  experts.lora.rank = 8;
  CHECK(refusal(experts).empty());
  experts.lora.base = LoraBase::nf4;
  CHECK_THAT(refusal(experts), Contains("a.toml:3") && Contains("frozen experts"));
  experts.lora = {.rank = 8, .targets = {q, up}};
  CHECK_THAT(refusal(experts), Contains("where every layer has experts alone"));
  experts.lora.experts = true;
  CHECK(refusal(experts).empty());
  ParallelPlan cut = plan_of(DataParallel::ddp, 1, 2);
  cut.sequence_parallel = true;
  CHECK_THAT(refusal(experts, cut), Contains("tensor ranks cut"));
  CHECK_THAT(refusal(adapted_8b(12), plan_of(DataParallel::ddp, 1, 8)), Contains("lora_rank"));
  CHECK_THAT(refusal(adapted_8b(8, {})), Contains("without targets"));
  TransformerShape bert = bert_large();
  bert.lora.rank = 8;
  CHECK_THAT(refusal(bert), Contains("masked"));
  TransformerShape without_gate = gpt(2, 1024, 16, 4096);
  without_gate.lora = {.rank = 8, .targets = {gate}};
  CHECK_THAT(refusal(without_gate), Contains("without gates"));
}
