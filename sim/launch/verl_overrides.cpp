// verl's overrides for a plan. Names and where they were read: verl_words.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "sim/files/names.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/megatron_arguments.hpp"
#include "sim/launch/other_words.hpp"
#include "sim/launch/own_word_forms.hpp"
#include "sim/launch/verl_names.hpp"
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
       return s.model.lora.rank > 0 && s.software.framework == "megatron-core" &&
              s.model.experts.count > 0 && !s.model.lora.experts;
     },
     [](const Scenario&) {
       return std::string("model.lora_experts: verl's Megatron has adapters beside experts too");
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

/// Beside those, of fsdp_sft_trainer.py.
constexpr Refusal fsdp_sft_refusals[] = {
    {[](const Scenario& s) { return s.software.framework == "megatron-core"; },
     [](const Scenario&) {
       return std::string("verl's fsdp_sft_trainer has FSDP alone: sft_trainer runs Megatron");
     }},
    {[](const Scenario& s) {
       return s.plan.copies() > 1 &&
              (s.plan.data != DataParallel::zero3 || s.plan.shards() < s.plan.copies());
     },
     [](const Scenario&) {
       return std::string("verl's fsdp_sft_trainer shards parameters over all ranks: zero3");
     }},
    {[](const Scenario& s) { return s.precision.compute != workloads::Dtype::bf16; },
     [](const Scenario&) { return std::string("verl's fsdp_sft_trainer computes in bf16"); }},
};

/// KEY=VALUE; "++": over a key or beside those that its files have.
class VerlWords {
 public:
  VerlWords(const Scenario& scenario, const VerlNames& names, bool states_optimizer)
      : s_(scenario), names_(names), states_optimizer_(states_optimizer) {}

  std::string text() {
    if (!of_policies()) {
      set("data.train_batch_size", s_.global_batch);
      set("data.max_length", s_.batch.sequence);
    }
    if (by_engine())
      for (const char* choice : {"engine", "optim"}) set(choice, megatron() ? "megatron" : "fsdp");
    set(names_.micro_batch, s_.batch.micro_batch);
    // What is taken instead where use_dynamic_bsz is on.
    const std::int64_t tokens = s_.batch.micro_batch * s_.batch.sequence;
    if (!names_.tokens.empty())
      set(names_.tokens, (tokens + s_.plan.context - 1) / s_.plan.context);
    if (megatron())
      by_megatron();
    else
      by_fsdp();
    optimizer();
    return out_;
  }

 private:
  bool of_policies() const { return &names_ == &verl_policy_names; }
  bool by_engine() const { return &names_ == &verl_engine_names; }
  LaunchWords table() const { return of_policies() ? verl_words() : verl_sft_words(); }

  template <class T>
  void set(std::string_view name, const T& value) {
    const bool open = name.find(".override_") != std::string_view::npos;
    out_ += fmt::format("{}{}={}\n", open ? "++" : "", written_word(table(), name).name, value);
  }
  template <class T>
  void set(std::string_view begin, std::string_view end, const T& value) {
    set(std::string(begin) + std::string(end), value);
  }
  bool megatron() const { return s_.software.framework == "megatron-core"; }
  static const char* python(bool value) { return value ? "True" : "False"; }

  /// Classes of torch and bitsandbytes, or Megatron core's words.
  void optimizer() {
    using enum workloads::Optimizer;
    const auto form = s_.plan.optimizer;
    if (form == adam && !states_optimizer_) return;
    set(names_.optimizer, "optimizer",
        megatron()          ? word_for(optimizer_form_names, form)
        : form == sgd       ? "SGD"
        : form == adam_8bit ? "AdamW8bit"
                            : "AdamW");
  }

  void by_megatron() {
    const auto& plan = s_.plan;
    const auto part = [&](std::string_view name, const auto& value) {
      set(names_.megatron, name, value);
    };
    part("dtype", torch_dtype(s_.precision.compute));
    if (s_.model.lora.rank > 0) set(names_.model, "lora.rank", s_.model.lora.rank);
    part("tensor_model_parallel_size", plan.tensor);
    part("pipeline_model_parallel_size", plan.pipeline);
    part("virtual_pipeline_model_parallel_size",
         plan.virtual_stages > 1 ? std::to_string(plan.virtual_stages) : "null");
    part("context_parallel_size", plan.context);
    if (plan.tensor > 1) part("sequence_parallel", python(plan.sequence_parallel));
    part("use_distributed_optimizer", python(plan.data != DataParallel::ddp));
    if (plan.context > 1) layers("cp_comm_type", context_exchange_word(s_));
    if (s_.model.experts.count > 0) experts();
    recompute();
    const std::string optimizer = std::string(names_.optimizer) + "override_optimizer_config.";
    const double share = plan.offload.optimizer;
    set(optimizer, "optimizer_cpu_offload", python(share > 0));
    if (share == 0) return;
    set(optimizer, "optimizer_offload_fraction", share);
    set(optimizer, "overlap_cpu_optimizer_d2h_h2d", python(plan.offload.optimizer_overlap));
  }

  template <class T>
  void layers(std::string_view name, const T& value) {
    set(std::string(names_.megatron) + "override_transformer_config.", name, value);
  }

  void experts() {
    using enum workloads::Dispatcher;
    const auto kind = s_.plan.expert.dispatcher;
    const bool flex = kind == node_aware || kind == nvlink_domain;
    set(names_.megatron, "expert_model_parallel_size", s_.plan.expert.degree);
    set(names_.megatron, "expert_tensor_parallel_size", s_.plan.expert_tensor());
    layers("moe_token_dispatcher_type", flex                 ? "flex"
                                        : kind == all_gather ? "allgather"
                                                             : "alltoall");
    if (flex) layers("moe_flex_dispatcher_backend", kind == node_aware ? "deepep" : "hybridep");
    layers("moe_shared_expert_overlap", python(s_.plan.expert.shared_overlap));
  }

  void recompute() {
    const bool full = s_.plan.recompute == Recompute::full;
    const bool parts = !s_.plan.recompute_modules.empty();
    const bool some = parts || s_.plan.recompute == Recompute::selective;
    layers("recompute_granularity", full ? "full" : some ? "selective" : "null");
    if (full) {
      layers("recompute_method", "uniform");
      layers("recompute_num_layers", 1);
    } else if (some) {
      layers("recompute_modules",
             "[" + (parts ? recompute_module_words(s_, ",") : std::string("core_attn")) + "]");
    }
  }

  void by_fsdp() {
    const bool second = !s_.software.data.fsdp1();
    const bool part = s_.plan.data != DataParallel::ddp && s_.plan.shards() < s_.plan.copies();
    const auto table = [&](std::string_view name, const auto& value) {
      set(names_.fsdp, name, value);
    };
    const bool off = s_.plan.offload.optimizer > 0, any = of_policies() || by_engine();
    set(names_.strategy, second ? "fsdp2" : "fsdp");
    table("model_dtype", s_.precision.masters ? "fp32" : "bf16");
    set(names_.model, "lora_rank", s_.model.lora.rank);
    if (s_.model.lora.rank > 0) set(names_.model, "target_modules", projections(s_, ","));
    set(names_.ulysses, s_.plan.context);
    set(names_.model, "enable_gradient_checkpointing",
        python(s_.plan.recompute == Recompute::full));
    if (any) {
      table("dtype", torch_dtype(s_.precision.compute));
      table("reshard_after_forward", python(s_.plan.data != DataParallel::zero2));
      table("fsdp_size", part ? s_.plan.shards() : -1);
      if (second) table("offload_policy", python(off));
    } else {
      if (s_.plan.context > 1) set(names_.padding, "true");
      for (const char* name : {"cpu_offload", "offload_params"}) table(name, python(off));
    }
  }

  const Scenario& s_;
  const VerlNames& names_;
  bool states_optimizer_;
  std::string out_;
};

}  // namespace

Launch verl_words_of(const Scenario& s, std::string_view stack, bool states_optimizer) {
  Launch out;
  const bool policies = stack == "verl", by_fsdp = stack == "verl-fsdp-sft";
  out.why_not = refused(s, verl_refusals);
  if (by_fsdp && out.why_not.empty()) out.why_not = refused(s, fsdp_sft_refusals);
  if (!out.why_not.empty()) return out;
  if (policies)
    out.notes.push_back(fmt::format(
        "{} sequences an update are ppo_mini_batch_size x rollout.n of your own command.",
        s.global_batch));
  const bool fsdp = s.software.framework != "megatron-core";
  // Its loss, and transformers' experts, are what they are.
  for (std::string& note :
       notes_on(s, workloads::Dtype::fp32, fsdp,
                {"plan.optimizer", "software.context_exchange", "software.fused_loss",
                 "software.loss_form", "software.loss_chunk_tokens", "software.loss_memory",
                 "software.experts", "software.dispatchers", "software.grouped_gemm",
                 "software.router_fused", "software.permute_fused"}))
    out.notes.push_back(std::move(note));
  if (s.plan.optimizer == workloads::Optimizer::adam_8bit)
    out.notes.emplace_back("AdamW8bit: optim.optimizer_impl=bitsandbytes.optim beside it.");
  const VerlNames& names = policies  ? verl_policy_names
                           : by_fsdp ? verl_fsdp_names
                                     : verl_engine_names;
  out.files.push_back({"verl.overrides", VerlWords(s, names, states_optimizer).text(),
                       "behind your own command: $(cat verl.overrides)"});
  return out;
}

}  // namespace stepcast::sim
