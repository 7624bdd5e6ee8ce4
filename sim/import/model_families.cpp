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

void read_gpt_oss(const ConfigReader&, ModelEntry& out) {
  out.set("expert_biases", true);
  out.set("sinks", true);
}

void read_shared_gate(const ConfigReader& config, ModelEntry& out) {
  if (config.says("shared_expert_intermediate_size")) out.set("shared_expert_gate", true);
}

void read_latent(const ConfigReader& config, ModelEntry& out) {
  out.set("latent_kv_rank", config.needed("kv_lora_rank"));
  out.set("latent_q_rank", config.count("q_lora_rank"));
  out.set("latent_nope", config.needed("qk_nope_head_dim"));
  out.set("latent_rope", config.needed("qk_rope_head_dim"));
  out.set("latent_value", config.needed("v_head_dim"));
}

void read_indexed(const ConfigReader& config, ModelEntry& out) {
  read_latent(config, out);
  out.set("index_heads", config.needed("index_n_heads"));
  out.set("index_dim", config.needed("index_head_dim"));
  out.set("index_top", config.needed("index_topk"));
}

/// Mistral of 2025-12: of the same type with experts and latent attention, or neither.
void read_mistral(const ConfigReader& config, ModelEntry& out) {
  if (config.says("kv_lora_rank")) read_latent(config, out);
}

/// The text model. The shared expert is as wide as the others, dense layers are wider.
void read_llama4(const ConfigReader& config, ModelEntry& out) {
  out.set("shared_expert_ffn", config.needed("intermediate_size"));
  if (config.integer("interleave_moe_layer_step").value_or(1) > 1)
    out.set("ffn_hidden", config.needed("intermediate_size_mlp"));
}

/// Full layers have wider heads, fewer of keys, and no product of their own for values.
void read_gemma4(const ConfigReader& config, ModelEntry& out) {
  for (const char* key : {"num_kv_shared_layers", "hidden_size_per_layer_input"})
    if (config.count(key) > 0)
      config.refuse("layers that share keys and values or have embeddings of their own ('" +
                        std::string(key) + "') are not modelled",
                    "the nearest that is: google/gemma-4-31B, with the sizes changed");
  const std::int64_t head_dim = config.needed("head_dim");
  const std::int64_t kv_heads = config.needed("num_key_value_heads");
  if (const auto wide = config.integer("global_head_dim")) {
    out.set("head_dim", *wide);
    out.set("window_head_dim", head_dim);
  }
  if (const auto few = config.integer("num_global_key_value_heads")) {
    out.set("kv_heads", *few);
    out.set("window_kv_heads", kv_heads);
  }
  if (config.flag("attention_k_eq_v", false)) out.set("values_are_keys", true);
  // Beside the experts stands a dense MLP, and their outputs are added.
  if (config.flag("enable_moe_block", false))
    out.set("shared_expert_ffn", config.needed("intermediate_size"));
}

void read_delta(const ConfigReader& config, ModelEntry& out) {
  out.set("delta_key_heads", config.needed("linear_num_key_heads"));
  out.set("delta_value_heads", config.needed("linear_num_value_heads"));
  out.set("delta_key_dim", config.needed("linear_key_head_dim"));
  out.set("delta_value_dim", config.needed("linear_value_head_dim"));
  read_shared_gate(config, out);
}

void read_state_space(const ConfigReader& config, ModelEntry& out) {
  out.set("ssm_heads", config.needed_first({"mamba_num_heads", "mamba_n_heads"}));
  out.set("ssm_head_dim", config.needed_first({"mamba_head_dim", "mamba_d_head"}));
  out.set("ssm_groups", config.first({"n_groups", "mamba_n_groups"}).value_or(1));
  out.set("ssm_state", config.needed_first({"ssm_state_size", "mamba_d_state"}));
}

/// Windows have their own count of key heads; values are narrower than keys.
void read_mimo_windows(const ConfigReader& config, ModelEntry& out) {
  if (const auto value = config.integer("v_head_dim")) out.set("value_dim", *value);
  if (const auto kv = config.integer("swa_num_key_value_heads")) out.set("window_kv_heads", *kv);
  if (config.flag("add_swa_attention_sink_bias", false)) out.set("sinks", true);
}

/// Windows have 96 heads (Step-3.5-Flash's configuration, 2026-02), which some copies leave out.
void read_step_windows(const ConfigReader& config, ModelEntry& out) {
  if (!config.says("sliding_window")) return;
  const ConfigReader::Json* other = config.object("attention_other_setting");
  std::int64_t heads = 96;
  if (other != nullptr) heads = other->value("num_attention_heads", heads);
  out.set("window_heads", heads);
}

/// kv heads by the queries that share one; they are the same in all layers that attend.
void read_searched(const ConfigReader& config, ModelEntry& out) {
  const ConfigReader::Json* blocks = config.list("block_configs");
  std::int64_t shared = 0;
  for (std::size_t l = 0; blocks != nullptr && l < blocks->size(); ++l) {
    const auto& block = (*blocks)[l];
    const auto attention = block.value("attention", ConfigReader::Json::object());
    if (!attention.contains("n_heads_in_group") || !attention["n_heads_in_group"].is_number())
      continue;
    const auto here = attention["n_heads_in_group"].get<std::int64_t>();
    if (here < 1 || (shared > 0 && here != shared))
      config.refuse(
          "kv heads of other numbers in other layers ('n_heads_in_group') are not "
          "modelled");
    shared = here;
  }
  if (shared == 0) config.refuse("no layer of 'block_configs' has attention");
  out.set("kv_heads", config.needed("num_attention_heads") / shared);
}

constexpr const char* gate_is_gelu = "its gate is a GELU: it is counted as a SiLU";
constexpr const char* no_positions =
    "it has no positions in attention: rotary ones are counted, one small kernel a layer";
constexpr const char* norms_without_weights =
    "its norms of queries and keys have no parameters and are left out";
constexpr const char* norm_with_bias =
    "its norms have no biases: ours have, some thousand parameters";
constexpr const char* sinks_everywhere =
    "its layers without a window have no sinks: they are counted in all";
constexpr const char* heads_of_step = "its layers with a window have 96 heads unless it says so";
constexpr const char* recurrent = "they have recurrent layers";
constexpr const char* mamba1 = "they have layers of Mamba-1, which no published rate is of";
constexpr const char* channel_gates =
    "they have linear attention with a gate a channel (Kimi delta attention)";
constexpr const char* lightning = "they have lightning attention";
constexpr const char* compressed =
    "they attend to compressed keys and have several residual streams";
constexpr const char* blocks_of_keys = "they attend to blocks of keys that an index chooses";
constexpr const char* like_delta = "Qwen/Qwen3-Next-80B-A3B-Instruct, with a gate a head";
constexpr const char* like_mamba2 = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, with Mamba-2";
constexpr const char* like_dsa = "deepseek-ai/DeepSeek-V3.2, which attends to single keys";
constexpr const char* like_gemma = "google/gemma-3-4b-pt";

}  // namespace

std::span<const ModelFamily> model_families() {
  using enum HeadNorms;
  static const std::vector<ModelFamily> all{
      {.type = "llama"},
      {.type = "mistral", .layers = {.windows = true}},
      {.type = "ministral3", .layers = {.windows = true, .experts = true}, .read = read_mistral},
      {.type = "mistral3", .layers = {.windows = true, .experts = true}, .read = read_mistral},
      {.type = "mistral4", .layers = {.experts = true}, .read = read_mistral},
      {.type = "mixtral", .layers = {.windows = true, .experts = true}, .expert_is_ffn = true},
      {.type = "qwen2", .qkv_biases = true, .layers = {.windows_asked = true}},
      {.type = "qwen2_vl", .qkv_biases = true, .layers = {.windows_asked = true}},
      {.type = "qwen2_5_vl", .qkv_biases = true, .layers = {.windows_asked = true}},
      {.type = "qwen2_moe",
       .qkv_biases = true,
       .layers = {.windows_asked = true, .experts = true},
       .read = read_shared_gate},
      {.type = "qwen3", .head_norms = each, .layers = {.windows_asked = true}},
      {.type = "qwen3_vl", .head_norms = each, .layers = {.windows_asked = true}},
      {.type = "qwen3_moe", .head_norms = each, .layers = {.windows_asked = true, .experts = true}},
      {.type = "qwen3_vl_moe",
       .head_norms = each,
       .layers = {.windows_asked = true, .experts = true}},
      {.type = "qwen3_next",
       .head_norms = each,
       .gate = "element",
       .layers = {.windows_asked = true, .full_every = 4, .experts = true},
       .read = read_delta},
      {.type = "qwen3_5",
       .head_norms = each,
       .gate = "element",
       .layers = {.windows_asked = true},
       .read = read_delta},
      {.type = "qwen3_5_moe",
       .head_norms = each,
       .gate = "element",
       .layers = {.windows_asked = true, .experts = true},
       .read = read_delta},
      {.type = "deepseek_v2", .layers = {.experts = true}, .read = read_latent},
      {.type = "deepseek_v3",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_latent},
      {.type = "kimi_k2",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_latent},
      {.type = "deepseek_v32",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_indexed},
      {.type = "glm_moe_dsa",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_indexed},
      {.type = "glm4_moe_lite",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_latent},
      {.type = "glm4_moe", .layers = {.experts = true}, .router = "sigmoid", .router_bias = true},
      {.type = "glm"},
      {.type = "glm4", .norm_place = "both"},
      {.type = "gpt_oss",
       .biases = true,
       .layers = {.windows = true, .experts = true},
       .expert_is_ffn = true,
       .read = read_gpt_oss},
      {.type = "llama4",
       .layers = {.experts = true},
       .expert_is_ffn = true,
       .router = "sigmoid",
       .read = read_llama4,
       .notes = {norms_without_weights}},
      {.type = "gemma", .tied = true, .notes = {gate_is_gelu}},
      {.type = "gemma2",
       .norm_place = "both",
       .tied = true,
       .layers = {.full_every = 2},
       .notes = {gate_is_gelu}},
      {.type = "gemma3",
       .norm_place = "both",
       .head_norms = each,
       .tied = true,
       .layers = {.full_every = 6},
       .notes = {gate_is_gelu}},
      {.type = "gemma4",
       .norm_place = "both",
       .head_norms = each,
       .tied = true,
       .layers = {.full_every = 6, .experts = true},
       .read = read_gemma4,
       .notes = {gate_is_gelu}},
      {.type = "olmo", .norm = "layernorm", .notes = {"its norms have no parameters: ours have"}},
      {.type = "olmo2", .norm_place = "behind", .head_norms = whole},
      {.type = "olmo3", .norm_place = "behind", .head_norms = whole, .layers = {.full_every = 4}},
      {.type = "olmoe", .head_norms = whole, .layers = {.experts = true}, .expert_is_ffn = true},
      {.type = "minimax_m2",
       .head_norms = whole,
       .layers = {.experts = true},
       .expert_is_ffn = true,
       .router = "sigmoid",
       .router_bias = true},
      {.type = "nemotron_h",
       .activation = "squared_relu",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_state_space,
       .notes = {no_positions}},
      {.type = "granitemoehybrid",
       .layers = {.experts = true},
       .expert_is_ffn = true,
       .read = read_state_space,
       .notes = {no_positions}},
      {.type = "granite"},
      {.type = "granitemoe", .layers = {.experts = true}, .expert_is_ffn = true},
      {.type = "falcon_h1", .layers = {.both = true}, .read = read_state_space},
      {.type = "nemotron-nas", .read = read_searched},
      {.type = "nemotron", .norm = "layernorm", .activation = "squared_relu"},
      {.type = "step3p5",
       .gate = "head",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_step_windows,
       .notes = {heads_of_step}},
      {.type = "step3p7",
       .gate = "head",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_step_windows,
       .notes = {heads_of_step}},
      {.type = "mimo", .qkv_biases = true, .layers = {.windows_asked = true}},
      {.type = "mimo_v2_flash",
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true,
       .read = read_mimo_windows,
       .notes = {sinks_everywhere}},
      {.type = "bailing_moe_v2",
       .head_norms = each,
       .layers = {.experts = true},
       .router = "sigmoid",
       .router_bias = true},
      {.type = "bailing_moe", .layers = {.experts = true}},
      {.type = "ernie4_5", .layers = {}},
      {.type = "ernie4_5_moe", .layers = {.experts = true}, .router_bias = true},
      {.type = "hunyuan_v1_moe", .head_norms = each, .tied = true, .layers = {.experts = true}},
      {.type = "hunyuan_v1_dense", .head_norms = each, .tied = true},
      {.type = "smollm3", .tied = true, .layers = {.windows_asked = true}},
      {.type = "seed_oss", .qkv_biases = true},
      {.type = "internlm2"},
      {.type = "internlm3"},
      {.type = "apertus",
       .activation = "squared_relu",
       .head_norms = each,
       .notes = {"its activation (xIELU) is counted as a squared ReLU"}},
      {.type = "phi",
       .norm = "layernorm",
       .activation = "gelu",
       .biases = true,
       .notes = {side_by_side}},
      {.type = "phi3", .layers = {.windows = true}},
      {.type = "phimoe",
       .norm = "layernorm",
       .qkv_biases = true,
       .layers = {.windows = true, .experts = true},
       .expert_is_ffn = true},
      {.type = "cohere",
       .norm = "layernorm",
       .tied = true,
       .notes = {side_by_side, norm_with_bias}},
      {.type = "cohere2",
       .norm = "layernorm",
       .tied = true,
       .layers = {.full_every = 4},
       .notes = {side_by_side, norm_with_bias}},
      {.type = "stablelm", .norm = "layernorm"},
      {.type = "gpt_neox", .norm = "layernorm", .activation = "gelu", .biases = true},
      {.type = "gpt2",
       .norm = "layernorm",
       .activation = "gelu",
       .biases = true,
       .rope = false,
       .tied = true,
       .read = read_gpt2},
      {.type = "bert",
       .norm = "layernorm",
       .activation = "gelu",
       .biases = true,
       .rope = false,
       .tied = true,
       .read = read_bert},
  };
  return all;
}

std::span<const UnlikeFamily> unlike_families() {
  static constexpr UnlikeFamily all[] = {
      {"mamba", mamba1, like_mamba2},
      {"falcon_mamba", mamba1, like_mamba2},
      {"jamba", mamba1, like_mamba2},
      {"bamba", "they have layers of state spaces beside others", like_mamba2},
      {"zamba", mamba1, like_mamba2},
      {"zamba2", "their layers share attention", like_mamba2},
      {"mamba2", "they have no attention, whose heads a plan cuts", like_mamba2},
      {"phi4flash", mamba1, like_mamba2},
      {"kimi_linear", channel_gates, like_delta},
      {"kimi_k3", channel_gates, like_delta},
      {"minimax", lightning, like_delta},
      {"minimax_m1", lightning, like_delta},
      {"minimax_m3", blocks_of_keys, like_dsa},
      {"minimax_m3_vl", blocks_of_keys, like_dsa},
      {"deepseek_v4", compressed, like_dsa},
      {"gemma3n", "they have embeddings in every layer and several residual streams", like_gemma},
      {"rwkv", recurrent, like_delta},
      {"recurrent_gemma", recurrent, like_gemma},
      {"lfm2", "they have layers of convolutions", "Qwen/Qwen3-8B"},
      {"arctic", "a dense MLP stands beside their experts",
       "Snowflake/snowflake-arctic-base by its id, as a shared expert"},
      {"dbrx", "their sizes stand in parts of the configuration", "databricks/dbrx-base by its id"},
      {"step3_vl", "their queries come out of a low rank alone", "stepfun-ai/Step-3.5-Flash"},
  };
  return all;
}

}  // namespace stepcast::sim
