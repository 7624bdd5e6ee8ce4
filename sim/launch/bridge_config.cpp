// Megatron-Bridge, which NeMo is since its container 25.11: fields of a recipe's ConfigContainer,
// laid over it. Names and since when: bridge_words.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "sim/launch/bridge_recipe.hpp"
#include "sim/launch/bridge_registry.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/megatron_arguments.hpp"
#include "sim/launch/words.hpp"
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

int release_of(const Scenario& s) { return bridge_release(s.software.version); }

std::string overrides_of(const Scenario& s) {
  std::string out;
  const auto set = [&](std::string_view name, const auto& value) {
    out += fmt::format("{}={}\n", written_word(bridge_words(), name).name, value);
  };
  const bool old = !is_in(written_word(bridge_words(), "dataset.seq_length"), release_of(s));
  set("model.seq_length", s.batch.sequence);
  set(old ? "dataset.sequence_length" : "dataset.seq_length", s.batch.sequence);
  set("train.global_batch_size", s.global_batch);
  set("train.micro_batch_size", s.batch.micro_batch);
  set("model.tensor_model_parallel_size", s.plan.tensor);
  set("model.sequence_parallel", true_or_false(s.plan.sequence_parallel && s.plan.tensor > 1));
  set("model.pipeline_model_parallel_size", s.plan.pipeline);
  set("model.context_parallel_size", s.plan.context);
  if (s.plan.context > 1) set("model.cp_comm_type", context_exchange_word(s));
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
    set("model.moe_shared_expert_overlap", true_or_false(s.plan.expert.shared_overlap));
    set("model.moe_router_force_load_balancing",
        true_or_false(s.plan.routing.kind == workloads::RoutingKind::balanced));
  }
  if (s.model.mtp_layers > 0)
    set("model.mtp_num_layers", s.model.mtp_layers);
  else if (std::ranges::count(s.changed, "model.mtp_layers") > 0)
    set("model.mtp_num_layers", "null");
  const bool by_modules = !s.plan.recompute_modules.empty();
  set("model.recompute_granularity", by_modules                                 ? "selective"
                                     : s.plan.recompute == Recompute::full      ? "full"
                                     : s.plan.recompute == Recompute::selective ? "selective"
                                                                                : "null");
  if (by_modules) set("model.recompute_modules", "[" + recompute_module_words(s, ",") + "]");
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
  const bool bf16_moments = s.precision.moments == Dtype::bf16;
  const auto& offload = s.plan.offload;
  if (bf16_moments || offload.optimizer > 0) set("optimizer.use_precision_aware_optimizer", "true");
  if (bf16_moments)
    for (const char* moment : {"optimizer.exp_avg_dtype", "optimizer.exp_avg_sq_dtype"})
      set(moment, "torch.bfloat16");
  if (offload.optimizer > 0) {
    set("optimizer.optimizer_cpu_offload", "true");
    set("optimizer.optimizer_offload_fraction", offload.optimizer);
    if (offload.optimizer_overlap) set("optimizer.overlap_cpu_optimizer_d2h_h2d", "true");
  }
  return out;
}

std::vector<std::string> bridge_notes(const Scenario& s) {
  std::vector<std::string> out;
  if (leaves_layers(s)) out.push_back(left_layers_note(s));
  if (s.precision.gradient_reduce != Dtype::fp32 &&
      s.precision.gradient_reduce != s.precision.compute)
    out.push_back(other_reduction(s, s.precision.compute));
  if (stated_routing(s)) out.push_back(routing_note());
  for (std::string& note : common_notes(
           s, {"software.gradient_overlap", "software.gather_overlap", "software.permute_fused",
               "software.router_fused", "software.context_exchange"}))
    out.push_back(std::move(note));
  return out;
}

}  // namespace

Launch bridge_launch(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, bridge_refusals);
  if (!out.why_not.empty()) return out;
  const BridgeRecipe* recipe = bridge_recipe_of(s.model.name);
  if (recipe != nullptr && release_of(s) < recipe->since) recipe = nullptr;
  if (recipe == nullptr) out.why_not = bridge_provider_refusal(s);
  if (!out.why_not.empty()) return out;
  out.notes = bridge_notes(s);
  constexpr int first_runner = 3;  // scripts/training/run_recipe.py is there from v0.3.0 on
  const bool by_name = recipe != nullptr && release_of(s) >= first_runner;
  const std::string program =
      by_name ? "scripts/training/run_recipe.py --recipe " + pretrain_function(*recipe)
              : std::string("stepcast_recipe.py");
  out.files.push_back(
      {"bridge.overrides", overrides_of(s), torchrun(s, program + " $(cat bridge.overrides)")});
  if (by_name) return out;
  if (recipe == nullptr)
    out.notes.push_back(fmt::format(
        "Megatron-Bridge of NeMo {} has no recipe of {}: stepcast_recipe.py makes the model of its "
        "shape, over the optimizer and data of llama31_8b_pretrain_config. It was read against the "
        "source, not run.",
        s.software.version, s.model.name));
  out.files.push_back({"stepcast_recipe.py", bridge_recipe_file(s, recipe),
                       "the recipe that bridge.overrides is laid over"});
  return out;
}

}  // namespace stepcast::sim
