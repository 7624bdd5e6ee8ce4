#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/workloads/step_reading.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/step/recipe_rules.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;
using engine::Op;

namespace {

constexpr Recipe all_recipes[] = {Recipe::fp8_delayed, Recipe::fp8_current, Recipe::fp8_block,
                                  Recipe::mxfp8, Recipe::nvfp4};
constexpr std::int64_t layers = 2, h = 4096, q = 4096, kv = 1024, f = 14336;

TransformerShape shape() { return llama(layers, h, 32, 8, f); }

Precision low(Recipe recipe, bool hopper = false) {
  return {.recipe = recipe, .transposes = hopper};
}

StepProgram megatron(const Precision& precision, std::int64_t micro_batches = 1,
                     ParallelPlan plan = plan_of(DataParallel::ddp, 1)) {
  const Batch batch{.micro_batch = 1, .micro_batches = micro_batches, .sequence = 4096};
  return step_of(shape(), plan, batch, fused(), precision);
}

struct CastCount {
  std::int64_t kernels = 0, bytes = 0;
  friend bool operator==(const CastCount&, const CastCount&) = default;
};

/// Kernels that quantize whose names hold `part` (or do not), per layer.
CastCount quantizing(const StepProgram& step, const std::string& part, bool holds = true) {
  CastCount out;
  for (const auto& i : step.roles[0].instructions) {
    if (i.op != Op::work) continue;
    const Kernel& k = step.kernels[i.arg];
    if (k.family != KernelFamily::quantize || !k.name.starts_with("layer.")) continue;
    if ((k.name.find(part) != std::string::npos) != holds) continue;
    ++out.kernels;
    out.bytes += k.bytes.value;
  }
  REQUIRE(out.kernels % layers == 0);
  return {out.kernels / layers, out.bytes / layers};
}

/// Bytes of a layer's norms forward.
std::int64_t norm_bytes(const StepProgram& step) {
  return (bytes_of_kernels(step, "layer.norm1.forward") +
          bytes_of_kernels(step, "layer.norm2.forward")) /
         layers;
}

constexpr std::int64_t T = 4096;
constexpr std::int64_t inputs = T * (q + f);  // of o and down, which no norm has
constexpr std::int64_t norms = 2 * T * h;     // of q, k, v and of gate, up
constexpr std::int64_t gradients = T * (q + 2 * kv + h + 2 * f + h);
constexpr std::int64_t weights = h * (q + 2 * kv) + q * h + 3 * h * f;

}  // namespace

TEST_CASE(
    "each recipe quantizes inputs and gradients of four products, in the bytes of its kernels") {
  SECTION("delayed: one kernel a tensor; norms write eight bits, which Hopper transposes") {
    const StepProgram hopper = megatron(low(Recipe::fp8_delayed, true));
    CHECK(quantizing(hopper, ".weight.", false) ==
          CastCount{2 + 4 + 2, 4 * inputs + 4 * gradients + 2 * norms});
    CHECK(norm_bytes(hopper) == 3 * norms);
    const StepProgram blackwell = megatron(low(Recipe::fp8_delayed));
    CHECK(quantizing(blackwell, ".weight.", false) == CastCount{2 + 4, 3 * inputs + 3 * gradients});
  }
  SECTION("current: the largest element first, also of what norms write") {
    const StepProgram hopper = megatron(low(Recipe::fp8_current, true));
    CHECK(quantizing(hopper, ".weight.", false) ==
          CastCount{2 * (4 + 4), 6 * (inputs + norms + gradients)});
    CHECK(norm_bytes(hopper) == 4 * norms);
  }
  SECTION("blocks: one kernel, both directions") {
    const std::int64_t n = inputs + norms + gradients;
    CHECK(quantizing(megatron(low(Recipe::fp8_block, true)), ".weight.", false) ==
          CastCount{4 + 4, 4 * n + 2 * n * 4 / 128});
  }
  SECTION("mxfp8: norms write both copies; scales are laid out for each") {
    const StepProgram step = megatron(low(Recipe::mxfp8));
    const std::int64_t n = inputs + gradients;
    CHECK(quantizing(step, ".weight.", false) ==
          CastCount{2 + 4 + 8, 4 * n + 2 * n / 32 + 4 * (n + norms) / 32});
    CHECK(norm_bytes(step) == 2 * norms + 2 * (norms + norms / 32));
  }
  SECTION("nvfp4: largest element, then both copies, columns through a Hadamard transform") {
    const std::int64_t n = inputs + norms + gradients;
    CHECK(quantizing(megatron(low(Recipe::nvfp4)), ".weight.", false) ==
          CastCount{2 * (4 + 4), 5 * n + n / 8});
    CHECK(quantizing(megatron(low(Recipe::nvfp4)), ".hadamard").kernels == 8);
  }
}

TEST_CASE("weights are quantized in the first micro-batch alone, where the software keeps them") {
  for (const std::int64_t micro_batches : {1, 4}) {
    CHECK(quantizing(megatron(low(Recipe::fp8_delayed, true), micro_batches), ".weight.") ==
          CastCount{4, 4 * weights});
    CHECK(quantizing(megatron(low(Recipe::mxfp8), micro_batches), ".weight.") ==
          CastCount{8, 4 * weights + 6 * weights / 32});
  }
  const auto torchao = [](std::int64_t micro_batches) {
    const Batch batch{.micro_batch = 1, .micro_batches = micro_batches, .sequence = 4096};
    return quantizing(step_of(shape(), plan_of(DataParallel::zero2, 2), batch, compiled(),
                              low(Recipe::fp8_current)),
                      ".weight.");
  };
  // Rows in forward, columns in backward, each with its largest element.
  CHECK(torchao(1) == CastCount{2 * 2 * 7, 2 * 5 * weights});
  CHECK(torchao(3).bytes == 3 * torchao(1).bytes);
}

TEST_CASE("products of layers read the recipe's type; the head, attention and sums do not") {
  for (const Recipe recipe : all_recipes) {
    const Precision p = low(recipe);
    std::set<std::string> quantized_products;
    for (const Kernel& k : megatron(p).kernels) {
      if (k.family != KernelFamily::gemm) {
        CHECK((k.family == KernelFamily::quantize || k.dtype == Dtype::bf16 ||
               k.dtype == Dtype::fp32));
        continue;
      }
      const bool of_layer = k.name.starts_with("layer.");
      CHECK(k.dtype == (of_layer ? product_dtype(p) : Dtype::bf16));
      if (of_layer) quantized_products.insert(k.name);
    }
    CHECK(quantized_products.size() == 3 * 4);
  }
}

TEST_CASE("a product reads its operands with their scales and writes 16 bits, or adds to fp32") {
  const StepProgram step = megatron(low(Recipe::mxfp8));
  const auto with_scales = [](std::int64_t n) { return n + n / 32; };
  const std::int64_t width = q + 2 * kv;
  CHECK(bytes_of_kernels(step, "layer.attention.qkv.forward") ==
        layers * (with_scales(T * h) + with_scales(h * width) + 2 * T * width));
  CHECK(bytes_of_kernels(step, "layer.attention.qkv.wgrad") ==
        layers * (with_scales(T * h) + with_scales(T * width) + 8 * h * width));
}

TEST_CASE("a recipe changes no product's FLOPs") {
  for (const Software& software : {eager(), compiled(), fused()})
    for (const std::int64_t tensor : {1, 4}) {
      ParallelPlan plan = plan_of(DataParallel::ddp, 2, tensor);
      plan.sequence_parallel = tensor > 1;
      for (const Recipe recipe : all_recipes)
        CHECK(flops_of(step_of(shape(), plan, two, software, low(recipe)), 0) ==
              flops_of(step_of(shape(), plan, two, software), 0));
    }
}

TEST_CASE("layers that are left in 16 bits are those of a step without the recipe") {
  const StepProgram plain = megatron({});
  Precision p = low(Recipe::mxfp8);
  p.bf16_first_layers = 1;
  p.bf16_last_layers = 1;
  const StepProgram none_left = megatron(p);
  CHECK(none_left.kernels == plain.kernels);
  CHECK(none_left.roles == plain.roles);
  p.bf16_last_layers = 0;
  const StepProgram one_left = megatron(p);
  CHECK(bytes_of_kernels(one_left, "layer.mlp.down.weight.cast") ==
        bytes_of_kernels(megatron(low(Recipe::mxfp8)), "layer.mlp.down.weight.cast") / 2);
}

TEST_CASE("tensor ranks gather quantized inputs and gradients, blocks in 16 bits") {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1, 4);
  plan.sequence_parallel = true;
  const auto bytes = [&](Recipe recipe) {
    const auto all = bytes_by_name(megatron(low(recipe, true), 1, plan));
    return std::vector{all.at("layer.attention.qkv.forward"),
                       all.at("layer.attention.qkv.regather"), all.at("layer.attention.o.backward"),
                       all.at("layer.attention.o.forward")};
  };
  const std::int64_t a = layers * T * h;
  CHECK(bytes(Recipe::none) == std::vector{2 * a, 2 * a, 2 * a, 2 * a});
  CHECK(bytes(Recipe::fp8_delayed) == std::vector{a, a, a, 2 * a});
  CHECK(bytes(Recipe::fp8_current) == std::vector{a, a, a, 2 * a});
  CHECK(bytes(Recipe::fp8_block) == std::vector{2 * a, 2 * a, 2 * a, 2 * a});
  // Rows and columns of a gradient are two tensors.
  const std::int64_t m = a + a / 32;
  CHECK(bytes(Recipe::mxfp8) == std::vector{m, m, 2 * m, 2 * a});
  // One scale for all tensor ranks: of two inputs and two gradients a layer.
  const auto current = bytes_by_name(megatron(low(Recipe::fp8_current, true), 1, plan));
  std::int64_t shared = 0;
  for (const auto& [name, moved] : current)
    if (name.starts_with("layer.") && name.ends_with(".amax")) shared += moved;
  CHECK(shared == layers * 4 * 4);
}

TEST_CASE("delayed scaling shares the largest elements of a step once, of three operands each") {
  const auto moved =
      bytes_by_name(megatron(low(Recipe::fp8_delayed), 4, plan_of(DataParallel::zero1, 8)));
  CHECK(moved.at("operands.amax.reduce") == 4 * 3 * 4 * layers);
  CHECK(bytes_by_name(megatron(low(Recipe::fp8_current), 4, plan_of(DataParallel::zero1, 8)))
            .count("operands.amax.reduce") == 0);
}

TEST_CASE("weights kept in eight bits are gathered so, and Hopper transposes them") {
  const ParallelPlan plan = plan_of(DataParallel::zero1, 8);
  const auto gathered = [&](const Precision& p) {
    return bytes_by_name(megatron(p, 2, plan)).at("parameters.gather");
  };
  Precision p = low(Recipe::fp8_delayed, true);
  const std::int64_t wide = gathered(p);
  p.fp8_parameters = true;
  CHECK(wide - gathered(p) == layers * weights);
  CHECK(quantizing(megatron(p, 2, plan), ".weight.") == CastCount{4, 2 * weights});
  p.transposes = false;
  CHECK(quantizing(megatron(p, 2, plan), ".weight.") == CastCount{});
  // The optimizer writes a byte in the place of two.
  const auto written = [&](const Precision& of) {
    return bytes_of_kernels(megatron(of, 2, plan), "adamw.cast");
  };
  CHECK(written(low(Recipe::fp8_delayed)) - written(p) == layers * weights / 8);
  // mxfp8's two copies are not each other's transpose: 16 bits are gathered.
  p = low(Recipe::mxfp8);
  p.fp8_parameters = true;
  CHECK(gathered(p) == wide);
  CHECK(quantizing(megatron(p, 2, plan), ".weight.").kernels == 8);
}

TEST_CASE("FSDP2 gathers weights in eight bits after one all-reduce of their scales") {
  Precision p = low(Recipe::fp8_current, true);
  p.fp8_parameters = true;
  const ParallelPlan plan = plan_of(DataParallel::zero3, 8);
  const StepProgram step = step_of(shape(), plan, two, compiled(), p);
  const StepProgram wide = step_of(shape(), plan, two, compiled(), low(Recipe::fp8_current, true));
  const auto moved = bytes_by_name(step);
  CHECK(bytes_by_name(wide).at("layer.gather") - moved.at("layer.gather") == 2 * layers * weights);
  CHECK(moved.at("root.gather") == bytes_by_name(wide).at("root.gather"));
  CHECK(moved.at("parameters.amax.reduce") == 4 * 7 * layers);
  CHECK(quantizing(step, ".weight.") == CastCount{7, 2 * weights});  // dgrad's, transposed
}

TEST_CASE("the precision-aware optimizer moves 22 bytes a parameter, 20 with 16-bit gradients") {
  const auto adam = [&](const Precision& p) {
    const StepProgram step = megatron(p, 1, plan_of(DataParallel::zero1, 1));
    return static_cast<double>(bytes_of_kernels(step, "adamw.") +
                               bytes_of_kernels(step, "gradients.widen"));
  };
  const double n = adam({}) / 34;  // 28, and 4 + 2 for the weights
  CHECK(adam({.moments = Dtype::bf16}) == Approx(22 * n).epsilon(1e-8));
  CHECK(adam({.gradient_reduce = Dtype::bf16, .moments = Dtype::bf16}) ==
        Approx(20 * n).epsilon(1e-8));
}

TEST_CASE("what a recipe cannot be is refused by name") {
  const auto refusal = [](auto change) -> std::string {
    TransformerShape s = shape();
    ParallelPlan plan = plan_of(DataParallel::zero1, 2);
    Batch batch = two;
    Precision p = low(Recipe::fp8_delayed);
    Software software = fused();
    for (const Recipe recipe : all_recipes) software.products.recipes.add(recipe);
    change(s, plan, p, software);
    const auto* rule = broken_rule(recipe_rules(), RecipeCase{s, plan, batch, p, software});
    return rule == nullptr ? "" : std::string(rule->knob);
  };
  CHECK(refusal([](auto&...) {}).empty());
  CHECK(refusal([](auto&, auto&, auto&, Software& s) { s.products.recipes = {}; }) == "recipe");
  CHECK(refusal([](auto&, auto&, Precision& p, auto&) { p.compute = Dtype::fp16; }) == "compute");
  CHECK(refusal([](auto& s, auto&, auto&, auto&) { s.ffn_hidden = 1000; }) == "tensor");
  CHECK(refusal([](auto&, auto&, Precision& p, auto&) { p.bf16_first_layers = 3; }) ==
        "bf16_first_layers");
  CHECK(refusal([](auto&, ParallelPlan& plan, auto&, auto&) {
          plan.recompute_modules.add(LayerModule::expert_activation);
        }) == "recompute_modules");
  CHECK(refusal([](auto&, ParallelPlan& plan, Precision& p, auto&) {
          plan.data = DataParallel::ddp;
          p.fp8_parameters = true;
        }) == "fp8_parameters");
  CHECK(refusal([](auto&, auto&, Precision& p, auto&) {
          p.recipe = Recipe::fp8_block;
          p.fp8_parameters = true;
        }) == "fp8_parameters");
  CHECK(refusal([](auto&, auto&, Precision& p, auto&) { p.moments = Dtype::bf16; }) == "moments");
}
