// TRL's and transformers' YAML, and accelerate's beside it. Names of huggingface/trl at f2cd577 and
// huggingface/accelerate at 16cb6eb (2026-07).
#include <fmt/format.h>

#include "sim/files/names.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/megatron_arguments.hpp"
#include "sim/scenario/model_members.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Dtype;
using workloads::Recompute;

constexpr Refusal trl_refusals[] = {
    {[](const Scenario& s) { return s.plan.pipeline > 1; },
     [](const Scenario&) { return std::string("transformers trains without pipeline stages"); }},
    {[](const Scenario& s) { return s.plan.tensor > 1 && s.plan.sequence_parallel; },
     [](const Scenario&) {
       return std::string("transformers' tensor ranks do not cut the sequence: sequence_parallel");
     }},
    {[](const Scenario& s) { return s.plan.expert.degree > 1; },
     [](const Scenario&) { return std::string("TRL has no expert-parallel degree"); }},
    {[](const Scenario& s) { return !recomputes_all_or_none(s); },
     [](const Scenario&) {
       return std::string("gradient_checkpointing is of all layers or none");
     }},
    {[](const Scenario& s) {
       return s.plan.context * s.plan.tensor > 1 && s.plan.data == DataParallel::ddp;
     },
     [](const Scenario&) {
       return std::string(
           "accelerate has tensor and context ranks beside FSDP alone: there is no ddp");
     }},
    {[](const Scenario& s) { return asks_gpipe(s); },
     [](const Scenario&) {
       return std::string("transformers accumulates gradients, it runs no gpipe");
     }},
    {[](const Scenario& s) {
       return s.plan.data == DataParallel::zero1 && s.plan.tensor * s.plan.context > 1;
     },
     [](const Scenario&) {
       return std::string(
           "DeepSpeed's zero1 under accelerate has no tensor or context degree here");
     }},
    {[](const Scenario& s) {
       return s.plan.data == DataParallel::zero1 && s.plan.shards() < s.plan.copies();
     },
     [](const Scenario&) {
       return std::string("plan.shard_degree: ZeRO shards over all data ranks");
     }},
};

/// FSDP has no zero1.
bool zero1_by_deepspeed(const Scenario& s) { return s.plan.data == DataParallel::zero1; }

std::string lora_targets(const Scenario& s) {
  std::string out;
  for (const auto& [name, target] : lora_target_names)
    if (s.model.lora.targets.has(target))
      out += (out.empty() ? "" : ", ") + std::string(name) + "_proj";
  return "[" + out + "]";
}

std::string training_yaml(const Scenario& s) {
  std::string out = fmt::format("model_name_or_path: {}\n", s.model.name);
  const auto set = [&](const char* key, const auto& value) {
    out += fmt::format("{}: {}\n", key, value);
  };
  set("max_length", s.batch.sequence);
  set("packing", "true");
  set("per_device_train_batch_size", s.batch.micro_batch);
  set("gradient_accumulation_steps", s.batch.micro_batches);
  set("gradient_checkpointing", true_or_false(s.plan.recompute == Recompute::full));
  set("bf16", true_or_false(s.precision.compute == Dtype::bf16));
  if (s.precision.compute == Dtype::fp16) set("fp16", "true");
  if (s.software.compiled()) set("torch_compile", "true");
  if (s.software.attention.kernel == workloads::AttentionKernel::flash2)
    set("attn_implementation", "flash_attention_2");
  using enum workloads::Optimizer;
  for (const auto& [form, name] :
       {std::pair{adam_8bit, "adamw_bnb_8bit"}, {adafactor, "adafactor"}, {sgd, "sgd"}})
    if (s.plan.optimizer == form) set("optim", name);
  const auto& lora = s.model.lora;
  if (lora.rank == 0) return out;
  set("use_peft", "true");
  set("lora_r", lora.rank);
  set("lora_target_modules", lora_targets(s));
  if (lora.base == workloads::LoraBase::int8) set("load_in_8bit", "true");
  if (lora.base == workloads::LoraBase::nf4 || lora.base == workloads::LoraBase::nf4_double)
    set("load_in_4bit", "true");
  if (lora.base == workloads::LoraBase::nf4_double) set("use_bnb_nested_quant", "true");
  return out;
}

std::string accelerate_yaml(const Scenario& s) {
  const bool sharded = s.plan.data != DataParallel::ddp;
  std::string out = "compute_environment: LOCAL_MACHINE\n";
  const auto set = [&](const char* key, const auto& value) {
    out += fmt::format("{}: {}\n", key, value);
  };
  set("distributed_type", zero1_by_deepspeed(s) ? "DEEPSPEED" : sharded ? "FSDP" : "MULTI_GPU");
  set("mixed_precision", s.precision.compute == Dtype::bf16   ? "bf16"
                         : s.precision.compute == Dtype::fp16 ? "fp16"
                                                              : "'no'");
  set("num_machines", s.nodes);
  set("num_processes", s.gpus);
  if (zero1_by_deepspeed(s)) {
    out += fmt::format("deepspeed_config:\n  zero_stage: {}\n", zero_stage(s.plan.data));
    out += fmt::format("  gradient_accumulation_steps: {}\n", s.batch.micro_batches);
    if (s.plan.offload.optimizer > 0) out += "  offload_optimizer_device: cpu\n";
    return out;
  }
  if (sharded) {
    out += "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    out += fmt::format("  fsdp_reshard_after_forward: {}\n",
                       true_or_false(s.plan.data == DataParallel::zero3));
    out += fmt::format("  fsdp_offload_params: {}\n", true_or_false(s.plan.offload.optimizer > 0));
  }
  const DataMesh mesh = data_mesh(s);
  if (!sharded || (s.plan.tensor * s.plan.context == 1 && mesh.replicate == 1)) return out;
  out += "parallelism_config:\n";
  for (const auto& [name, degree] :
       {std::pair{"dp_replicate", mesh.replicate}, std::pair{"dp_shard", mesh.shard},
        std::pair{"tp", s.plan.tensor}, std::pair{"cp", s.plan.context}})
    out += fmt::format("  parallelism_config_{}_size: {}\n", name, degree);
  return out;
}

std::vector<std::string> trl_notes(const Scenario& s) {
  std::vector<std::string> out;
  if (s.model.name.find('/') == std::string::npos)
    out.push_back("model_name_or_path: " + s.model.name +
                  " is stepcast's name, put the id or folder there that you train.");
  const Dtype summed = s.plan.data == DataParallel::ddp ? Dtype::fp32 : s.precision.compute;
  if (s.precision.gradient_reduce != summed) out.push_back(other_reduction(s, summed));
  if (s.precision.recipe != workloads::Recipe::none)
    out.emplace_back("precision.recipe is not said: fp8 has a configuration of its own.");
  if (stated_routing(s)) out.push_back(routing_note());
  if (s.plan.tensor > 1)
    out.emplace_back("tp_plan of the model says which products are cut: not every model has one.");
  for (std::string& note :
       common_notes(s, {"software.fusion", "software.attention", "software.autocast"}))
    out.push_back(std::move(note));
  return out;
}

}  // namespace

Launch trl_launch(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, trl_refusals);
  if (out.why_not.empty() && s.plan.data != DataParallel::zero1) out.why_not = mesh_refusal(s);
  if (!out.why_not.empty()) return out;
  out.notes = trl_notes(s);
  out.files.push_back(
      {"trl.yaml", training_yaml(s), "trl sft --config trl.yaml, your data beside"});
  out.files.push_back({"accelerate.yaml", accelerate_yaml(s),
                       "accelerate launch --config_file accelerate.yaml sft.py --config trl.yaml"});
  return out;
}

}  // namespace stepcast::sim
