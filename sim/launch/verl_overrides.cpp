// verl's overrides for a plan. Names and where they were read: verl_words.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "sim/files/names.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/megatron_arguments.hpp"
#include "sim/launch/other_words.hpp"
#include "sim/launch/own_word_forms.hpp"
#include "sim/scenario/model_members.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Recompute;

constexpr Refusal verl_refusals[] = {
    {[](const Scenario& s) {
       return s.software.framework != "megatron-core" && s.plan.tensor * s.plan.pipeline > 1;
     },
     [](const Scenario&) {
       return std::string("verl has tensor and pipeline degrees over Megatron alone");
     }},
    {[](const Scenario& s) {
       return s.software.framework != "megatron-core" && s.plan.copies() > 1 &&
              s.plan.data != DataParallel::zero2 && s.plan.data != DataParallel::zero3;
     },
     [](const Scenario&) {
       return std::string("verl's FSDP shards gradients as well: zero2 or zero3");
     }},
    {[](const Scenario& s) {
       return s.software.framework != "megatron-core" && !recomputes_all_or_none(s);
     },
     [](const Scenario&) {
       return std::string("enable_gradient_checkpointing is of all layers or none");
     }},
    {[](const Scenario& s) { return s.plan.pipeline > 1 && !equal_parts(s); },
     [](const Scenario&) { return std::string("plan.stage_layers has no words of verl here"); }},
    {[](const Scenario& s) {
       return s.software.framework != "megatron-core" && s.software.data.fsdp1() &&
              s.plan.offload.optimizer + s.plan.offload.parameters > 0;
     },
     [](const Scenario&) {
       return std::string(
           "verl's FSDP1 has its states on the GPU during the update: offloading is "
           "fsdp2's (offload_policy)");
     }},
    {[](const Scenario& s) {
       using enum workloads::Optimizer;
       const bool megatron = s.software.framework == "megatron-core";
       return s.plan.optimizer == adafactor || s.plan.optimizer == (megatron ? adam_8bit : muon);
     },
     [](const Scenario& s) {
       return fmt::format("plan.optimizer = {} has no word of verl here",
                          word_for(optimizer_form_names, s.plan.optimizer));
     }},
    {[](const Scenario& s) {
       return s.model.lora.rank > 0 && s.model.lora.base != workloads::LoraBase::compute;
     },
     [](const Scenario&) { return std::string("model.lora_base has no word of verl"); }},
    {[](const Scenario& s) {
       return s.model.lora.rank > 0 && s.software.framework == "megatron-core" &&
              !std::ranges::all_of(lora_target_names, [&](const auto& one) {
                return s.model.lora.targets.has(one.second);
              });
     },
     [](const Scenario&) {
       return std::string("model.lora_targets: verl's Megatron has adapters at all products here");
     }},
    {[](const Scenario& s) {
       using enum workloads::Dtype;
       return s.precision.compute != bf16 && s.precision.compute != fp16 &&
              s.precision.compute != fp32;
     },
     [](const Scenario& s) {
       return "precision.compute = " + std::string(word_for(dtype_names, s.precision.compute)) +
              " has no word of verl";
     }},
};

/// KEY=VALUE; "++": over a key or beside those that its files have.
class VerlWords {
 public:
  VerlWords(const Scenario& scenario, bool states_optimizer)
      : s_(scenario), states_optimizer_(states_optimizer) {}

  std::string text() {
    actor("ppo_micro_batch_size_per_gpu", s_.batch.micro_batch);
    // What is taken instead where use_dynamic_bsz is on.
    const std::int64_t tokens = s_.batch.micro_batch * s_.batch.sequence;
    actor("ppo_max_token_len_per_gpu", (tokens + s_.plan.context - 1) / s_.plan.context);
    if (megatron())
      by_megatron();
    else
      by_fsdp();
    optimizer();
    return out_;
  }

 private:
  template <class T>
  void set(const std::string& name, const T& value) {
    const bool open = name.find(".override_") != std::string::npos;
    out_ +=
        fmt::format("{}{}={}\n", open ? "++" : "", written_word(verl_words(), name).name, value);
  }
  template <class T>
  void actor(const std::string& name, const T& value) {
    set("actor_rollout_ref.actor." + name, value);
  }
  bool megatron() const { return s_.software.framework == "megatron-core"; }
  static const char* python(bool value) { return value ? "True" : "False"; }

  /// Classes of torch and bitsandbytes, or Megatron core's words.
  void optimizer() {
    using enum workloads::Optimizer;
    const auto form = s_.plan.optimizer;
    if (form == adam && !states_optimizer_) return;
    actor("optim.optimizer", megatron()          ? word_for(optimizer_form_names, form)
                             : form == sgd       ? "SGD"
                             : form == adam_8bit ? "AdamW8bit"
                                                 : "AdamW");
  }

  void by_megatron() {
    const auto& plan = s_.plan;
    actor("megatron.dtype", torch_dtype(s_.precision.compute));
    if (s_.model.lora.rank > 0) set("actor_rollout_ref.model.lora.rank", s_.model.lora.rank);
    const std::string table = "megatron.", layers = table + "override_transformer_config.";
    actor(table + "tensor_model_parallel_size", plan.tensor);
    actor(table + "pipeline_model_parallel_size", plan.pipeline);
    actor(table + "virtual_pipeline_model_parallel_size",
          plan.virtual_stages > 1 ? std::to_string(plan.virtual_stages) : "null");
    actor(table + "context_parallel_size", plan.context);
    if (plan.tensor > 1) actor(table + "sequence_parallel", python(plan.sequence_parallel));
    actor(table + "use_distributed_optimizer", python(plan.data != DataParallel::ddp));
    if (plan.context > 1) actor(layers + "cp_comm_type", context_exchange_word(s_));
    if (s_.model.experts.count > 0) experts(table, layers);
    recompute(layers);
    const std::string optimizer = "optim.override_optimizer_config.";
    const double share = plan.offload.optimizer;
    actor(optimizer + "optimizer_cpu_offload", python(share > 0));
    if (share == 0) return;
    actor(optimizer + "optimizer_offload_fraction", share);
    actor(optimizer + "overlap_cpu_optimizer_d2h_h2d", python(plan.offload.optimizer_overlap));
  }

  void experts(const std::string& table, const std::string& layers) {
    using enum workloads::Dispatcher;
    const auto kind = s_.plan.expert.dispatcher;
    const bool flex = kind == node_aware || kind == nvlink_domain;
    actor(table + "expert_model_parallel_size", s_.plan.expert.degree);
    actor(table + "expert_tensor_parallel_size", s_.plan.expert_tensor());
    actor(layers + "moe_token_dispatcher_type", flex                 ? "flex"
                                                : kind == all_gather ? "allgather"
                                                                     : "alltoall");
    if (flex)
      actor(layers + "moe_flex_dispatcher_backend", kind == node_aware ? "deepep" : "hybridep");
    actor(layers + "moe_shared_expert_overlap", python(s_.plan.expert.shared_overlap));
  }

  void recompute(const std::string& layers) {
    const bool full = s_.plan.recompute == Recompute::full;
    const bool parts = !s_.plan.recompute_modules.empty();
    const bool some = parts || s_.plan.recompute == Recompute::selective;
    actor(layers + "recompute_granularity", full ? "full" : some ? "selective" : "null");
    if (full) {
      actor(layers + "recompute_method", "uniform");
      actor(layers + "recompute_num_layers", 1);
    } else if (some) {
      actor(layers + "recompute_modules",
            "[" + (parts ? recompute_module_words(s_, ",") : std::string("core_attn")) + "]");
    }
  }

  void by_fsdp() {
    const bool second = !s_.software.data.fsdp1();
    const bool part = s_.plan.data != DataParallel::ddp && s_.plan.shards() < s_.plan.copies();
    actor("strategy", second ? "fsdp2" : "fsdp");
    actor("fsdp_config.dtype", torch_dtype(s_.precision.compute));
    actor("fsdp_config.model_dtype", s_.precision.masters ? "fp32" : "bf16");
    set("actor_rollout_ref.model.lora_rank", s_.model.lora.rank);
    if (s_.model.lora.rank > 0) set("actor_rollout_ref.model.target_modules", projections(s_, ","));
    actor("ulysses_sequence_parallel_size", s_.plan.context);
    actor("fsdp_config.reshard_after_forward", python(s_.plan.data != DataParallel::zero2));
    actor("fsdp_config.fsdp_size", part ? s_.plan.shards() : -1);
    if (second) actor("fsdp_config.offload_policy", python(s_.plan.offload.optimizer > 0));
    set("actor_rollout_ref.model.enable_gradient_checkpointing",
        python(s_.plan.recompute == Recompute::full));
  }

  const Scenario& s_;
  bool states_optimizer_;
  std::string out_;
};

}  // namespace

Launch verl_words_of(const Scenario& s, bool states_optimizer) {
  Launch out;
  out.why_not = refused(s, verl_refusals);
  if (!out.why_not.empty()) return out;
  out.notes.push_back(
      fmt::format("{} sequences an update are ppo_mini_batch_size x rollout.n of your own command.",
                  s.global_batch));
  const bool fsdp = s.software.framework != "megatron-core";
  for (std::string& note : notes_on(s, workloads::Dtype::fp32, fsdp))
    out.notes.push_back(std::move(note));
  if (s.plan.optimizer == workloads::Optimizer::adam_8bit)
    out.notes.emplace_back("AdamW8bit: optim.optimizer_impl=bitsandbytes.optim beside it.");
  out.files.push_back({"verl.overrides", VerlWords(s, states_optimizer).text(),
                       "behind your own command: $(cat verl.overrides)"});
  return out;
}

}  // namespace stepcast::sim
