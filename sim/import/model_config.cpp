#include "sim/import/model_config.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/files/json_text.hpp"
#include "sim/files/suggest.hpp"
#include "sim/import/config_reader.hpp"
#include "sim/import/model_families.hpp"

namespace stepcast::sim {
namespace {

using Json = ConfigReader::Json;

/// Keys by which a configuration asks for what is not modelled, or not in its family, where they
/// are neither null, false nor zero.
constexpr std::array<std::pair<const char*, const char*>, 15> not_modelled{{
    {"num_local_experts", "a mixture of experts"},
    {"num_experts", "a mixture of experts"},
    {"n_routed_experts", "a mixture of experts"},
    {"moe_num_experts", "a mixture of experts"},
    {"kv_lora_rank", "latent attention (MLA)"},
    {"text_config", "a model of several kinds of input"},
    {"index_topk", "attention to chosen tokens (sparse)"},
    {"full_attention_interval", "linear attention"},
    {"linear_attn_config", "linear attention"},
    {"mamba_num_heads", "layers of state spaces (Mamba)"},
    {"mamba_d_state", "layers of state spaces (Mamba)"},
    {"hybrid_override_pattern", "layers of several kinds"},
    {"block_configs", "layers of several kinds"},
    {"compress_ratios", "attention to compressed keys"},
    {"attn_layer_period", "layers of several kinds"},
}};

void refuse_what_is_not_modelled(const ConfigReader& config) {
  for (const auto& [key, what] : not_modelled)
    if (config.says(key) && !config.was_read(key))
      config.refuse(std::string(what) + " ('" + key + "') is not modelled");
}

/// "gemma3_text" is gemma3's text model.
std::string family_name(const ConfigReader& config) {
  std::string type = config.text("model_type");
  if (type.ends_with("_text")) type.resize(type.size() - std::string_view("_text").size());
  return type;
}

const ModelFamily* known_family(const std::string& type) {
  for (const ModelFamily& family : model_families())
    if (family.type == type) return &family;
  return nullptr;
}

/// Of the whole, else of its text model: a model of images has a name of its own.
const ModelFamily& family_of(const ConfigReader& whole, const ConfigReader& text) {
  for (const ConfigReader* config : {&whole, &text})
    if (const ModelFamily* family = known_family(family_name(*config))) return *family;
  const std::string type = whole.text("model_type");
  if (type.empty())
    whole.refuse("is no configuration of a model: it has no 'model_type'",
                 "config.json as transformers writes it");
  for (const ConfigReader* config : {&whole, &text})
    for (const UnlikeFamily& family : unlike_families())
      if (family.type == family_name(*config))
        whole.refuse("models of type '" + type + "' are not modelled: " + family.what,
                     std::string("the nearest that is: ") + family.nearest);
  std::vector<std::string> names;
  for (const ModelFamily& family : model_families()) names.emplace_back(family.type);
  whole.refuse("models of type '" + type + "' are not modelled", suggestion(type, names));
}

/// "models/Llama-3/config.json" is of Llama-3; another name is the file's own.
std::string name_of(const ConfigReader& config, const std::string& path) {
  const std::string stated = config.text("_name_or_path");
  const auto last = [](const std::string& text) { return text.substr(text.rfind('/') + 1); };
  if (!stated.empty() && !last(stated).empty()) return last(stated);
  const std::string file = last(path);
  if (file != "config.json") return file.substr(0, file.size() - std::string(".json").size());
  const std::string folder = last(path.substr(0, path.size() - file.size() - 1));
  return folder.empty() || folder == path ? config.text("model_type") : folder;
}

void read_sizes(const ConfigReader& config, ModelEntry& out) {
  const std::int64_t heads = config.needed("num_attention_heads");
  out.set("hidden", config.needed("hidden_size"));
  out.set("heads", heads);
  out.set("kv_heads",
          config.first({"num_key_value_heads", "num_attention_groups"}).value_or(heads));
  if (const auto head_dim = config.first({"head_dim", "attention_head_dim"}))
    out.set("head_dim", *head_dim);
  if (const auto ffn = config.alike("intermediate_size")) out.set("ffn_hidden", *ffn);
  out.set("dropout", config.says("hidden_dropout") || config.says("attention_dropout") ||
                         config.says("resid_pdrop"));
}

bool has_experts(const ModelFamily& family, const ConfigReader& config) {
  return family.layers.experts && config.count_first({"num_experts", "num_local_experts",
                                                      "n_routed_experts", "moe_num_experts"}) > 0;
}

/// The same under whichever names. Shared experts are counted, or their width is stated.
void read_experts(const ModelFamily& family, const ConfigReader& config, ModelEntry& out) {
  const std::int64_t ffn =
      family.expert_is_ffn ? config.needed("intermediate_size")
                           : config.needed_first({"moe_intermediate_size", "intermediate_size"});
  out.set("experts", config.needed_first({"num_experts", "num_local_experts", "n_routed_experts",
                                          "moe_num_experts"}));
  out.set("experts_per_token",
          config.needed_first({"num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk",
                               "top_k_experts", "moe_top_k"}));
  out.set("expert_ffn", ffn);
  if (family.expert_is_ffn) out.set("ffn_hidden", std::int64_t{0});
  const std::int64_t count = config.count_first(
      {"n_shared_experts", "moe_num_shared_experts", "num_shared_experts", "num_shared_expert"});
  const std::int64_t width =
      config.count_first({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                          "shared_intermediate_size", "share_expert_dim"});
  if (width > 0 || count > 0) out.set("shared_expert_ffn", width > 0 ? width : count * ffn);
  if (const auto latent = config.first({"moe_latent_size", "routed_expert_hidden_size"}))
    out.set("expert_latent", *latent);
  const std::string score = config.text("scoring_func");
  if (!score.empty() || family.router != nullptr)
    out.set("router", score.empty() ? std::string(family.router) : score);
  if (family.router_bias) out.set("router_bias", true);
  if (config.text("topk_method") == "greedy") return;
  const std::int64_t groups = config.first({"n_group", "num_expert_group"}).value_or(1);
  const std::int64_t limit = config.integer("topk_group").value_or(1);
  if (groups == 1) return;
  out.set("router_groups", groups);
  out.set("router_group_limit", limit);
}

HeadNorms head_norms_of(const ModelFamily& family, const ConfigReader& config) {
  for (const char* key : {"use_qk_norm", "qk_layernorm"})
    if (config.says(key)) {
      const bool whole = config.text("qk_norm_type") == "per_layer";
      return whole || family.head_norms == HeadNorms::whole ? HeadNorms::whole : HeadNorms::each;
    }
  return config.flag("use_qk_norm", true) ? family.head_norms : HeadNorms::none;
}

/// One module for further tokens is modelled; more are trained by few.
void read_further_tokens(const ConfigReader& config, ModelEntry& out,
                         std::vector<std::string>& notes) {
  const std::int64_t modules =
      config.count_first({"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"});
  if (modules == 1) out.set("mtp_layers", modules);
  if (modules > 1)
    notes.push_back("its " + std::to_string(modules) +
                    " modules for further tokens (MTP) are left out: one is modelled "
                    "(mtp_layers = 1)");
}

/// What a layer has beside its sizes.
void read_layer(const ModelFamily& family, const ConfigReader& config, ModelEntry& out) {
  out.set("norm", std::string(family.norm));
  out.set("activation", std::string(family.activation));
  out.set("biases", family.biases);
  out.set("rope", family.rope);
  if (family.norm_place != nullptr) out.set("norm_place", std::string(family.norm_place));
  if (family.gate != nullptr && config.flag("attn_output_gate", true))
    out.set("attention_gate", std::string(family.gate));
  const bool biased = config.first({"use_qkv_bias"}).has_value() ||
                      (!family.biases && config.flag("attention_bias", false));
  if (family.qkv_biases || biased) out.set("qkv_biases", true);
  const HeadNorms norms = head_norms_of(family, config);
  if (norms == HeadNorms::each) out.set("qk_norm", true);
  if (norms == HeadNorms::whole) out.set("qk_norm_whole", true);
  if (config.says("final_logit_softcapping")) out.set("logit_cap", true);
}

/// Weights stored in eight or four bits that are trained in more.
void read_quantization(const Json& json, const ConfigReader& config,
                       std::vector<std::string>& notes) {
  if (!config.says("quantization_config")) return;
  const Json& how = json["quantization_config"];
  const std::string method =
      how.is_object() && how.contains("quant_method") && how["quant_method"].is_string()
          ? how["quant_method"].get<std::string>()
          : "";
  constexpr std::array methods{"fp8", "mxfp4", "modelopt", "compressed-tensors"};
  if (std::ranges::find(methods, method) == methods.end())
    config.refuse("quantised weights ('quantization_config') is not modelled");
  notes.push_back("its weights are stored in " + method +
                  " ('quantization_config'): they are trained in the precision of the scenario");
}

std::vector<std::string> notes_of(const ModelFamily& family, const ConfigReader& config) {
  std::vector<std::string> notes(family.notes.begin(), family.notes.end());
  if (family.type == "gpt_neox" && config.flag("use_parallel_residual", true))
    notes.emplace_back(side_by_side);
  if (!family.biases && config.flag("mlp_bias", false))
    notes.emplace_back("its biases ('mlp_bias') are left out");
  if (!family.biases && !family.qkv_biases && config.flag("attention_bias", false))
    notes.emplace_back("its biases ('attention_bias') are taken to be of q, k and v alone");
  if (config.says("attn_logit_softcapping"))
    notes.emplace_back(
        "its cap on attention scores is counted as free, as in kernels that have it "
        "(FlexAttention, FlashAttention since 2.6)");
  if (config.flag("enable_moe_block", false))
    notes.emplace_back(
        "its dense MLP beside the experts is counted as a shared expert, without norms of their "
        "own");
  if (config.says("clip_qkv")) notes.emplace_back("the clipping of q, k and v is left out");
  if (family.type == "llama4" && config.says("attention_chunk_size"))
    notes.push_back(
        "attention within chunks of the sequence ('attention_chunk_size') is counted "
        "over all of it, as it is up to that length");
  return notes;
}

/// Of a model of several kinds of input the part that reads text, under any of its names.
Json text_model(const Json& json, std::vector<std::string>& notes) {
  for (const char* encoder : {"vision_config", "audio_config", "vision_encoder_config"})
    if (json.contains(encoder) && json[encoder].is_object())
      notes.push_back("its encoder ('" + std::string(encoder) +
                      "') is left out: this is the model of text");
  for (const char* key : {"text_config", "llm_config", "language_config", "thinker_config"}) {
    if (!json.contains(key) || !json[key].is_object()) continue;
    Json text = json[key];
    if (!text.contains("tie_word_embeddings") && json.contains("tie_word_embeddings"))
      text["tie_word_embeddings"] = json["tie_word_embeddings"];
    return text;
  }
  return json;
}

/// Old and new spellings of a key that hold the same.
void respell(Json& json) {
  for (const auto& [spelling, key] : {std::pair{"n_heads", "num_attention_heads"},
                                      {"n_layers", "num_hidden_layers"},
                                      {"qkv_bias", "attention_bias"},
                                      {"use_bias", "mlp_bias"}})
    if (json.contains(spelling) && !json.contains(key) && !json[spelling].is_null())
      json[key] = json[spelling];
}

}  // namespace

bool is_model_config(std::string_view name) { return name.ends_with(".json"); }

TomlValue model_of_config(std::string_view text, const std::string& path) {
  const Json json = python_json_or_discarded(text);
  if (json.is_discarded() || !json.is_object())
    throw InputError(path, "is no JSON object", "config.json as transformers writes it");
  std::vector<std::string> notes;
  Json own = text_model(json, notes);
  respell(own);
  const ConfigReader whole(json, path), config(own, path);
  const ModelFamily& family = family_of(whole, config);
  ModelEntry out(path);
  out.set("name", name_of(whole, path));
  if (family.type != "gpt2") {
    read_sizes(config, out);
    LayerHints hints = family.layers;
    hints.experts = has_experts(family, config);
    read_layers(config, hints, out);
    if (hints.experts) read_experts(family, config, out);
    read_further_tokens(config, out, notes);
  }
  if (family.read != nullptr) family.read(config, out);
  out.set("vocab", config.needed("vocab_size"));
  read_layer(family, config, out);
  out.set("tied_embeddings", config.flag("tie_word_embeddings", family.tied));
  refuse_what_is_not_modelled(config);
  read_quantization(json, whole, notes);
  out.set("source",
          "config.json of " + name_of(whole, path) + ", model_type " + std::string(family.type));
  for (std::string& note : notes_of(family, config)) notes.push_back(std::move(note));
  if (!notes.empty()) out.set("notes", notes);
  return out.take();
}

TomlValue read_model_config(const std::string& path) {
  return model_of_config(read_toml_text(path), path);
}

}  // namespace stepcast::sim
