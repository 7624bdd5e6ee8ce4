// NeMo 1's YAML, laid over the recipe that a model has. Keys were read in launcher_scripts/conf/
// training/gpt3/175b.yaml of NVIDIA/NeMo-Megatron-Launcher at 0c6c960d; those of norm, activation
// and positions in the configuration that NeMo 1.23 prints.
#include <fmt/format.h>

#include <algorithm>

#include "sim/launch/forms.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Dtype;
using workloads::Recompute;

constexpr Refusal nemo_refusals[] = {
    {[](const Scenario& s) { return s.software.version != "2023"; },
     [](const Scenario& s) {
       return "nemo " + s.software.version +
              " is set up by recipes in Python; nemo 2023 and 25.11 to 26.06 have a form here";
     }},
    {[](const Scenario& s) { return asks_gpipe(s); },
     [](const Scenario&) { return std::string("NeMo runs 1f1b, not gpipe"); }},
    {[](const Scenario& s) { return !equal_parts(s); },
     [](const Scenario& s) {
       return fmt::format("NeMo cuts {} layers into {} equal parts alone", s.model.layers,
                          s.plan.parts());
     }},
    {[](const Scenario& s) {
       return s.plan.data != DataParallel::ddp && s.plan.shards() < s.plan.copies();
     },
     [](const Scenario&) {
       return std::string(
           "its distributed optimizer shards over all data ranks: no plan.shard_degree");
     }},
    {[](const Scenario& s) { return s.model.objective == workloads::Objective::masked; },
     [](const Scenario&) { return std::string("BERT has a training script of its own"); }},
    {[](const Scenario& s) {
       return workloads::attention_beyond_llama(s.model) || s.model.experts.count > 0;
     },
     [](const Scenario&) {
       return std::string("NeMo 1 has words for Llama's and GPT's layers alone");
     }},
};

/// Containers from 25.11 on.
bool of_bridge(const std::string& version) {
  return version.starts_with("25.") || version.starts_with("26.");
}

class NemoYaml {
 public:
  explicit NemoYaml(const Scenario& scenario) : s_(scenario) {}

  std::string text() {
    out_ = "trainer:\n";
    set("num_nodes", s_.nodes);
    set("devices", s_.gpus / s_.nodes);
    set("precision", precision());
    out_ += "model:\n";
    model();
    plan();
    optimizer();
    return std::move(out_);
  }

 private:
  template <class T>
  void set(std::string_view name, const T& value) {
    out_ += fmt::format("  {}: {}\n", name, value);
  }

  std::string precision() const {
    if (s_.precision.compute == Dtype::bf16) return "bf16";
    return s_.precision.compute == Dtype::fp16 ? "16" : "32";
  }

  void model() {
    const auto& model = s_.model;
    set("mcore_gpt", true);
    set("encoder_seq_length", s_.batch.sequence);
    set("max_position_embeddings", std::max(model.max_positions, s_.batch.sequence));
    set("num_layers", model.layers);
    set("hidden_size", model.hidden);
    set("ffn_hidden_size", model.ffn_hidden);
    set("num_attention_heads", model.heads);
    set("num_query_groups", model.kv_heads);
    set("kv_channels", model.head_dim);
    set("normalization", model.norm == workloads::Norm::rmsnorm ? "rmsnorm" : "layernorm");
    set("activation", model.activation == workloads::Activation::swiglu ? "fast-swiglu" : "gelu");
    set("bias", model.biases);
    set("position_embedding_type", model.rope ? "rope" : "learned_absolute");
    set("share_embeddings_and_output_weights", model.tied_embeddings);
    set("hidden_dropout", model.dropout ? 0.1 : 0.0);
    set("attention_dropout", model.dropout ? 0.1 : 0.0);
  }

  void plan() {
    const auto& plan = s_.plan;
    set("micro_batch_size", s_.batch.micro_batch);
    set("global_batch_size", s_.global_batch);
    set("tensor_model_parallel_size", plan.tensor);
    set("sequence_parallel", plan.sequence_parallel && plan.tensor > 1);
    set("context_parallel_size", plan.context);
    set("pipeline_model_parallel_size", plan.pipeline);
    set("virtual_pipeline_model_parallel_size",
        plan.virtual_stages > 1 ? std::to_string(plan.virtual_stages) : "null");
    set("megatron_amp_O2", true);
    if (s_.precision.recipe != workloads::Recipe::none) delayed_scaling();
    recompute();
  }

  /// The one recipe that it has; keys of NeMo 1.23 (recalled, 2026).
  void delayed_scaling() {
    set("transformer_engine", true);
    set("fp8", true);
    set("fp8_hybrid", true);
    set("fp8_amax_history_len", 1024);
    set("fp8_amax_compute_algo", "max");
    if (s_.precision.fp8_parameters) set("fp8_params", true);
  }

  void recompute() {
    const bool full = s_.plan.recompute == Recompute::full;
    const std::int64_t every = s_.plan.recompute_every, layers = part_layers(s_).front();
    set("activations_checkpoint_granularity", full ? "full"
                                              : s_.plan.recompute == Recompute::selective
                                                  ? "selective"
                                                  : "null");
    set("activations_checkpoint_method", !full ? "null" : every > 1 ? "block" : "uniform");
    set("activations_checkpoint_num_layers",
        !full ? "null" : std::to_string(every > 1 ? (layers + every - 1) / every : 1));
  }

  void optimizer() {
    const auto& data = s_.software.data;
    const bool shards = s_.plan.data != DataParallel::ddp;
    out_ += "  optim:\n";
    set("  name", shards ? "distributed_fused_adam" : "fused_adam");
    if (!shards) return;
    constexpr std::int64_t megabyte = 1'000'000;
    set("  bucket_cap_mb", data.bucket_bytes / megabyte);
    set("  overlap_grad_sync", data.gradient_overlap);
    set("  overlap_param_sync", data.gather_overlap);
  }

  const Scenario& s_;
  std::string out_;
};

std::vector<std::string> nemo_notes(const Scenario& s) {
  std::vector<std::string> out{
      "nemo.yaml is laid over the recipe of the model.",
      fmt::format("The vocabulary of {} is the tokenizer's.", s.model.vocab)};
  if (s.precision.gradient_reduce != Dtype::fp32) out.push_back(other_reduction(s, Dtype::fp32));
  if (s.plan.recompute == Recompute::full && s.plan.recompute_every > 1)
    out.push_back(first_layers_note(s));
  if (leaves_layers(s)) out.push_back(left_layers_note(s));
  for (std::string& note : common_notes(s, {"software.gradient_overlap", "software.gather_overlap",
                                            "software.ddp_bucket_bytes"}))
    out.push_back(std::move(note));
  return out;
}

}  // namespace

Launch nemo_launch(const Scenario& s) {
  if (of_bridge(s.software.version)) return bridge_launch(s);
  Launch out;
  out.why_not = refused(s, nemo_refusals);
  if (!out.why_not.empty()) return out;
  out.notes = nemo_notes(s);
  out.files.push_back(
      {"nemo.yaml", NemoYaml(s).text(),
       torchrun(s, "megatron_gpt_pretraining.py --config-path . --config-name nemo")});
  return out;
}

}  // namespace stepcast::sim
