// nanotron's YAML.
#include "sim/inputs/formats.hpp"
#include "sim/inputs/translator.hpp"

namespace stepcast::sim {
namespace {

using Number = std::int64_t;

/// huggingface/nanotron at 2411b022 (2026-04), config/*.py.
class NanotronFacts : public Translator {
 public:
  using Translator::Translator;

  void add() {
    for (const auto& [name, key] :
         {std::pair{"model.model_config.num_hidden_layers", "model.layers"},
          {"model.model_config.hidden_size", "model.hidden"},
          {"model.model_config.num_attention_heads", "model.heads"},
          {"model.model_config.num_key_value_heads", "model.kv_heads"},
          {"model.model_config.intermediate_size", "model.ffn_hidden"},
          {"model.model_config.vocab_size", "model.vocab"},
          {"model.model_config.moe_config.num_experts", "model.experts"},
          {"model.model_config.moe_config.top_k", "model.experts_per_token"},
          {"model.model_config.moe_num_experts", "model.experts"},
          {"model.model_config.num_experts_per_tok", "model.experts_per_token"},
          {"model.model_config.intermediate_size", "model.expert_ffn"},
          {"model.model_config.moe_config.moe_intermediate_size", "model.expert_ffn"},
          {"tokens.sequence_length", "model.sequence"},
          {"parallelism.tp", "plan.tensor"},
          {"parallelism.pp", "plan.pipeline"},
          {"parallelism.context_parallel_size", "plan.context"},
          {"parallelism.expert_parallel_size", "plan.expert"}})
      if (const auto value = integer(name); value && *value > 0) set(key, *value);
    if (facts_.find("model.experts") == nullptr)
      facts_.erase("model.expert_ffn");
    else
      set("model.ffn_hidden", Number{0});
    set("model.norm", std::string("rmsnorm"));
    set("model.activation", std::string("swiglu"));
    set("model.rope", true);
    set("model.biases", false);
    set("model.tied_embeddings", on("model.model_config.tie_word_embeddings"));
    const bool reduces = word("parallelism.tp_mode") == "REDUCE_SCATTER";
    if (integer("parallelism.tp").value_or(1) > 1) set("plan.sequence_parallel", reduces);
    const std::string engine = word("parallelism.pp_engine");
    if (engine == "afab") set("plan.schedule", std::string("gpipe"));
    const Number zero = integer("optimizer.zero_stage").value_or(0);
    set("plan.data", std::string(zero > 0 ? "zero1" : "ddp"));
    set("plan.recompute", std::string(on("parallelism.recompute_layer") ? "full" : "none"));
    const Number micro = integer("tokens.micro_batch_size").value_or(1);
    const Number turns = integer("tokens.batch_accumulation_per_replica").value_or(1);
    const Number copies = integer("parallelism.dp").value_or(1);
    set("batch.micro_batch", micro);
    set("batch.global", micro * turns * copies);
    const bool half = word("model.dtype") == "bfloat16";
    set("precision.compute", std::string(half ? "bf16" : "fp32"));
    const auto wide = settings_.flag("optimizer.accumulate_grad_in_fp32");
    set("precision.gradient_reduce", std::string(wide.value_or(true) || !half ? "fp32" : "bf16"));
    set("software.framework", std::string("nanotron"));
    Number all = copies;
    for (const char* key : {"plan.tensor", "plan.pipeline", "plan.context"})
      all *= facts_.integer(key).value_or(1);
    ranks(all);
  }
};

}  // namespace

void add_nanotron_facts(Facts& facts, const Settings& settings, const Catalogue&,
                        const std::string& source) {
  NanotronFacts(facts, settings, "", source).add();
}

}  // namespace stepcast::sim
