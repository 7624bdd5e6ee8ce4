// DeepSpeed's configuration, and Megatron-DeepSpeed's arguments beside it. Keys were read in
// deepspeed/runtime/zero/config.py at 38327e07 (2025-02) and in the configuration that
// examples_deepspeed/pretrain_llama2_distributed.sh of microsoft/Megatron-DeepSpeed writes
// (b644fba3).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/megatron_arguments.hpp"

namespace stepcast::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;
using workloads::DataParallel;
using workloads::Dtype;
using workloads::Recompute;

bool has_megatron(const Scenario& s) { return s.software.framework == "megatron-deepspeed"; }

/// A part of the states, or states without ZeRO.
bool offloads_otherwise(const Scenario& s) {
  const auto& offload = s.plan.offload;
  const auto some = [](double share) { return share > 0 && share < 1; };
  return some(offload.optimizer) || some(offload.parameters) || offload.optimizer_overlap ||
         (offload.optimizer > 0 && s.plan.data == DataParallel::ddp);
}

constexpr Refusal deepspeed_refusals[] = {
    {offloads_otherwise,
     [](const Scenario&) {
       return std::string("DeepSpeed's ZeRO offloads all states of the optimizer, or none");
     }},
    {[](const Scenario& s) {
       return !has_megatron(s) && s.plan.tensor * s.plan.pipeline * s.plan.context > 1;
     },
     [](const Scenario&) {
       return std::string(
           "the configuration of DeepSpeed has no tensor, context or pipeline degree: "
           "the training script makes them (megatron-deepspeed has arguments for them)");
     }},
    {[](const Scenario& s) {
       return s.plan.data != DataParallel::ddp && s.plan.shards() < s.plan.copies();
     },
     [](const Scenario&) {
       return std::string("plan.shard_degree: ZeRO shards over all data ranks");
     }},
    {[](const Scenario& s) { return s.plan.expert.shared_overlap; },
     [](const Scenario&) {
       return std::string("DeepSpeed's layers of experts have no shared_expert_overlap");
     }},
    {[](const Scenario& s) { return asks_gpipe(s); },
     [](const Scenario&) { return std::string("DeepSpeed runs 1f1b, not gpipe"); }},
    {[](const Scenario& s) {
       return s.plan.recompute == Recompute::selective || s.plan.recompute == Recompute::operators;
     },
     [](const Scenario&) {
       return std::string("DeepSpeed recomputes whole layers: no selective recompute");
     }},
};

/// Sizes of buckets are numbers of elements, of the gradients' type.
OrderedJson zero_of(const Scenario& s) {
  const std::int64_t stage = zero_stage(s.plan.data);
  OrderedJson out = {{"stage", stage}};
  if (stage == 0) return out;
  const std::int64_t elements =
      s.software.data.bucket_bytes / workloads::bytes_per_element(s.precision.compute);
  out["reduce_bucket_size"] = elements;
  if (stage < 3) out["allgather_bucket_size"] = elements;
  for (const auto& [share, name] : {std::pair{s.plan.offload.optimizer, "offload_optimizer"},
                                    std::pair{s.plan.offload.parameters, "offload_param"}})
    if (share > 0) out[name] = {{"device", "cpu"}, {"pin_memory", true}};
  out["overlap_comm"] = stage == 3 || s.software.data.gradient_overlap;
  return out;
}

std::string short_dtype(Dtype dtype) {
  return dtype == Dtype::bf16 ? "bf16" : dtype == Dtype::fp16 ? "fp16" : "fp32";
}

/// Of those that its engine makes itself but for Adam, which the script makes; empty: none of them
/// (runtime/config.py at edaa7221).
std::string optimizer_type(const Scenario& s) {
  using enum workloads::Optimizer;
  return s.plan.optimizer == muon ? "Muon" : s.plan.optimizer == sgd ? "SGD" : "";
}

OrderedJson configuration_of(const Scenario& s) {
  OrderedJson out;
  out["train_batch_size"] = s.global_batch;
  out["train_micro_batch_size_per_gpu"] = s.batch.micro_batch;
  out["gradient_accumulation_steps"] = s.batch.micro_batches;
  out["zero_optimization"] = zero_of(s);
  if (s.precision.compute == Dtype::bf16) out["bf16"] = {{"enabled", true}};
  if (s.precision.compute == Dtype::fp16) out["fp16"] = {{"enabled", true}};
  if (s.precision.gradient_reduce != s.precision.compute)
    out["communication_data_type"] = short_dtype(s.precision.gradient_reduce);
  if (s.software.optimizer.clips) out["gradient_clipping"] = 1.0;  // any threshold takes as long
  if (const std::string type = optimizer_type(s); !type.empty())
    out["optimizer"] = {{"type", type}};
  if (s.plan.recompute == Recompute::full) {
    const std::int64_t every = has_megatron(s) ? 1 : s.plan.recompute_every;  // its layers' own
    out["activation_checkpointing"] = {
        {"partition_activations", false},
        {"number_checkpoints", (s.model.layers + every - 1) / every}};
  }
  return out;
}

/// The configuration has no key of experts: the script makes their layers (arguments of
/// deepspeed/moe/layer.py; recalled, 2026).
std::string experts_note(const Scenario& s) {
  const workloads::ExpertShape& e = s.model.experts;
  const workloads::ExpertPlan& plan = s.plan.expert;
  const bool drops = plan.capacity_factor > 0;
  return fmt::format(
      "The script makes layers of experts: deepspeed.moe.layer.MoE(hidden_size={}, expert=..., "
      "num_experts={}, ep_size={}, k={}, {}drop_tokens={}).",
      s.model.hidden, e.count, plan.degree, e.per_token,
      drops ? fmt::format("capacity_factor={:g}, ", plan.capacity_factor) : "",
      drops ? "True" : "False");
}

}  // namespace

Launch deepspeed_launch(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, deepspeed_refusals);
  if (!out.why_not.empty()) return out;
  const std::string json = json_text(configuration_of(s), 2) + "\n";
  if (has_megatron(s)) {
    out = megatron_launch(s);
    if (!out.why_not.empty()) return out;
    for (LaunchFile& file : out.files)
      file.use = torchrun(s, "pretrain_gpt.py $(cat megatron.args)");
    out.files.push_back({"deepspeed.json", json, "read by megatron.args (--deepspeed_config)"});
    return out;
  }
  out.notes = common_notes(s, {"software.gradient_overlap", "software.ddp_bucket_bytes",
                               optimizer_type(s).empty() ? "" : "plan.optimizer"});
  if (s.model.experts.count > 0) out.notes.push_back(experts_note(s));
  if (stated_routing(s)) out.notes.push_back(routing_note());
  if (s.plan.recompute == Recompute::full)
    out.notes.push_back(fmt::format(
        "The script itself calls deepspeed.checkpointing.checkpoint for {}.",
        s.plan.recompute_every == 1 ? std::string("every layer")
                                    : fmt::format("every {} layers", s.plan.recompute_every)));
  out.files.push_back(
      {"deepspeed.json", json,
       torchrun(s, "your_script.py --deepspeed --deepspeed_config deepspeed.json")});
  return out;
}

}  // namespace stepcast::sim
