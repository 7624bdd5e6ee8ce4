// nanotron's YAML; GPT-NeoX's, and the print of all its arguments; llm-foundry's YAML.
#include <algorithm>

#include "sim/inputs/formats.hpp"
#include "sim/inputs/translator.hpp"

namespace stepcast::sim {
namespace {

using Number = std::int64_t;

/// huggingface/nanotron; its names and where they were read: other_words.cpp.
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
    // Its Llama has none whatever it says (models/llama.py, models/qwen.py).
    if (on("model.model_config.is_qwen2_config") && on("model.model_config.attention_bias"))
      set("model.qkv_biases", true);
    if (word("optimizer.optimizer_factory.name") == "sgd")
      set("plan.optimizer", std::string("sgd"));
    if (integer("parallelism.tp").value_or(1) > 1) sequence_parallel();
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
  void sequence_parallel() {
    const bool reduces = word("parallelism.tp_mode") == "REDUCE_SCATTER";
    const bool experts = facts_.find("model.experts") != nullptr;
    set("plan.sequence_parallel", reduces || experts);
    if (experts && !reduces)
      note(
          "tp_mode: tensor ranks that all send every token to its experts are not modelled: they "
          "are taken to cut the sequence, as with REDUCE_SCATTER.");
  }
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

/// EleutherAI/gpt-neox, megatron/neox_arguments/neox_args.py; recalled, 2026-11.
class NeoxFacts : public Translator {
 public:
  using Translator::Translator;

  void add() {
    for (const auto& [name, key] : {std::pair{"num_layers", "model.layers"},
                                    {"hidden_size", "model.hidden"},
                                    {"num_attention_heads", "model.heads"},
                                    {"num_kv_heads", "model.kv_heads"},
                                    {"seq_length", "model.sequence"},
                                    {"train_batch_size", "batch.global"},
                                    {"train_micro_batch_size_per_gpu", "batch.micro_batch"}})
      if (const auto value = integer(name); value && *value > 0) set(key, *value);
    const auto vocab =
        integer("padded_vocab_size") ? integer("padded_vocab_size") : integer("vocab_size");
    constexpr Number of_neox_20b = 50432;  // its tokenizer's, in whole 128s
    set("model.vocab", vocab.value_or(of_neox_20b));
    const auto hidden = integer("hidden_size");
    set("model.ffn_hidden", integer("intermediate_size").value_or(4 * hidden.value_or(0)));
    set("model.norm", std::string(word("norm").starts_with("rms") ? "rmsnorm" : "layernorm"));
    const bool gated = word("activation").find("glu") != std::string::npos;
    set("model.activation", std::string(gated ? "swiglu" : "gelu"));
    const bool learned = word("pos_emb").empty() || word("pos_emb") == "learned";
    set("model.rope", !learned);
    if (const auto most = integer("max_position_embeddings"); most && learned)
      set("model.max_positions", *most);
    set("model.tied_embeddings", !on("no_weight_tying"));
    set("model.dropout", settings_.number(name("hidden_dropout")).value_or(0) > 0);
    set("plan.tensor", std::max<Number>(1, integer("model_parallel_size").value_or(1)));
    set("plan.pipeline", std::max<Number>(1, integer("pipe_parallel_size").value_or(1)));
    const auto stage = integer(integer("zero_stage") ? "zero_stage" : "zero_optimization.stage");
    set("plan.data", stage.value_or(0) < 1 ? std::string("ddp")
                                           : "zero" + std::to_string(std::min<Number>(*stage, 3)));
    set("plan.recompute", std::string(on("checkpoint_activations") ? "full" : "none"));
    const bool bf16 = word("precision") == "bfloat16" || on("bf16.enabled");
    const bool fp16 = word("precision") == "fp16" || on("fp16.enabled");
    set("precision.compute", std::string(bf16 ? "bf16" : fp16 ? "fp16" : "fp32"));
    if (word("attention_config").find("flash") != std::string::npos)
      set("software.attention", std::string("flash2"));
    if (const std::string* name = find("optimizer.type")) optimizer_called(*name);
    set("software.framework", std::string("gpt-neox"));
    ranks(integer("world_size"));
  }
};

/// mosaicml/llm-foundry v0.4 to v0.20, scripts/train/yamls; recalled, 2026-11. Names of other
/// models than MPT are Hugging Face's.
class FoundryFacts : public Translator {
 public:
  using Translator::Translator;

  void add(const Catalogue& catalogue) {
    if (const std::string named = word("model.pretrained_model_name_or_path"); !named.empty())
      set_model_name(facts_, named, catalogue, source_);
    else
      shape();
    for (const char* setting : {"max_seq_len", "model.max_seq_len"})
      if (const auto length = resolved(setting)) set("model.sequence", *length);
    if (const auto batch = resolved("global_train_batch_size")) set("batch.global", *batch);
    if (const auto micro = resolved("device_train_microbatch_size"))
      set("batch.micro_batch", *micro);
    const std::string type = word("precision");
    const std::string compute = type.ends_with("bf16")   ? "bf16"
                                : type.ends_with("fp16") ? "fp16"
                                : type.ends_with("fp8")  ? "bf16"
                                                         : "fp32";
    set("precision.compute", compute);
    if (type.ends_with("fp8")) set("precision.recipe", std::string("fp8_delayed"));
    const std::string mixed = word("fsdp_config.mixed_precision");
    set("precision.gradient_reduce", mixed == "PURE" ? compute : std::string("fp32"));
    const std::string strategy = word("fsdp_config.sharding_strategy");
    set("plan.data", std::string(strategy == "FULL_SHARD"      ? "zero3"
                                 : strategy == "SHARD_GRAD_OP" ? "zero2"
                                                               : "ddp"));
    const bool again = on("fsdp_config.activation_checkpointing");
    set("plan.recompute", std::string(again ? "full" : "none"));
    const std::string kernel = word("model.attn_config.attn_impl");
    if (kernel == "flash") set("software.attention", std::string("flash2"));
    if (kernel == "torch") set("software.attention", std::string("unfused"));
    set("software.framework", std::string("llm-foundry"));
  }

 private:
  /// "${variables.max_seq_len}" is what stands there.
  std::optional<Number> resolved(const std::string& setting) const {
    const std::string* said = settings_.find(setting);
    if (said == nullptr || !said->starts_with("${") || !said->ends_with("}"))
      return settings_.integer(setting);
    return settings_.integer(said->substr(2, said->size() - 3));
  }

  /// MPT's.
  void shape() {
    for (const auto& [name, key] : {std::pair{"model.n_layers", "model.layers"},
                                    {"model.d_model", "model.hidden"},
                                    {"model.n_heads", "model.heads"},
                                    {"model.attn_config.kv_n_heads", "model.kv_heads"},
                                    {"model.vocab_size", "model.vocab"}})
      if (const auto value = resolved(name); value && *value > 0) set(key, *value);
    const auto width = resolved("model.d_model");
    set("model.ffn_hidden", width.value_or(0) * resolved("model.expansion_ratio").value_or(4));
    set("model.norm", std::string("layernorm"));
    set("model.activation", std::string("gelu"));
    const bool rope = on("model.attn_config.rope"), alibi = on("model.attn_config.alibi");
    set("model.rope", rope);
    if (const auto most = resolved("model.max_seq_len"); most && !rope && !alibi)
      set("model.max_positions", *most);
    set("model.biases", !on("model.no_bias"));
    set("model.tied_embeddings", settings_.flag(name("model.tie_word_embeddings")).value_or(true));
  }
};

}  // namespace

void add_nanotron_facts(Facts& facts, const Settings& settings, const Catalogue&,
                        const std::string& source) {
  NanotronFacts(facts, settings, "", source).add();
}

void add_neox_facts(Facts& facts, const Settings& settings, const Catalogue&,
                    const std::string& source) {
  NeoxFacts(facts, settings, "", source).add();
}

void add_foundry_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                       const std::string& source) {
  FoundryFacts(facts, settings, "", source).add(catalogue);
}

}  // namespace stepcast::sim
