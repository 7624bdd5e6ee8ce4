// Megatron-Bridge's YAML, KEY=VALUE and command line: what is laid over a recipe. What no file says
// is as in the recipe, where that is known (sim/launch/bridge_registry.hpp).
#include <algorithm>
#include <string_view>

#include "sim/inputs/formats.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/recipe_source.hpp"
#include "sim/inputs/translator.hpp"
#include "sim/inputs/vocabulary.hpp"
#include "sim/launch/bridge_registry.hpp"
#include "sim/scenario/stage_layout.hpp"

namespace stepcast::sim {
namespace {

class BridgeFacts : public Translator {
 public:
  using Translator::Translator;

  void add(const Catalogue& catalogue) {
    const std::string recipe = !word("recipe").empty() ? word("recipe") : word("model");
    const bool named = settings_.has("recipe") || settings_.has("model");
    if (named && !settings_.has("model.num_layers"))
      as_in_recipe(recipe,
                   recipe.find("pretrain") != std::string::npos ||
                       (settings_.has("model") && word("mode") == "pretrain"),
                   catalogue);
    else if (!settings_.has("model.num_layers"))
      model_of_files(catalogue);
    if (settings_.has("model.num_layers")) provider();
    take(bridge_words());
    if (facts_.find("model.layers") != nullptr) add_model_name(facts_, catalogue, source_);
    data();
    recompute();
    for (const char* prefix : {"model.", "optimizer."})
      add_megatron_plan_parts(facts_, settings_, prefix, source_);
    optimizer();
    precision();
    rest();
    adapters(catalogue);
    machine();
    set("software.framework", std::string("nemo"));
  }

 private:
  /// The model of its recipe, and, of one for pre-training, its plan.
  void as_in_recipe(const std::string& function, bool pretrains, const Catalogue& catalogue) {
    const BridgeRecipe* known = bridge_recipe_named(function);
    set_model_name(facts_, std::string(known != nullptr ? known->model : model_of(function)),
                   catalogue, source_);
    for (const char* part : {"_vl", "omni", "45v", "audio"})
      if (function.find(part) != std::string::npos)
        note("Of " + function +
             " the layers of text are forecast, not what reads images or sound.");
    if (const std::string* file = settings_.find(std::string(recipe_source)))
      return note("What the script does not say is as in " + function + ", which " + *file +
                  " of this checkout has.");
    if (known == nullptr) return;
    constexpr std::string_view whole[] = {"qwen", "nemotronh", "moonlight"};  // for SFT too
    if (known->expert > 1 &&
        (pretrains || std::ranges::find(whole, known->family) != std::end(whole)))
      set("plan.expert_tensor", std::int64_t{1});
    if (!pretrains) return;
    for (const auto& [key, value] : {std::pair{"model.sequence", known->sequence},
                                     {"batch.global", known->global},
                                     {"batch.micro_batch", known->micro},
                                     {"plan.tensor", known->tensor},
                                     {"plan.pipeline", known->pipeline},
                                     {"plan.virtual_stages", known->virtual_stages},
                                     {"plan.context", known->context}})
      set(key, value);
    if (known->expert > 1) set("plan.expert", known->expert);
    if (known->tensor > 1) set("plan.sequence_parallel", known->sequence_parallel);
    if (!known->recompute.empty()) set("plan.recompute", std::string(known->recompute));
    note("What the files do not say is as in " + pretrain_function(*known) +
         " of Megatron-Bridge v0.5.0 (2026-06).");
  }

  /// The id that its source has, where that lies beside.
  std::string model_of(const std::string& function) const {
    const std::string id = word("model.hf_model_id");
    return settings_.has(std::string(recipe_source)) && !id.empty()
               ? id
               : std::string(recipe_stem(function));
  }

  /// An id or checkpoint that is named, else a file that is called after a model.
  void model_of_files(const Catalogue& catalogue) {
    for (const char* name : {"model.hf_model_id", "hf_path", "checkpoint.pretrained_checkpoint"})
      if (const std::string model = word(name); !model.empty() && model[0] != '<')
        return set_model_name(facts_, model, catalogue, source_);
    const std::string stem = model_in_file_name(source_, catalogue);
    if (stem.empty()) return;
    note("The model is not said: " + stem + ", which the file is called after.");
    as_in_recipe(stem, source_.find("pretrain") != std::string::npos, catalogue);
  }

  /// The model by its shape, whose fields are called as Megatron-LM's arguments are.
  void provider() {
    Settings shape;
    for (const auto& [name, value] : settings_.all())
      if (name.starts_with("model.")) shape.set(name, value);
    shape.set_usual("model.swiglu", on("model.gated_linear_unit") ? "True" : "False");
    if (word("model.activation_func").find("squared_relu") != std::string::npos)
      shape.set("model.squared_relu", "True");
    add_megatron_facts(facts_, shape, "model.", source_);
    facts_.erase("software.version");
    const bool gemma = word("model").starts_with("Gemma3");
    if (word("model.transformer_layer_spec") == "layers_with_norms_behind") {
      set("model.norm_place", std::string("behind"));
      set("model.qk_norm_whole", true);
      facts_.erase("model.qk_norm");
    } else if (gemma) {
      gemma3();
    }
  }

  /// What Gemma3ModelProvider has where nothing is said.
  void gemma3() {
    set("model.norm", std::string("rmsnorm"));
    set("model.activation", std::string("swiglu"));
    set("model.norm_place", std::string("both"));
    set("model.qk_norm", true);
    set("model.rope", true);
    set("model.biases", false);
    set("model.dropout", false);
    set("model.tied_embeddings", true);
    set("model.layer_pattern", std::string("W- W- W- W- W- *-"));
    if (const auto window = integer("model.window_size")) set("model.window", *window);
  }

  /// Of a recipe of that name, rank 32 beside every product, or as it is said (recipes/common.py at
  /// v0.5.0 to v0.6.0).
  void adapters(const Catalogue& catalogue) {
    const std::string recipe = word("recipe"), scheme = word("peft_scheme");
    const bool named = recipe.find("_peft") != std::string::npos ||
                       recipe.find("_lora") != std::string::npos ||
                       recipe.find("_dora") != std::string::npos;
    if (!named && !integer("peft.dim") && (scheme.empty() || scheme == "none")) return;
    constexpr std::int64_t usual = 32;
    set("model.lora_rank", integer("peft.dim").value_or(usual));
    const bool gated = activation(catalogue) != "squared_relu";
    if (adapter_targets(word("peft.target_modules"), gated) &&
        has_experts(facts_, catalogue, source_))
      set("model.lora_experts", true);  // a rank's share one
    if (settings_.number("peft.dropout").value_or(0.0) > 0) set("model.lora_dropout", true);
    further_tokens_beside_adapters(catalogue);
    if (recipe.find("_dora") != std::string::npos || scheme == "dora")
      note("DoRA is taken as LoRA: its norms of whole weights are left out.");
  }

  void further_tokens_beside_adapters(const Catalogue& catalogue) {
    const auto modules = facts_.integer("model.mtp_layers");
    const bool said = modules.value_or(0) > 0;
    if (modules && !said) return;
    without_further_tokens(facts_, catalogue, source_);
    if (said) set("model.mtp_layers", std::int64_t{0});
    if (facts_.find("model.mtp_layers") != nullptr)
      note(
          "Adapters beside a module for further tokens (MTP) are not modelled: the step is "
          "forecast "
          "without the module, a layer and a head less.");
  }

  /// Of the model by its name, where no file says its shape.
  std::string activation(const Catalogue& catalogue) const {
    const TomlValue *name = facts_.find("model.name"), *found = facts_.find("model.activation");
    if (name != nullptr && name->text() != nullptr && catalogue.has("models", *name->text()))
      found = catalogue.entry("models", *name->text(), source_).find("activation");
    return found == nullptr || found->text() == nullptr ? "" : *found->text();
  }

  void data() {
    const auto shards = settings_.flag("ddp.use_distributed_optimizer");
    set("plan.data", std::string(shards.value_or(true) ? "zero1" : "ddp"));
  }

  void recompute() {
    const std::string* kind = settings_.find("model.recompute_granularity");
    const bool said = settings_.all().contains("model.recompute_granularity");
    if (kind != nullptr)
      set("plan.recompute", *kind);
    else if (said || facts_.find("plan.recompute") == nullptr)
      set("plan.recompute", std::string("none"));
    if (word("model.recompute_granularity") != "full") return;
    if (word("model.recompute_method") == "block" ||
        integer("model.recompute_num_layers").value_or(1) > 1)
      note(
          "recompute_method, recompute_num_layers: every layer is taken to be recomputed on its "
          "own.");
  }

  void optimizer() {
    const std::string name = word("optimizer.optimizer");
    if (name == "sgd" || name == "muon")
      set("plan.optimizer", name);
    else if (!name.empty() && name != "adam")
      note("optimizer.optimizer = " + name + ": another optimizer than Adam, which is taken.");
    const std::string moments = word("optimizer.exp_avg_dtype");
    if (on("optimizer.use_precision_aware_optimizer") && !moments.empty())
      set("precision.moments",
          std::string(moments.find("bf") != std::string::npos ? "bf16" : "fp32"));
  }

  void precision() {
    const std::string mixed = word("mixed_precision");
    const auto has = [&](const char* part) { return mixed.find(part) != std::string::npos; };
    if (has("fp16")) set("precision.compute", std::string("fp16"));
    for (const auto& [part, recipe] : {std::pair{"nvfp4", "nvfp4"},
                                       {"mxfp8", "mxfp8"},
                                       {"fp8_subchannel", "fp8_block"},
                                       {"fp8_current", "fp8_current"},
                                       {"fp8", "fp8_delayed"}})
      if (has(part)) {
        set("precision.recipe", std::string(recipe));
        break;
      }
    if (const auto wide = settings_.flag("ddp.grad_reduce_in_fp32"))
      set("precision.gradient_reduce", std::string(*wide ? "fp32" : has("fp16") ? "fp16" : "bf16"));
  }

  void rest() {
    const std::string type = word("model.moe_token_dispatcher_type");
    const bool hybrid = word("model.moe_flex_dispatcher_backend") == "hybridep";
    if (!type.empty())
      set("plan.dispatcher", std::string(type == "allgather"  ? "all_gather"
                                         : type == "alltoall" ? "all_to_all"
                                         : hybrid             ? "nvlink_domain"
                                                              : "node_aware"));
    if (settings_.all().contains("model.mtp_num_layers"))
      set("model.mtp_layers", integer("model.mtp_num_layers").value_or(0));
    if (on("model.moe_router_force_load_balancing")) set("routing.kind", std::string("balanced"));
    if (on("comm_overlap.tp_comm_overlap")) set("plan.tensor_overlap", std::string("userbuffers"));
    for (const char* key :
         {"plan.shared_expert_overlap", "plan.expert_overlap", "plan.delay_wgrad"})
      if (const TomlValue* found = facts_.find(key);
          found != nullptr && !std::get<bool>(found->data))
        facts_.erase(key);
    const std::string layout = word("model.pipeline_model_parallel_layout");
    const bool made = settings_.has(std::string(recipe_source)) &&
                      layout.find_first_not_of("EtmL|*()0123456789,") != std::string::npos;
    if (made)
      note("pipeline_model_parallel_layout is made by code: the stages are taken as even.");
    else if (!layout.empty() && layout.find('$') == std::string::npos)
      set_parts(facts_, parse_stage_layout(layout, source_).layers, source_);
  }

  void machine() {
    const auto each = integer("nproc_per_node");
    if (!each) return;
    facts_.gpus_per_node = *each;
    ranks(*each * integer("nnodes").value_or(1));
  }
};

}  // namespace

void add_bridge_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                      const std::string& source) {
  BridgeFacts(facts, settings, "", source).add(catalogue);
}

}  // namespace stepcast::sim
