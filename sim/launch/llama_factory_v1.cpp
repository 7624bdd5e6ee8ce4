// A plan in the words of LLaMA-Factory's second generation: its own trainer, over FSDP2, DeepSpeed
// or DDP. Names and what they make: hiyouga/LLaMA-Factory at ff6d4d1, src/llamafactory/v1.
#include <fmt/format.h>

#include "sim/files/names.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/own_word_forms.hpp"
#include "sim/launch/trainer_words.hpp"
#include "sim/scenario/model_members.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Dtype;

bool adapts(const Scenario& s) { return s.model.lora.rank > 0; }

/// Experts on ranks of their own, weights in bf16 alone: FSDPTurbo's.
bool by_turbo(const Scenario& s) { return s.model.experts.count > 0 && !s.precision.masters; }

/// DeepSpeed sums gradients in the type of the products, FSDP's policy there in fp32.
bool shards_by_deepspeed(const Scenario& s) {
  const bool narrow = s.precision.gradient_reduce != Dtype::fp32;
  return by_deepspeed(s) || (narrow && s.plan.data != DataParallel::ddp);
}

std::string plain(const char* why) { return why; }

constexpr Refusal v1_refusals[] = {
    {[](const Scenario& s) { return s.plan.tensor > 1 || s.plan.pipeline > 1; },
     [](const Scenario&) { return plain("its second generation has no tensor or stage ranks"); }},
    {[](const Scenario& s) { return !recomputes_all_or_none(s); },
     [](const Scenario&) { return plain("activation checkpointing is of all layers or none"); }},
    {[](const Scenario& s) {
       const Dtype compute = s.precision.compute;
       return compute != Dtype::bf16 && (compute != Dtype::fp32 || shards_by_deepspeed(s));
     },
     [](const Scenario&) {
       return plain("its second generation computes in bf16, or without DeepSpeed in fp32");
     }},
    {[](const Scenario& s) {
       const bool half = s.precision.compute == Dtype::bf16;
       return s.plan.data == DataParallel::ddp && half != adapts(s);
     },
     [](const Scenario&) {
       return plain("its DDP casts nothing: fp32, or adapters beside weights in bf16");
     }},
    {[](const Scenario& s) {
       return s.plan.context > 1 && (s.plan.data == DataParallel::ddp || shards_by_deepspeed(s));
     },
     [](const Scenario&) { return plain("its context ranks stand beside fsdp2 alone"); }},
    {[](const Scenario& s) {
       return s.plan.context > 1 &&
              s.software.attention.exchange != workloads::ContextExchange::all_to_all;
     },
     [](const Scenario&) { return plain("its context ranks exchange heads (ulysses)"); }},
    {[](const Scenario& s) {
       return s.plan.expert.degree > 1 && (!by_turbo(s) || s.plan.data == DataParallel::ddp ||
                                           shards_by_deepspeed(s) || s.plan.expert_tensor() > 1);
     },
     [](const Scenario&) {
       return plain("experts on ranks of their own are fsdpturbo's: precision.masters = false");
     }},
    {[](const Scenario& s) {
       return by_turbo(s) && s.plan.data != DataParallel::ddp &&
              s.plan.shards() * s.plan.context != s.plan.copies();
     },
     [](const Scenario&) { return plain("fsdpturbo shards over all data ranks"); }},
    {[](const Scenario& s) {
       using enum workloads::Optimizer;
       return s.plan.optimizer != adam && s.plan.optimizer != muon;
     },
     [](const Scenario& s) {
       return fmt::format("plan.optimizer = {} has no word there",
                          word_for(optimizer_form_names, s.plan.optimizer));
     }},
};

/// Lines of YAML, a table of each plugin.
class Lines {
 public:
  void set(const char* name, const auto& value) {
    written_word(llama_factory_v1_words(), name);
    const std::string path(name);
    const std::size_t dot = path.find('.');
    if (dot == std::string::npos) {
      text += fmt::format("{}: {}\n", path, value);
      return;
    }
    if (const std::string table = path.substr(0, dot); table != table_) {
      text += table + ":\n";
      table_ = table;
    }
    text += fmt::format("  {}: {}\n", path.substr(dot + 1), value);
  }
  void none(const char* table) { text += fmt::format("{}: null\n", table); }

  std::string text;

 private:
  std::string table_;
};

void add_sharding(const Scenario& s, Lines& out) {
  if (s.plan.data == DataParallel::ddp) return out.none("dist_config");
  if (shards_by_deepspeed(s)) {
    out.set("dist_config.name", "deepspeed");
    out.set("dist_config.config_file", "deepspeed.json");
    return;
  }
  out.set("dist_config.name", by_turbo(s) ? "fsdpturbo" : "fsdp2");
  out.set("dist_config.config_file", "null");
  out.set("dist_config.reshard_after_forward", s.plan.data == DataParallel::zero3);
  out.set("dist_config.offload_params", s.plan.offload.optimizer > 0);
  out.set("dist_config.ep_size", s.plan.expert.degree);
}

void add_adapters(const Scenario& s, Lines& out) {
  const auto& lora = s.model.lora;
  if (!adapts(s)) {
    out.none("peft_config");
    return out.none("quant_config");
  }
  out.set("peft_config.name", "lora");
  out.set("peft_config.r", lora.rank);
  out.set("peft_config.target_modules", projections(s));
  if (!lora.dropout) out.set("peft_config.lora_dropout", 0);
  using enum workloads::LoraBase;
  if (lora.base != int8 && lora.base != nf4 && lora.base != nf4_double)
    return out.none("quant_config");
  out.set("quant_config.name", "bnb");
  out.set("quant_config.quantization_bit", lora.base == int8 ? 8 : 4);
  if (lora.base != int8) out.set("quant_config.double_quantization", lora.base == nf4_double);
}

}  // namespace

Launch llama_factory_v1_words_of(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, v1_refusals);
  if (!out.why_not.empty()) return out;
  Lines lines;
  lines.set("cutoff_len", s.batch.sequence);
  lines.set("micro_batch_size", s.batch.micro_batch);
  lines.set("global_batch_size", s.global_batch);
  lines.set("enable_activation_checkpointing", s.plan.recompute == workloads::Recompute::full);
  lines.set("bf16", s.precision.compute == Dtype::bf16);
  lines.set("cp_size", s.plan.context);
  const bool hybrid = s.plan.data != DataParallel::ddp && !shards_by_deepspeed(s) && !by_turbo(s) &&
                      s.plan.shards() < s.plan.copies();
  lines.set("mp_replicate_size", hybrid ? s.plan.shard_replicas() : 1);
  lines.set("mp_shard_size", hybrid ? std::to_string(s.plan.shards()) : "null");
  add_sharding(s, lines);
  add_adapters(s, lines);
  if (s.plan.optimizer == workloads::Optimizer::muon)
    lines.set("optim_config.name", "muon");
  else
    lines.none("optim_config");
  out.notes =
      notes_on(s, shards_by_deepspeed(s) ? s.precision.gradient_reduce : Dtype::fp32, by_turbo(s));
  out.files.push_back({"llama_factory_v1.yaml", lines.text, "laid over your own configuration"});
  if (shards_by_deepspeed(s)) add_deepspeed_file(s, out);
  return out;
}

}  // namespace stepcast::sim
