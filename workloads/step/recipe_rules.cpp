#include "workloads/step/recipe_rules.hpp"

#include <string>

#include "workloads/pieces/piece.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {
namespace {

using Asked = const RecipeCase&;

constexpr Recipe all[] = {Recipe::fp8_delayed, Recipe::fp8_current, Recipe::fp8_block,
                          Recipe::mxfp8, Recipe::nvfp4};

std::string word(Recipe recipe) { return std::string(name_of(recipe)); }

bool on(Asked a) { return a.precision.recipe != Recipe::none; }
bool keeps_low(Asked a) { return on(a) && a.precision.fp8_parameters; }
bool bf16_moments(Asked a) { return a.precision.moments == Dtype::bf16; }
bool sharded(Asked a) {
  return StepInputs{a.shape, a.plan, a.batch, a.precision, a.software}.sharded();
}

std::string framework(Asked a) { return a.software.framework + " " + a.software.version; }

std::string runs_hint(Asked a) {
  if (a.software.products.recipes.empty())
    return "Transformer Engine (megatron-core, nemo) and torchao (torchtitan) have";
  std::string out;
  for (const Recipe recipe : all)
    if (a.software.products.recipes.has(recipe)) out += (out.empty() ? "" : ", ") + word(recipe);
  return "it has " + out;
}

/// Elements of a row that quantized products are made for: 16 bytes of eight bits, blocks of 32
/// (Transformer Engine's assert_dim_for_fp8_exec(), and the blocks of mxfp8; recalled, 2026).
std::int64_t multiple(Asked a) { return a.precision.recipe == Recipe::mxfp8 ? 32 : 16; }

std::int64_t tokens(Asked a) {
  const std::int64_t whole = a.batch.micro_batch * a.batch.sequence / a.plan.context;
  return a.plan.sequence_parallel ? whole / a.plan.tensor : whole;
}

/// The first width of a layer's products on a tensor rank that is no multiple; 0: all are.
std::int64_t odd_width(Asked a) {
  const RankWidths rank(a.shape, a.plan.tensor);
  for (const std::int64_t width : {a.shape.hidden, rank.query, rank.query + 2 * rank.kv, rank.ffn})
    if (width % multiple(a) != 0) return width;
  return 0;
}

constexpr Rule<RecipeCase> rules_of_recipes[] = {
    {"recipe",
     [](Asked a) { return on(a) && !a.software.products.recipes.has(a.precision.recipe); },
     [](Asked a) {
       return framework(a) + " has no recipe \"" + word(a.precision.recipe) + "\" of low precision";
     },
     runs_hint},
    {"tensor_overlap",
     [](Asked a) {
       return on(a) && a.plan.tensor_overlap != TensorOverlap::none && a.plan.tensor > 1 &&
              !gathers_quantized(a.precision);
     },
     [](Asked a) {
       return "tensor_overlap = \"" + std::string(name_of(a.plan.tensor_overlap)) +
              "\" with recipe \"" + word(a.precision.recipe) + "\"";
     },
     [](Asked) {
       return std::string(
           "it quantizes what has been gathered whole; fp8 per tensor and mxfp8 do "
           "so before");
     }},
    {"compute", [](Asked a) { return on(a) && a.precision.compute != Dtype::bf16; },
     [](Asked a) {
       return "recipe \"" + word(a.precision.recipe) + "\" with activations that are not bf16";
     },
     [](Asked) { return std::string("recipes quantize from bf16: compute = \"bf16\""); }},
    {"bf16_first_layers",
     [](Asked a) {
       return a.precision.bf16_first_layers + a.precision.bf16_last_layers > a.shape.layers;
     },
     [](Asked a) {
       return "bf16_first_layers and bf16_last_layers are more than the " +
              std::to_string(a.shape.layers) + " layers of the model";
     },
     [](Asked) { return std::string("leave layers to the recipe"); }},
    {"tensor", [](Asked a) { return on(a) && odd_width(a) != 0; },
     [](Asked a) {
       return "a tensor rank has a product of width " + std::to_string(odd_width(a)) +
              ", recipe \"" + word(a.precision.recipe) + "\" needs multiples of " +
              std::to_string(multiple(a));
     },
     [](Asked) { return std::string("take a smaller tensor degree or another recipe"); }},
    {"micro_batch", [](Asked a) { return on(a) && tokens(a) % multiple(a) != 0; },
     [](Asked a) {
       return "a rank has " + std::to_string(tokens(a)) + " tokens, recipe \"" +
              word(a.precision.recipe) + "\" needs multiples of " + std::to_string(multiple(a));
     },
     [](Asked) { return std::string("take another sequence length or degree"); }},
    // Its scales would see the activation twice (Megatron arguments.py; recalled, 2026).
    {"recompute_modules",
     [](Asked a) {
       return a.precision.recipe == Recipe::fp8_delayed &&
              a.plan.recompute_modules.has(LayerModule::expert_activation);
     },
     [](Asked) { return std::string("moe_act is recomputed under recipe \"fp8_delayed\""); },
     [](Asked) {
       return std::string("Megatron refuses it: take fp8_current, fp8_block or mxfp8");
     }},
    {"fp8_parameters", [](Asked a) { return keeps_low(a) && a.plan.data == DataParallel::ddp; },
     [](Asked) { return std::string("fp8_parameters with data = \"ddp\""); },
     [](Asked) {
       return std::string("what shards gathers them: zero1 of Megatron, zero2 and zero3 of FSDP2");
     }},
    {"fp8_parameters",
     [](Asked a) { return keeps_low(a) && a.precision.recipe == Recipe::fp8_block; },
     [](Asked) { return std::string("fp8_parameters with recipe \"fp8_block\""); },
     [](Asked) { return std::string("shipped recipes gather its weights in bf16"); }},
    {"fp8_parameters",
     [](Asked a) {
       return keeps_low(a) && sharded(a) && a.precision.recipe != Recipe::fp8_current;
     },
     [](Asked a) {
       return "fp8_parameters with recipe \"" + word(a.precision.recipe) +
              "\" and parameters that are sharded";
     },
     [](Asked) { return std::string("FSDP2's gather of eight bits is of fp8_current alone"); }},
    {"moments", [](Asked a) { return bf16_moments(a) && !a.software.optimizer.bf16_moments; },
     [](Asked a) { return framework(a) + " keeps no moments in bf16"; },
     [](Asked) {
       return std::string("Megatron core's precision-aware optimizer does (megatron-core, nemo)");
     }},
    {"moments", [](Asked a) { return bf16_moments(a) && a.plan.data != DataParallel::zero1; },
     [](Asked) { return std::string("moments = \"bf16\" without the distributed optimizer"); },
     [](Asked) {
       return std::string("the precision-aware optimizer is part of it: data = \"zero1\"");
     }},
};

}  // namespace

std::span<const Rule<RecipeCase>> recipe_rules() { return rules_of_recipes; }

}  // namespace stepcast::workloads
