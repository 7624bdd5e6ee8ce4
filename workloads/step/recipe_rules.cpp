#include "workloads/step/recipe_rules.hpp"

#include <string>

#include "workloads/pieces/piece.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/plan/optimizer.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {
namespace {

using Tried = const RecipeCase&;

constexpr Recipe every_recipe[] = {Recipe::fp8_delayed, Recipe::fp8_current, Recipe::fp8_block,
                                   Recipe::mxfp8, Recipe::nvfp4};

std::string word(Recipe recipe) { return std::string(name_of(recipe)); }

bool on(Tried a) { return a.precision.recipe != Recipe::none; }
bool keeps_low(Tried a) { return on(a) && a.precision.fp8_parameters; }
bool bf16_moments(Tried a) { return a.precision.moments == Dtype::bf16; }
bool sharded(Tried a) {
  return StepInputs{a.shape, a.plan, a.batch, a.precision, a.software}.sharded();
}

std::string framework(Tried a) { return a.software.framework + " " + a.software.version; }

bool other_form(Tried a) { return a.plan.optimizer != Optimizer::adam; }
std::string form(Tried a) {
  return "optimizer = \"" + std::string(name_of(a.plan.optimizer)) + "\"";
}

std::string recipe_hint(Tried a) {
  if (a.software.products.recipes.empty())
    return "Transformer Engine (megatron-core, nemo) and torchao (torchtitan) have";
  std::string out;
  for (const Recipe recipe : every_recipe)
    if (a.software.products.recipes.has(recipe)) out += (out.empty() ? "" : ", ") + word(recipe);
  return "it has " + out;
}

/// Elements of a row that quantized products are made for: 16 bytes of eight bits, blocks of 32
/// (Transformer Engine's assert_dim_for_fp8_exec(), and the blocks of mxfp8; recalled, 2026).
std::int64_t multiple(Tried a) { return a.precision.recipe == Recipe::mxfp8 ? 32 : 16; }

std::int64_t tokens(Tried a) {
  const std::int64_t whole = a.batch.micro_batch * a.batch.sequence / a.plan.context;
  return a.plan.sequence_parallel ? whole / a.plan.tensor : whole;
}

/// The first width of a layer's products on a tensor rank that is no multiple; 0: all are.
std::int64_t odd_width(Tried a) {
  const RankWidths rank(a.shape, a.plan.tensor);
  for (const std::int64_t width : {a.shape.hidden, rank.query, rank.query + 2 * rank.kv, rank.ffn})
    if (width % multiple(a) != 0) return width;
  return 0;
}

constexpr Rule<RecipeCase> rules_of_recipes[] = {
    {"recipe", [](Tried a) { return on(a) && adapted(a.shape); },
     [](Tried a) {
       return "recipe \"" + word(a.precision.recipe) + "\" beside adapters is not modelled";
     },
     [](Tried) { return std::string("leave it out; lora_base is the type of frozen weights"); }},
    {"recipe",
     [](Tried a) { return on(a) && !a.software.products.recipes.has(a.precision.recipe); },
     [](Tried a) {
       return framework(a) + " has no recipe \"" + word(a.precision.recipe) + "\" of low precision";
     },
     recipe_hint},
    {"tensor_overlap",
     [](Tried a) {
       return on(a) && a.plan.tensor_overlap != TensorOverlap::none && a.plan.tensor > 1 &&
              !gathers_quantized(a.precision);
     },
     [](Tried a) {
       return "tensor_overlap = \"" + std::string(name_of(a.plan.tensor_overlap)) +
              "\" with recipe \"" + word(a.precision.recipe) + "\"";
     },
     [](Tried) {
       return std::string(
           "it quantizes what has been gathered whole; fp8 per tensor and mxfp8 do "
           "so before");
     }},
    {"compute", [](Tried a) { return on(a) && a.precision.compute != Dtype::bf16; },
     [](Tried a) {
       return "recipe \"" + word(a.precision.recipe) + "\" with activations that are not bf16";
     },
     [](Tried) { return std::string("recipes quantize from bf16: compute = \"bf16\""); }},
    {"bf16_first_layers",
     [](Tried a) {
       return a.precision.bf16_first_layers + a.precision.bf16_last_layers > a.shape.layers;
     },
     [](Tried a) {
       return "bf16_first_layers and bf16_last_layers are more than the " +
              std::to_string(a.shape.layers) + " layers of the model";
     },
     [](Tried) { return std::string("leave layers to the recipe"); }},
    {"tensor", [](Tried a) { return on(a) && odd_width(a) != 0; },
     [](Tried a) {
       return "a tensor rank has a product of width " + std::to_string(odd_width(a)) +
              ", recipe \"" + word(a.precision.recipe) + "\" needs multiples of " +
              std::to_string(multiple(a));
     },
     [](Tried) { return std::string("take a smaller tensor degree or another recipe"); }},
    {"micro_batch", [](Tried a) { return on(a) && tokens(a) % multiple(a) != 0; },
     [](Tried a) {
       return "a rank has " + std::to_string(tokens(a)) + " tokens, recipe \"" +
              word(a.precision.recipe) + "\" needs multiples of " + std::to_string(multiple(a));
     },
     [](Tried) { return std::string("take another sequence length or degree"); }},
    // Its scales would see the activation twice (Megatron arguments.py; recalled, 2026).
    {"recompute_modules",
     [](Tried a) {
       return a.precision.recipe == Recipe::fp8_delayed &&
              a.plan.recompute_modules.has(LayerModule::expert_activation);
     },
     [](Tried) { return std::string("moe_act is recomputed under recipe \"fp8_delayed\""); },
     [](Tried) {
       return std::string("Megatron refuses it: take fp8_current, fp8_block or mxfp8");
     }},
    {"fp8_parameters", [](Tried a) { return keeps_low(a) && a.plan.data == DataParallel::ddp; },
     [](Tried) { return std::string("fp8_parameters with data = \"ddp\""); },
     [](Tried) {
       return std::string("what shards gathers them: zero1 of Megatron, zero2 and zero3 of FSDP2");
     }},
    {"fp8_parameters",
     [](Tried a) { return keeps_low(a) && a.precision.recipe == Recipe::fp8_block; },
     [](Tried) { return std::string("fp8_parameters with recipe \"fp8_block\""); },
     [](Tried) { return std::string("shipped recipes gather its weights in bf16"); }},
    {"fp8_parameters",
     [](Tried a) {
       return keeps_low(a) && sharded(a) && a.precision.recipe != Recipe::fp8_current;
     },
     [](Tried a) {
       return "fp8_parameters with recipe \"" + word(a.precision.recipe) +
              "\" and parameters that are sharded";
     },
     [](Tried) { return std::string("FSDP2's gather of eight bits is of fp8_current alone"); }},
    {"masters",
     [](Tried a) {
       return !a.precision.masters &&
              (bytes_per_element(a.precision.compute) != 2 || a.software.fused() ||
               a.software.own() || a.software.data.autocast || a.precision.recipe != Recipe::none ||
               a.software.optimizer.lamb());
     },
     [](Tried a) { return "masters = false with " + framework(a); },
     [](Tried) {
       return std::string("a model loaded in bf16 and trained so: torch's Adam, no recipe");
     }},
    {"moments", [](Tried a) { return bf16_moments(a) && !a.precision.masters; },
     [](Tried) { return std::string("moments beside masters = false"); },
     [](Tried) { return std::string("moments are of the weights' type then"); }},
    {"moments", [](Tried a) { return bf16_moments(a) && !a.software.optimizer.bf16_moments; },
     [](Tried a) { return framework(a) + " keeps no moments in bf16"; },
     [](Tried) {
       return std::string("Megatron core's precision-aware optimizer does (megatron-core, nemo)");
     }},
    {"moments", [](Tried a) { return bf16_moments(a) && a.plan.data != DataParallel::zero1; },
     [](Tried) { return std::string("moments = \"bf16\" without the distributed optimizer"); },
     [](Tried) {
       return std::string("the precision-aware optimizer is part of it: data = \"zero1\"");
     }},
    {"optimizer",
     [](Tried a) { return other_form(a) && (a.software.own() || a.software.optimizer.lamb()); },
     [](Tried a) { return form(a) + " with " + framework(a); },
     [](Tried) { return std::string("our trainer has Adam alone, LAMB is a form of its own"); }},
    {"optimizer",
     [](Tried a) {
       return a.software.fused() && (a.plan.optimizer == Optimizer::adam_8bit ||
                                     a.plan.optimizer == Optimizer::adafactor);
     },
     [](Tried a) { return form(a) + " with " + framework(a); },
     [](Tried) { return std::string("Megatron core has adam, sgd and, from 0.16 on, muon"); }},
    {"optimizer", [](Tried a) { return other_form(a) && bf16_moments(a); },
     [](Tried a) { return "moments = \"bf16\" beside " + form(a); },
     [](Tried) { return std::string("the precision-aware optimizer is Adam"); }},
    {"optimizer", [](Tried a) { return other_form(a) && a.plan.offload.optimizer > 0.0; },
     [](Tried a) { return "optimizer_offload with " + form(a); },
     [](Tried) { return std::string("the host's processors run Adam"); }},
    {"optimizer",
     [](Tried a) {
       const bool flat =
           sharded(a) ? a.software.data.flat_parameters != FlatParameters::fsdp2
                      : a.plan.data == DataParallel::zero2 || a.plan.data == DataParallel::zero3;
       return a.plan.optimizer == Optimizer::muon && flat;
     },
     [](Tried a) { return form(a) + " with the shards of " + framework(a); },
     [](Tried) {
       return std::string(
           "Muon takes whole matrices: data = \"ddp\", \"zero1\", or FSDP2's shards");
     }},
    {"optimizer_in_backward",
     [](Tried a) {
       return a.plan.optimizer_in_backward &&
              (a.batch.micro_batches > 1 || a.plan.pipeline > 1 ||
               a.plan.optimizer == Optimizer::muon || a.plan.offload.optimizer > 0.0);
     },
     [](Tried) {
       return std::string(
           "optimizer_in_backward with several micro-batches, pipeline stages, Muon or offload");
     },
     [](Tried) {
       return std::string(
           "a gradient is used up where it is made: micro_batches = 1, pipeline = 1");
     }},
    {"optimizer_in_backward",
     [](Tried a) {
       const bool wide = a.precision.masters && bytes_per_element(a.precision.compute) < 4;
       return a.plan.optimizer_in_backward &&
              (a.software.fused() || a.software.own() || a.software.data.autocast ||
               a.software.optimizer.lamb() ||
               (!sharded(a) && (wide || a.plan.copies() > 1 || a.plan.data != DataParallel::ddp)));
     },
     [](Tried a) { return "optimizer_in_backward with " + framework(a) + " and this plan"; },
     [](Tried) {
       return std::string(
           "torch's hooks on single gradients do that (torchtune): FSDP's shards, or one GPU with "
           "masters = false");
     }},
};

}  // namespace

std::span<const Rule<RecipeCase>> recipe_rules() { return rules_of_recipes; }

}  // namespace stepcast::workloads
