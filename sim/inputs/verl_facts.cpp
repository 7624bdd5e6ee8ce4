// verl's command line: the update of the policy is the step that is forecast.
#include <fmt/format.h>

#include <algorithm>

#include "sim/inputs/formats.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/translator.hpp"

namespace stepcast::sim {
namespace {

using Number = std::int64_t;

/// Names and where they were read: other_words.cpp. Defaults are those of v0.7.0 to v0.9.0.
class VerlFacts : public Translator {
 public:
  using Translator::Translator;

  void add(const Catalogue& catalogue) {
    const std::string model = word("actor_rollout_ref.model.path");
    if (!model.empty()) set_model_name(facts_, model, catalogue, source_);
    sequence_ = said("data.max_prompt_length", 512) + said("data.max_response_length", 512);
    set("model.sequence", sequence_);
    megatron_ = is_megatron();
    if (megatron_)
      megatron();
    else
      fsdp();
    batch();
    precision();
    optimizer();
    adapters();
    const Number each = said("trainer.n_gpus_per_node", 8), nodes = said("trainer.nnodes", 1);
    facts_.gpus_per_node = each;
    ranks(each * nodes);
    note(
        "The update of the policy is forecast: sampling, old probabilities, reference and critic "
        "are steps of their own.");
  }

 private:
  Number said(const char* name, Number usual) const { return integer(name).value_or(usual); }
  static std::string actor(const char* name) {
    return "actor_rollout_ref.actor." + std::string(name);
  }
  std::string actor_word(const char* name) const { return word(actor(name).c_str()); }
  Number actor_number(const char* name, Number usual) const {
    return said(actor(name).c_str(), usual);
  }
  bool actor_on(const char* name) const { return on(actor(name).c_str()); }

  bool is_megatron() const {
    for (const char* choice : {"config_name", "model_engine"})
      if (word(choice).find("megatron") != std::string::npos) return true;
    if (actor_word("strategy") == "megatron") return true;
    for (const auto& [name, value] : settings_.all())
      if (name.starts_with("actor_rollout_ref.actor.megatron.")) return true;
    return false;
  }

  void fsdp() {
    const Number ulysses =
        actor_number("ulysses_sequence_parallel_size",
                     actor_number("fsdp_config.ulysses_sequence_parallel_size", 1));
    set("plan.context", ulysses);
    if (ulysses > 1) set("software.context_exchange", std::string("all_to_all"));
    const bool kept = actor_word("fsdp_config.reshard_after_forward") == "False";
    set("plan.data", std::string(kept ? "zero2" : "zero3"));
    if (const Number size = actor_number("fsdp_config.fsdp_size", -1); size > 1)
      set("plan.shard_degree", size);
    const auto checkpoints =
        settings_.flag("actor_rollout_ref.model.enable_gradient_checkpointing");
    set("plan.recompute", std::string(checkpoints.value_or(true) ? "full" : "none"));
    offload("fsdp_config.param_offload", "fsdp_config.optimizer_offload");
    const bool second = actor_word("strategy") == "fsdp2";
    if (second && actor_on("fsdp_config.offload_policy")) {
      facts_.set("plan.optimizer_offload", {1.0, ""}, source_);
      if (!kept) facts_.set("plan.parameter_offload", {1.0, ""}, source_);
    }
    set("software.framework", std::string(second ? "pytorch-fsdp2" : "pytorch-fsdp1"));
    if (second) set("software.version", std::string("2.9"));
  }

  void megatron() {
    for (const auto& [name, key] :
         {std::pair{"megatron.tensor_model_parallel_size", "plan.tensor"},
          {"megatron.pipeline_model_parallel_size", "plan.pipeline"},
          {"megatron.context_parallel_size", "plan.context"},
          {"megatron.expert_model_parallel_size", "plan.expert"},
          {"megatron.expert_tensor_parallel_size", "plan.expert_tensor"},
          {"megatron.virtual_pipeline_model_parallel_size", "plan.virtual_stages"}})
      if (const Number value = actor_number(name, 0); value > 0) set(key, value);
    const auto flag = [&](const char* name, bool usual) {
      return settings_.flag(actor(name)).value_or(usual);
    };
    if (facts_.integer("plan.tensor").value_or(1) > 1)
      set("plan.sequence_parallel", flag("megatron.sequence_parallel", true));
    const bool shards = flag("megatron.use_distributed_optimizer", true);
    set("plan.data", std::string(shards ? "zero1" : "ddp"));
    overrides();
    last_stage();
    offload("megatron.param_offload", "megatron.optimizer_offload");
    add_megatron_plan_parts(facts_, settings_, actor("optim.override_optimizer_config."), source_);
    set("software.framework", std::string("megatron-core"));
  }

  /// Of Megatron core's own configuration of layers.
  void overrides() {
    const std::string prefix = actor("megatron.override_transformer_config.");
    const auto said = [&](const char* name) {
      const std::string* found = settings_.find(prefix + name);
      return found == nullptr ? std::string() : *found;
    };
    const std::string kind = said("recompute_granularity");
    set("plan.recompute", kind.empty() ? std::string("none") : kind);
    if (kind == "full" && (said("recompute_method") == "block" ||
                           settings_.integer(prefix + "recompute_num_layers").value_or(1) > 1))
      note("recompute_method, recompute_num_layers: every layer is taken to be recomputed alone.");
    add_megatron_plan_parts(facts_, settings_, prefix, source_);
    const bool hybrid = said("moe_flex_dispatcher_backend") == "hybridep";
    if (const std::string type = said("moe_token_dispatcher_type"); !type.empty())
      set("plan.dispatcher", std::string(type == "allgather"  ? "all_gather"
                                         : type == "alltoall" ? "all_to_all"
                                         : hybrid             ? "nvlink_domain"
                                                              : "node_aware"));
    for (const auto& [name, key] :
         {std::pair{"moe_permute_fusion", "software.permute_fused"},
          std::pair{"moe_shared_expert_overlap", "plan.shared_expert_overlap"}})
      if (settings_.flag(prefix + name).value_or(false)) set(key, true);
  }

  /// Uneven stages by their ends: the layers between them are shared.
  void last_stage() {
    for (const char* end :
         {"num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"}) {
      const std::string name = "megatron.override_transformer_config." + std::string(end);
      if (const Number layers = actor_number(name.c_str(), 0); layers > 0)
        note(fmt::format("{} = {}: stages are cut evenly where --stages says no other.", name,
                         layers));
    }
  }

  /// It puts them on the host between the phases, not during the update.
  void offload(const char* parameters, const char* optimizer) {
    if (actor_on(parameters) || actor_on(optimizer))
      note("param_offload, optimizer_offload: states are on the GPU while the policy is updated.");
  }

  /// A mini-batch of prompts, each with its answers, is one update.
  void batch() {
    const Number answers = said("actor_rollout_ref.rollout.n", 1);
    const Number prompts = actor_number("ppo_mini_batch_size", 256);
    set("batch.global", prompts * answers);
    const Number all = said("data.train_batch_size", prompts);  // of prompts, sampled at once
    const Number passes = std::max<Number>(1, actor_number("ppo_epochs", 1));
    if (prompts > 0) facts_.updates = std::max<Number>(1, all / prompts) * passes;
    const bool dynamic = actor_on("use_dynamic_bsz");
    const Number split =
        megatron_ ? 1 : facts_.integer("plan.context").value_or(1);  // its tokens are of all ranks
    if (const Number micro = actor_number("ppo_micro_batch_size_per_gpu", 0); micro > 0 && !dynamic)
      return set("batch.micro_batch", micro);
    const Number tokens = actor_number("ppo_max_token_len_per_gpu", 16384) * split;
    set("batch.micro_batch", std::max<Number>(1, tokens / sequence_));
    if (dynamic)
      note(
          fmt::format("use_dynamic_bsz: micro-batches of up to {} tokens are taken as whole "
                      "sequences of {}.",
                      tokens, sequence_));
  }

  void precision() {
    const std::string type = actor_word(megatron_ ? "megatron.dtype" : "fsdp_config.dtype");
    set("precision.compute", std::string(type == "float16"   ? "fp16"
                                         : type == "float32" ? "fp32"
                                                             : "bf16"));
    set("precision.gradient_reduce", std::string("fp32"));
    if (const std::string held = actor_word("fsdp_config.model_dtype");
        !megatron_ && (held == "bf16" || held == "bfloat16"))
      set("precision.masters", false);
  }

  void optimizer() {
    if (const std::string name = actor_word("optim.optimizer"); !name.empty())
      optimizer_called(name);
  }

  /// Beside every product unless it says which.
  void adapters() {
    const Number rank =
        said("actor_rollout_ref.model.lora_rank", said("actor_rollout_ref.model.lora.rank", 0));
    if (rank < 1) return;
    set("model.lora_rank", rank);
    const std::string over = word("actor_rollout_ref.model.lora.target_modules"),
                      list = over.empty() ? word("actor_rollout_ref.model.target_modules") : over;
    const auto has = [&](std::string_view part) { return list.find(part) != std::string::npos; };
    TomlValue::Array targets;
    for (const auto& [target, fused] : {std::pair{"q", "linear_qkv"},
                                        {"k", "linear_qkv"},
                                        {"v", "linear_qkv"},
                                        {"o", "linear_proj"},
                                        {"gate", "linear_fc1"},
                                        {"up", "linear_fc1"},
                                        {"down", "linear_fc2"}})
      if (list.empty() || has("all") || has(std::string(target) + "_proj") || has(fused))
        targets.push_back(toml_text(target, ""));
    if (!targets.empty()) facts_.set("model.lora_targets", {std::move(targets), ""}, source_);
  }

  Number sequence_ = 1024;
  bool megatron_ = false;
};

}  // namespace

void add_verl_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                    const std::string& source) {
  VerlFacts(facts, settings, "", source).add(catalogue);
}

}  // namespace stepcast::sim
