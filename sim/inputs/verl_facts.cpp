// verl's command line: the update of the policy is the step that is forecast.
#include <fmt/format.h>

#include <algorithm>

#include "sim/inputs/formats.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/translator.hpp"
#include "sim/launch/verl_names.hpp"

namespace stepcast::sim {
namespace {

using Number = std::int64_t;

/// Names and where they were read: verl_words.cpp. Defaults are those of v0.7.0 to v0.9.0.
class VerlFacts : public Translator {
 public:
  VerlFacts(Facts& facts, const Settings& settings, const std::string& source,
            const VerlNames& names)
      : Translator(facts, settings, "", source), names_(names) {}

  void policy(const Catalogue& catalogue) {
    sequence_ = said("data.max_prompt_length", 512) + said("data.max_response_length", 512);
    megatron_ = is_megatron();
    const Number each = said("trainer.n_gpus_per_node", 8), nodes = said("trainer.nnodes", 1);
    facts_.gpus_per_node = each;
    ranks(each * nodes);
    model(catalogue, "path");
    layout(catalogue);
    loss_of_policies();
    updates();
    policy_micro_batch();
    rest(catalogue);
    note(
        "The update of the policy is forecast: sampling, old probabilities, reference and critic "
        "are steps of their own.");
  }

  void demonstrations(const Catalogue& catalogue) {
    sequence_ = said("data.max_length", 1024);
    megatron_ = word("engine") == "megatron" || text(names_.strategy) == "megatron";
    sft_machine();
    model(catalogue, by_engine() ? "path" : "partial_pretrain");
    layout(catalogue);
    if (by_engine())
      loss_of_policies();
    else
      loss_of_torch();
    set("batch.global", said("data.train_batch_size", 256));
    if (find("data.micro_batch_size") != nullptr)
      note(
          "data.micro_batch_size: verl no longer reads it, micro_batch_size_per_gpu is, 4 unless "
          "it is said.");
    if (by_engine() && flag(names_.dynamic, true))
      packed(said(names_.tokens, 8192), names_.dynamic);
    else
      set("batch.micro_batch", said(names_.micro_batch, 4));
    rest(catalogue);
  }

 private:
  bool by_engine() const { return &names_ == &verl_engine_names; }
  bool by_policy() const { return &names_ == &verl_policy_names; }

  const std::string* found(std::string_view begin, std::string_view end = "") const {
    return settings_.find(std::string(begin) + std::string(end));
  }
  std::string text(std::string_view begin, std::string_view end = "") const {
    const std::string* value = found(begin, end);
    return value == nullptr ? "" : *value;
  }
  /// Within what two of can be multiplied.
  Number said(std::string_view name, Number usual) const {
    constexpr Number most = 1'000'000'000;
    return std::clamp(settings_.integer(std::string(name)).value_or(usual), -most, most);
  }
  bool flag(std::string_view name, bool usual) const {
    return settings_.flag(std::string(name)).value_or(usual);
  }
  static std::string joined(std::string_view begin, std::string_view end) {
    return std::string(begin) + std::string(end);
  }
  std::string fsdp_name(const char* name) const { return joined(names_.fsdp, name); }
  std::string megatron_name(const char* name) const { return joined(names_.megatron, name); }
  std::string model_name(const char* name) const { return joined(names_.model, name); }

  bool is_megatron() const {
    for (const char* choice : {"config_name", "model_engine"})
      if (word(choice).find("megatron") != std::string::npos) return true;
    if (text(names_.strategy) == "megatron") return true;
    for (const auto& [name, value] : settings_.all())
      if (name.starts_with(names_.megatron)) return true;
    return false;
  }

  void model(const Catalogue& catalogue, const char* path) {
    if (const std::string name = text(names_.model, path); !name.empty())
      set_model_name(facts_, name, catalogue, source_);
    set("model.sequence", sequence_);
  }

  void layout(const Catalogue& catalogue) {
    if (megatron_)
      megatron();
    else
      fsdp(catalogue);
  }

  void rest(const Catalogue& catalogue) {
    const std::string padding =
        megatron_ ? megatron_name("use_remove_padding") : std::string(names_.padding);
    if (flag(padding, by_policy() || by_engine()))
      note(
          fmt::format("use_remove_padding: every row is taken to be as long as the longest, {} "
                      "tokens; shorter ones need less memory and time.",
                      sequence_));
    precision();
    if (const std::string name = text(names_.optimizer, "optimizer"); !name.empty())
      optimizer_called(name);
    adapters(catalogue);
  }

  void fsdp(const Catalogue& catalogue) {
    const Number ulysses =
        said(names_.ulysses, said(fsdp_name("ulysses_sequence_parallel_size"), 1));
    set("plan.context", ulysses);
    if (ulysses > 1) set("software.context_exchange", std::string("all_to_all"));
    const bool kept = !flag(fsdp_name("reshard_after_forward"), true);
    set("plan.data", std::string(kept ? "zero2" : "zero3"));
    if (const Number size = said(fsdp_name("fsdp_size"), -1); size > 1)
      set("plan.shard_degree", size);
    set("plan.recompute",
        std::string(flag(model_name("enable_gradient_checkpointing"), true) ? "full" : "none"));
    offload(fsdp_name("param_offload"), fsdp_name("optimizer_offload"));
    std::string strategy = text(names_.strategy);
    if (strategy.empty()) strategy = names_.usual_strategy;
    const bool second = strategy == "fsdp2";
    if ((second && flag(fsdp_name("offload_policy"), false)) ||
        (flag(fsdp_name("cpu_offload"), false) && flag(fsdp_name("offload_params"), false))) {
      facts_.set("plan.optimizer_offload", {1.0, ""}, source_);
      if (!kept) facts_.set("plan.parameter_offload", {1.0, ""}, source_);
    }
    set("software.framework", std::string(second ? "pytorch-fsdp2" : "pytorch-fsdp1"));
    if (second) set("software.version", std::string("2.9"));
    without_further_tokens(facts_, catalogue, source_);
    experts(catalogue);
  }

  /// Layers of transformers: a loop over experts, each of whose products is a call, router and
  /// permutation of torch's operators (modeling_qwen3_moe.py at 4.5x; recalled, 2026).
  void experts(const Catalogue& catalogue) {
    if (!has_experts(facts_, catalogue, source_)) return;
    set("software.experts", true);
    facts_.set("software.dispatchers", {TomlValue::Array{}, ""}, source_);
    set("software.grouped_gemm", std::string("loop"));
    set("software.router_fused", false);
    set("software.permute_fused", false);
  }

  /// Log-probabilities by flash-attn's cross-entropy, whose gradient takes the logits' place; they
  /// were divided by the temperature in place, and that division's gradient is a second copy:
  /// 2 + 2 bytes. use_fused_kernels: head and loss over 512 tokens at a time, in fp32, made again
  /// in backward. Over Megatron its own loss of a cut vocabulary. (workers/actor/dp_actor.py,
  /// utils/torch_functional.py, utils/experimental/torch_functional.py at b178a3c, read 2026-11.)
  void loss_of_policies() {
    const bool fused = flag(model_name("use_fused_kernels"), false);
    if (megatron_) {
      if (fused)
        note(
            "use_fused_kernels over Megatron: head and loss are one kernel there; the forecast "
            "has the logits whole.");
    } else if (fused) {
      set("software.loss_form", std::string("checkpointed"));
      set("software.loss_chunk_tokens", Number{512});
      set("software.loss_memory", std::string("widened"));
    } else {
      set("software.fused_loss", true);
    }
  }

  /// CrossEntropyLoss of torch under autocast; where ranks do not share a sequence it sees a copy
  /// without the last position, beside logits that live until backward is done: 2 + 2 + 4 bytes,
  /// as many as of logits in fp32 (trainer/fsdp_sft_trainer.py at b178a3c, read 2026-11).
  void loss_of_torch() {
    if (facts_.integer("plan.context").value_or(1) == 1)
      set("software.loss_memory", std::string("widened"));
  }

  void megatron() {
    for (const auto& [name, key] :
         {std::pair{"tensor_model_parallel_size", "plan.tensor"},
          {"pipeline_model_parallel_size", "plan.pipeline"},
          {"context_parallel_size", "plan.context"},
          {"expert_model_parallel_size", "plan.expert"},
          {"expert_tensor_parallel_size", "plan.expert_tensor"},
          {"virtual_pipeline_model_parallel_size", "plan.virtual_stages"}})
      if (const Number value = said(megatron_name(name), 0); value > 0) set(key, value);
    if (facts_.integer("plan.tensor").value_or(1) > 1)
      set("plan.sequence_parallel", flag(megatron_name("sequence_parallel"), true));
    const bool shards = flag(megatron_name("use_distributed_optimizer"), true);
    set("plan.data", std::string(shards ? "zero1" : "ddp"));
    overrides();
    last_stage();
    offload(megatron_name("param_offload"), megatron_name("optimizer_offload"));
    add_megatron_plan_parts(facts_, settings_,
                            joined(names_.optimizer, "override_optimizer_config."), source_);
    set("software.framework", std::string("megatron-core"));
  }

  /// Of Megatron core's own configuration of layers.
  void overrides() {
    const std::string prefix = megatron_name("override_transformer_config.");
    const auto said = [&](const char* name) { return text(prefix, name); };
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
      const std::string name = "override_transformer_config." + std::string(end);
      if (const Number layers = said(megatron_name(name.c_str()), 0); layers > 0)
        note(fmt::format("{} = {}: stages are cut evenly where --stages says no other.", name,
                         layers));
    }
  }

  /// It puts them on the host between the phases, not during the update.
  void offload(const std::string& parameters, const std::string& optimizer) {
    if (flag(parameters, false) || flag(optimizer, false))
      note(by_policy()
               ? "param_offload, optimizer_offload: states are on the GPU while the policy is "
                 "updated."
               : "param_offload, optimizer_offload: states are on the GPU during a step.");
  }

  /// A mini-batch of prompts, each with its answers, is one update.
  void updates() {
    const Number answers = said("actor_rollout_ref.rollout.n", 1);
    const Number prompts = said("actor_rollout_ref.actor.ppo_mini_batch_size", 256);
    set("batch.global", prompts * answers);
    const Number all = said("data.train_batch_size", prompts);  // of prompts, sampled at once
    const Number passes = std::max<Number>(1, said("actor_rollout_ref.actor.ppo_epochs", 1));
    if (prompts > 0) facts_.updates = std::max<Number>(1, all / prompts) * passes;
  }

  /// Ranks with sequences of their own; 1 where nobody says how many ranks there are.
  Number data_ranks() const {
    Number ranks = facts_.ranks.value_or(1);
    for (const char* key : {"plan.tensor", "plan.pipeline", "plan.context"})
      ranks /= std::max<Number>(1, facts_.integer(key).value_or(1));
    return std::max<Number>(1, ranks);
  }

  void policy_micro_batch() {
    if (flag(names_.dynamic, false)) return packed(said(names_.tokens, 16384), names_.dynamic);
    Number micro = said(names_.micro_batch, 0);
    const Number of_all = said("actor_rollout_ref.actor.ppo_micro_batch_size", 0);
    if (micro < 1 && of_all > 0) {
      micro = std::max<Number>(1, of_all / data_ranks());
      note(fmt::format("ppo_micro_batch_size = {} is of all ranks together: {} each.", of_all,
                       micro));
    }
    if (micro < 1) return packed(said(names_.tokens, 16384), names_.tokens);
    set("batch.micro_batch", micro);
    const Number each = facts_.integer("batch.global").value_or(0) / data_ranks();
    if (!megatron_ && each % micro != 0)
      note(
          fmt::format("verl itself stops where a micro-batch, of {} here, does not divide the {} "
                      "sequences that a rank has of an update.",
                      micro, each));
  }

  /// Micro-batches up to a number of tokens, which context ranks share.
  void packed(Number tokens, std::string_view why) {
    tokens *= facts_.integer("plan.context").value_or(1);
    facts_.most_micro_batch = std::max<Number>(1, tokens / std::max<Number>(1, sequence_));
    note(
        fmt::format("{}: micro-batches of up to {} tokens are taken as whole sequences of {}: as "
                    "many, up to {}, as divide what a replica has of the batch.",
                    why.substr(why.rfind('.') + 1), tokens, sequence_, facts_.most_micro_batch));
  }

  /// torchrun's; where only a shell knows it, what the configuration says.
  void sft_machine() {
    const Number nodes = said("nnodes", said("trainer.nnodes", 1));
    Number each = said("nproc_per_node", 0);
    if (each < 1 && (!by_engine() || find("trainer.n_gpus_per_node") != nullptr)) {
      each = said("trainer.n_gpus_per_node", 8);
      note(
          fmt::format("Only a shell knows how many GPUs of a node train: {} are taken, as in "
                      "trainer.n_gpus_per_node.",
                      each));
    }
    if (each < 1) return;
    facts_.gpus_per_node = each;
    ranks(each * nodes);
  }

  void precision() {
    const auto type = [](const std::string& said) {
      return std::string(said == "float16" || said == "fp16"   ? "fp16"
                         : said == "float32" || said == "fp32" ? "fp32"
                                                               : "bf16");
    };
    const std::string mixed = megatron_ ? "" : text(names_.fsdp, "mixed_precision.param_dtype"),
                      reduced = megatron_ ? "" : text(names_.fsdp, "mixed_precision.reduce_dtype");
    const std::string plain = text(megatron_ ? names_.megatron : names_.fsdp, "dtype");
    set("precision.compute", type(mixed.empty() ? plain : mixed));
    set("precision.gradient_reduce", reduced.empty() ? std::string("fp32") : type(reduced));
    if (const std::string held = text(names_.fsdp, "model_dtype");
        !megatron_ && (held == "bf16" || held == "bfloat16"))
      set("precision.masters", false);
  }

  /// Beside every product unless it says which; in Megatron-Bridge also beside a rank's experts.
  void adapters(const Catalogue& catalogue) {
    const Number rank = said(model_name("lora_rank"), said(model_name("lora.rank"), 0));
    if (rank < 1) return;
    set("model.lora_rank", rank);
    const std::string over = text(names_.model, "lora.target_modules"),
                      list = over.empty() ? text(names_.model, "target_modules") : over;
    if (adapter_targets(list) && megatron_ && has_experts(facts_, catalogue, source_))
      set("model.lora_experts", true);
  }

  const VerlNames& names_;
  Number sequence_ = 1024;
  bool megatron_ = false;
};

}  // namespace

void add_verl_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                    const std::string& source) {
  VerlFacts(facts, settings, source, verl_policy_names).policy(catalogue);
}

void add_verl_sft_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                        const std::string& source) {
  VerlFacts(facts, settings, source, verl_engine_names).demonstrations(catalogue);
}

void add_verl_fsdp_sft_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                             const std::string& source) {
  VerlFacts(facts, settings, source, verl_fsdp_names).demonstrations(catalogue);
}

}  // namespace stepcast::sim
