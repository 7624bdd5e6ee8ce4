#include "sim/import/model_families.hpp"

#include <algorithm>

namespace stepcast::sim {
namespace {

void read_gpt2(const ConfigReader& config, ModelEntry& out) {
  const std::int64_t hidden = config.needed("n_embd");
  out.set("layers", config.needed("n_layer"));
  out.set("hidden", hidden);
  out.set("heads", config.needed("n_head"));
  out.set("ffn_hidden", config.integer("n_inner").value_or(4 * hidden));
  out.set("max_positions", config.needed("n_positions"));
  out.set("dropout", config.says("resid_pdrop") || config.says("attn_pdrop"));
}

void read_bert(const ConfigReader& config, ModelEntry& out) {
  if (config.integer("type_vocab_size").value_or(2) != 2)
    config.refuse("other than two segments ('type_vocab_size') are not modelled");
  const std::string positions = config.text("position_embedding_type");
  if (!positions.empty() && positions != "absolute")
    config.refuse("positions of type '" + positions + "' are not modelled");
  out.set("max_positions", config.needed("max_position_embeddings"));
  out.set("objective", std::string("masked"));
  out.set("dropout",
          config.says("hidden_dropout_prob") || config.says("attention_probs_dropout_prob"));
}

/// Experts as wide as `intermediate_size` in every layer.
void read_local_experts(const ConfigReader& config, ModelEntry& out) {
  out.set("ffn_hidden", std::int64_t{0});
  out.set("experts", config.needed("num_local_experts"));
  out.set("experts_per_token", config.needed("num_experts_per_tok"));
  out.set("expert_ffn", config.needed("intermediate_size"));
}

void read_gpt_oss(const ConfigReader& config, ModelEntry& out) {
  read_local_experts(config, out);
  out.set("expert_biases", true);
  out.set("sinks", true);
}

/// Layers without experts: the first ones or, as we can say it, none.
std::int64_t dense_layers(const ConfigReader& config) {
  const ConfigReader::Json* layers = config.list("mlp_only_layers");
  if (layers == nullptr) return 0;
  for (std::size_t k = 0; k < layers->size(); ++k)
    if ((*layers)[k] != k)
      config.refuse(
          "layers without experts that are not the first ('mlp_only_layers') are not "
          "modelled");
  return static_cast<std::int64_t>(layers->size());
}

void read_qwen_experts(const ConfigReader& config, ModelEntry& out) {
  const std::int64_t every = config.integer("decoder_sparse_step").value_or(1);
  const std::int64_t dense = dense_layers(config);
  if (dense > 0 && every > 1)
    config.refuse("'mlp_only_layers' beside 'decoder_sparse_step' is not modelled");
  out.set("experts", config.needed("num_experts"));
  out.set("experts_per_token", config.needed("num_experts_per_tok"));
  out.set("expert_ffn", config.needed("moe_intermediate_size"));
  if (every > 1) out.set("expert_every", every);
  if (dense > 0) out.set("dense_layers", dense);
}

void read_qwen2_moe(const ConfigReader& config, ModelEntry& out) {
  read_qwen_experts(config, out);
  out.set("shared_expert_ffn", config.needed("shared_expert_intermediate_size"));
  out.set("shared_expert_gate", true);
}

void read_latent(const ConfigReader& config, ModelEntry& out) {
  out.set("latent_kv_rank", config.needed("kv_lora_rank"));
  out.set("latent_q_rank", config.count("q_lora_rank"));
  out.set("latent_nope", config.needed("qk_nope_head_dim"));
  out.set("latent_rope", config.needed("qk_rope_head_dim"));
  out.set("latent_value", config.needed("v_head_dim"));
}

void read_deepseek(const ConfigReader& config, ModelEntry& out) {
  read_latent(config, out);
  const std::int64_t experts = config.count("n_routed_experts");
  if (experts == 0) return;
  if (config.integer("moe_layer_freq").value_or(1) != 1)
    config.refuse("experts in every n-th layer alone ('moe_layer_freq') are not modelled");
  const std::int64_t ffn = config.needed("moe_intermediate_size");
  out.set("experts", experts);
  out.set("experts_per_token", config.needed("num_experts_per_tok"));
  out.set("expert_ffn", ffn);
  out.set("shared_expert_ffn", config.count("n_shared_experts") * ffn);
  out.set("dense_layers", config.count("first_k_dense_replace"));
  const std::string method = config.text("topk_method");
  if (method == "greedy") return;
  out.set("router_groups", config.integer("n_group").value_or(1));
  out.set("router_group_limit", config.integer("topk_group").value_or(1));
}

void read_deepseek_v3(const ConfigReader& config, ModelEntry& out) {
  read_deepseek(config, out);
  const std::string score = config.text("scoring_func");
  out.set("router", score.empty() ? std::string("sigmoid") : score);
  out.set("router_bias", true);
  out.set("mtp_layers", config.count("num_nextn_predict_layers"));
}

/// The text model. `intermediate_size` is an expert's and the shared expert's width.
void read_llama4(const ConfigReader& config, ModelEntry& out) {
  const std::int64_t every = config.integer("interleave_moe_layer_step").value_or(1);
  const std::int64_t layers = config.needed("num_hidden_layers");
  if (const ConfigReader::Json* stated = config.list("moe_layers")) {
    std::vector<std::int64_t> usual;
    for (std::int64_t l = every - 1; l < layers; l += every) usual.push_back(l);
    if (*stated != usual)
      config.refuse("experts in other layers ('moe_layers') than every n-th are not modelled");
  }
  read_local_experts(config, out);
  if (every > 1) {
    out.set("ffn_hidden", config.needed("intermediate_size_mlp"));
    out.set("expert_every", every);
  }
  out.set("shared_expert_ffn", config.needed("intermediate_size"));
  out.set("router", std::string("sigmoid"));
}

constexpr const char* gate_is_gelu = "its gate is a GELU: it is counted as a SiLU";
constexpr const char* state_space = "they have layers of state spaces (Mamba)";
constexpr const char* linear = "they have layers of linear attention";

}  // namespace

std::span<const ModelFamily> model_families() {
  static const std::vector<ModelFamily> all{
      {.type = "llama"},
      {.type = "mistral", .windows = true},
      {.type = "mixtral", .windows = true, .read = read_local_experts},
      {.type = "qwen2", .qkv_biases = true},
      {.type = "qwen2_moe", .qkv_biases = true, .read = read_qwen2_moe},
      {.type = "qwen3", .qk_norm = true},
      {.type = "qwen3_moe", .qk_norm = true, .read = read_qwen_experts},
      {.type = "deepseek_v2", .read = read_deepseek},
      {.type = "deepseek_v3", .read = read_deepseek_v3},
      {.type = "kimi_k2", .read = read_deepseek_v3},
      {.type = "gpt_oss", .biases = true, .windows = true, .read = read_gpt_oss},
      {.type = "llama4",
       .read = read_llama4,
       .notes = {"its norms of queries and keys have no parameters and are left out"}},
      {.type = "gemma", .tied = true, .notes = {gate_is_gelu}},
      {.type = "olmo", .norm = "layernorm", .notes = {"its norms have no parameters: ours have"}},
      {.type = "olmo2", .notes = {"its norms of queries and keys are left out"}},
      {.type = "phi", .norm = "layernorm", .gated = false, .biases = true, .notes = {side_by_side}},
      {.type = "phi3", .windows = true},
      {.type = "gpt_neox", .norm = "layernorm", .gated = false, .biases = true},
      {.type = "gpt2",
       .norm = "layernorm",
       .gated = false,
       .biases = true,
       .rope = false,
       .tied = true,
       .read = read_gpt2},
      {.type = "bert",
       .norm = "layernorm",
       .gated = false,
       .biases = true,
       .rope = false,
       .tied = true,
       .read = read_bert},
  };
  return all;
}

std::span<const UnlikeFamily> unlike_families() {
  static constexpr UnlikeFamily all[] = {
      {"mamba", state_space},
      {"mamba2", state_space},
      {"falcon_mamba", state_space},
      {"jamba", state_space},
      {"bamba", state_space},
      {"zamba", state_space},
      {"zamba2", state_space},
      {"nemotron_h", state_space},
      {"falcon_h1", state_space},
      {"granitemoehybrid", state_space},
      {"qwen3_next", linear},
      {"minimax", linear},
      {"kimi_linear", linear},
      {"rwkv", linear},
      {"recurrent_gemma", "they have recurrent layers"},
      {"lfm2", "they have layers of convolutions"},
  };
  return all;
}

}  // namespace stepcast::sim
