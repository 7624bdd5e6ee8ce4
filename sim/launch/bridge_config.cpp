// Megatron-Bridge, which NeMo is since its container 25.11: fields of a recipe's ConfigContainer,
// laid over it. Names of NVIDIA-NeMo/Megatron-Bridge at 067f987 (2026-08), scripts/training/
// run_recipe.py and training/config.py; those of [model] are Megatron core's.
#include <fmt/format.h>

#include <algorithm>

#include "sim/launch/forms.hpp"
#include "sim/launch/megatron_arguments.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Dtype;
using workloads::Recipe;
using workloads::Recompute;

constexpr Refusal bridge_refusals[] = {
    {[](const Scenario& s) {
       return s.precision.compute != Dtype::bf16 && s.precision.compute != Dtype::fp16;
     },
     [](const Scenario&) { return std::string("a recipe trains in 16 bits or less"); }},
    {[](const Scenario& s) { return asks_gpipe(s); },
     [](const Scenario&) { return std::string("Megatron-Bridge runs 1f1b, not gpipe"); }},
    {[](const Scenario& s) {
       return s.plan.data != DataParallel::ddp && s.plan.shards() < s.plan.copies();
     },
     [](const Scenario&) {
       return std::string("a recipe's distributed optimizer shards over all data ranks");
     }},
    {[](const Scenario& s) {
       return s.plan.data != DataParallel::ddp && s.plan.data != DataParallel::zero1;
     },
     [](const Scenario&) {
       return std::string("its FSDP has no form here: zero1 is the distributed optimizer");
     }},
    {[](const Scenario& s) {
       return s.plan.recompute == Recompute::full && s.plan.recompute_every > 1;
     },
     [](const Scenario&) { return std::string("plan.recompute_every has no form here"); }},
};

std::string mixed_precision(const Scenario& s) {
  if (s.precision.compute == Dtype::fp16) return "fp16_mixed";
  switch (s.precision.recipe) {
    case Recipe::fp8_delayed:
      return "bf16_with_fp8_delayed_scaling_mixed";
    case Recipe::fp8_current:
      return "bf16_with_fp8_current_scaling_mixed";
    case Recipe::fp8_block:
      return "bf16_with_fp8_subchannel_scaling_mixed";
    case Recipe::mxfp8:
      return "bf16_with_mxfp8_mixed";
    case Recipe::nvfp4:
      return "bf16_with_nvfp4_mixed";
    case Recipe::none:
      break;
  }
  return "bf16_mixed";
}

std::string overrides_of(const Scenario& s) {
  std::string out;
  const auto set = [&](std::string_view name, const auto& value) {
    out += fmt::format("{}={}\n", name, value);
  };
  set("dataset.seq_length", s.batch.sequence);
  set("train.global_batch_size", s.global_batch);
  set("train.micro_batch_size", s.batch.micro_batch);
  set("model.tensor_model_parallel_size", s.plan.tensor);
  set("model.sequence_parallel", true_or_false(s.plan.sequence_parallel && s.plan.tensor > 1));
  set("model.pipeline_model_parallel_size", s.plan.pipeline);
  set("model.context_parallel_size", s.plan.context);
  if (s.plan.pipeline > 1) {
    if (equal_parts(s))
      set("model.virtual_pipeline_model_parallel_size",
          s.plan.virtual_stages > 1 ? std::to_string(s.plan.virtual_stages) : "null");
    else
      set("model.pipeline_model_parallel_layout", "'" + pipeline_layout(part_layers(s)) + "'");
  }
  if (s.model.experts.count > 0) {
    set("model.expert_model_parallel_size", s.plan.expert.degree);
    set("model.expert_tensor_parallel_size", s.plan.expert_tensor());
    using enum workloads::Dispatcher;
    const auto kind = s.plan.expert.dispatcher;
    set("model.moe_token_dispatcher_type", kind == all_gather   ? "allgather"
                                           : kind == all_to_all ? "alltoall"
                                                                : "flex");
    if (kind == node_aware || kind == nvlink_domain)
      set("model.moe_flex_dispatcher_backend", kind == node_aware ? "deepep" : "hybridep");
    set("model.moe_permute_fusion", true_or_false(s.software.experts.fused_permute));
    set("model.moe_router_fusion", true_or_false(s.software.experts.fused_router));
  }
  set("model.recompute_granularity", s.plan.recompute == Recompute::full        ? "full"
                                     : s.plan.recompute == Recompute::selective ? "selective"
                                                                                : "null");
  if (s.plan.recompute == Recompute::full) {
    set("model.recompute_method", "uniform");
    set("model.recompute_num_layers", 1);
  }
  set("ddp.use_distributed_optimizer", true_or_false(s.plan.data != DataParallel::ddp));
  set("ddp.overlap_grad_reduce", true_or_false(s.software.data.gradient_overlap));
  set("ddp.overlap_param_gather",
      true_or_false(s.software.data.gather_overlap && s.plan.data != DataParallel::ddp));
  set("ddp.grad_reduce_in_fp32", true_or_false(s.precision.gradient_reduce == Dtype::fp32));
  set("mixed_precision", mixed_precision(s));
  return out;
}

std::vector<std::string> bridge_notes(const Scenario& s) {
  std::vector<std::string> out{"bridge.overrides is laid over the recipe of " + s.model.name +
                               ": RECIPE is its name; a model without one comes from "
                               "AutoBridge.from_hf_pretrained(ID).to_megatron_provider()."};
  if (leaves_layers(s)) out.push_back(left_layers_note(s));
  if (s.precision.gradient_reduce != Dtype::fp32 &&
      s.precision.gradient_reduce != s.precision.compute)
    out.push_back(other_reduction(s, s.precision.compute));
  if (stated_routing(s)) out.push_back(routing_note());
  for (std::string& note :
       common_notes(s, {"software.gradient_overlap", "software.gather_overlap"}))
    out.push_back(std::move(note));
  return out;
}

}  // namespace

Launch bridge_launch(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, bridge_refusals);
  if (out.why_not.empty() && s.model.qk_norm_whole)
    out.why_not = "Megatron-Bridge has no model with norms of all queries and keys together";
  if (!out.why_not.empty()) return out;
  out.notes = bridge_notes(s);
  out.files.push_back(
      {"bridge.overrides", overrides_of(s),
       torchrun(s,
                "scripts/training/run_recipe.py --recipe RECIPE --mode pretrain --dataset mock "
                "$(cat bridge.overrides)")});
  return out;
}

}  // namespace stepcast::sim
