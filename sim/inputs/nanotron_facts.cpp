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
          {"tokens.sequence_length", "model.sequence"},
          {"parallelism.tp", "plan.tensor"},
          {"parallelism.pp", "plan.pipeline"},
          {"parallelism.context_parallel_size", "plan.context"}})
      if (const auto value = integer(name); value && *value > 0) set(key, *value);
    const Number turns_of_experts = experts();
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
    const Number copies = integer("parallelism.dp").value_or(1) * turns_of_experts;
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

 private:
  /// Of its Qwen (nn/moe.py, config/models_config.py: MoEConfig) and of examples/moe
  /// (LlaMoEConfig). Returns the expert degree: its expert ranks are ranks beside those of all
  /// other degrees.
  Number experts() {
    const bool qwen = settings_.has("model.model_config.moe_config.num_experts");
    const auto count = integer(qwen ? "model.model_config.moe_config.num_experts"
                                    : "model.model_config.moe_num_experts");
    if (!count || *count < 2) return 1;
    set("model.experts", *count);
    const auto first = [&](const char* name, Number usual) {
      return integer(name).value_or(usual);
    };
    if (qwen) {
      constexpr Number usual_width = 1408, usual_shared = 5632;  // MoEConfig's defaults
      set("model.experts_per_token", first("model.model_config.moe_config.top_k", 2));
      set("model.expert_ffn",
          first("model.model_config.moe_config.moe_intermediate_size", usual_width));
      if (on("model.model_config.moe_config.enable_shared_expert")) {
        set("model.shared_expert_ffn",
            first("model.model_config.moe_config.shared_expert_intermediate_size", usual_shared));
        set("model.shared_expert_gate", true);
      }
      const std::string layers = word("model.model_config.moe_config.layers");
      if (!layers.empty() && layers != "[-1]")
        note("moe_config.layers: every layer is taken to have experts.");
    } else {
      set("model.experts_per_token", first("model.model_config.num_experts_per_tok", 1));
      if (const auto width = integer("model.model_config.intermediate_size"))
        set("model.expert_ffn", *width);
    }
    set("model.ffn_hidden", Number{0});
    const Number degree = integer("parallelism.expert_parallel_size").value_or(1);
    if (degree < 2) return 1;
    set("plan.expert", degree);
    set("plan.expert_tensor", integer("parallelism.tp").value_or(1));
    note(
        "expert_parallel_size: its expert ranks are taken as data ranks, each with a batch as "
        "large as dp's.");
    return degree;
  }
};

}  // namespace

void add_nanotron_facts(Facts& facts, const Settings& settings, const Catalogue&,
                        const std::string& source) {
  NanotronFacts(facts, settings, "", source).add();
}

}  // namespace stepcast::sim
