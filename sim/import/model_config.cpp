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
    {"kv_lora_rank", "latent attention (MLA)"},
    {"attn_logit_softcapping", "capped attention scores"},
    {"final_logit_softcapping", "capped logits"},
    {"num_nextn_predict_layers", "layers that predict further tokens (MTP)"},
    {"text_config", "a model of several kinds of input"},
    {"index_topk", "attention to chosen tokens (sparse)"},
    {"full_attention_interval", "linear attention"},
    {"linear_attn_config", "linear attention"},
    {"mamba_num_heads", "layers of state spaces (Mamba)"},
    {"mamba_d_state", "layers of state spaces (Mamba)"},
    {"hybrid_override_pattern", "layers of several kinds"},
    {"moe_latent_size", "experts of a narrower tensor"},
}};

void refuse_what_is_not_modelled(const ConfigReader& config) {
  for (const auto& [key, what] : not_modelled)
    if (config.says(key) && !config.was_read(key))
      config.refuse(std::string(what) + " ('" + key + "') is not modelled");
}

const ModelFamily& family_of(const ConfigReader& config) {
  const std::string type = config.text("model_type");
  std::vector<std::string> names;
  for (const ModelFamily& family : model_families()) {
    if (family.type == type) return family;
    names.emplace_back(family.type);
  }
  if (type.empty())
    config.refuse("is no configuration of a model: it has no 'model_type'",
                  "config.json as transformers writes it");
  for (const UnlikeFamily& family : unlike_families())
    if (family.type == type)
      config.refuse("models of type '" + type + "' are not modelled: " + family.what);
  config.refuse("models of type '" + type + "' are not modelled", suggestion(type, names));
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
  out.set("layers", config.needed("num_hidden_layers"));
  out.set("hidden", config.needed("hidden_size"));
  out.set("heads", heads);
  out.set("kv_heads", config.integer("num_key_value_heads").value_or(heads));
  if (const auto head_dim = config.integer("head_dim")) out.set("head_dim", *head_dim);
  out.set("ffn_hidden", config.needed("intermediate_size"));
  out.set("dropout", config.says("hidden_dropout") || config.says("attention_dropout") ||
                         config.says("resid_pdrop"));
}

/// Of layer_types: every how many layers one has the window, from the first on; 0: none has.
std::int64_t window_period(const ConfigReader& config, const Json& types) {
  const auto windowed = [&](std::size_t l) { return types[l] == "sliding_attention"; };
  std::size_t period = types.empty() || !windowed(0) ? 0 : 1;
  while (period > 0 && period < types.size() && !windowed(period)) ++period;
  for (std::size_t l = 0; l < types.size(); ++l) {
    const bool expected = period > 0 && l % period == 0;
    if ((!windowed(l) && types[l] != "full_attention") || windowed(l) != expected)
      config.refuse(
          "layers of several kinds ('layer_types') are not modelled but where every "
          "n-th has a window, from the first on");
  }
  return static_cast<std::int64_t>(period);
}

/// sliding_window, in all layers or in those that layer_types says. Qwen models state one that they
/// use only where they say so.
void read_window(const ModelFamily& family, const ConfigReader& config, ModelEntry& out) {
  const Json* types = config.list("layer_types");
  const std::int64_t period = types == nullptr ? 1 : window_period(config, *types);
  const bool unless_asked = family.type.starts_with("qwen");
  const bool used =
      config.says("sliding_window") && config.flag("use_sliding_window", !unless_asked);
  if (!used || period == 0) return;
  if (!family.windows && types == nullptr)
    config.refuse("a sliding window ('sliding_window') of this family is not modelled",
                  "for sequences no longer than it, set it to null in a copy of the file");
  out.set("window", config.needed("sliding_window"));
  if (period > 1)
    out.set("window_every", period);
  else if (family.type == "gpt_oss" && types == nullptr)
    out.set("window_every", std::int64_t{2});  // of GptOssConfig, where none are listed
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
  if (method != "fp8" && method != "mxfp4")
    config.refuse("quantised weights ('quantization_config') is not modelled");
  notes.push_back("its weights are stored in " + method +
                  " ('quantization_config'): they are trained in the precision of the scenario");
}

std::vector<std::string> notes_of(const ModelFamily& family, const ConfigReader& config) {
  std::vector<std::string> notes(family.notes.begin(), family.notes.end());
  if (family.type == "gpt_neox" && config.flag("use_parallel_residual", true))
    notes.emplace_back(side_by_side);
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (!family.biases && config.flag(key, false))
      notes.push_back("its biases ('" + std::string(key) + "') are left out");
  if (config.says("clip_qkv")) notes.emplace_back("the clipping of q, k and v is left out");
  if (config.says("attention_chunk_size"))
    notes.push_back(
        "attention within chunks of the sequence ('attention_chunk_size') is counted "
        "over all of it, as it is up to that length");
  return notes;
}

/// Of a model of text and images the part that reads text.
const Json& text_model(const Json& json, std::vector<std::string>& notes) {
  if (json.value("model_type", Json()) != "llama4" || !json.contains("text_config")) return json;
  if (json.contains("vision_config"))
    notes.emplace_back("its encoder of images ('vision_config') is left out");
  return json["text_config"];
}

}  // namespace

bool is_model_config(std::string_view name) { return name.ends_with(".json"); }

TomlValue model_of_config(std::string_view text, const std::string& path) {
  const Json json = json_or_discarded(text);
  if (json.is_discarded() || !json.is_object())
    throw InputError(path, "is no JSON object", "config.json as transformers writes it");
  std::vector<std::string> notes;
  const ConfigReader whole(json, path), config(text_model(json, notes), path);
  const ModelFamily& family = family_of(whole);
  ModelEntry out(path);
  out.set("name", name_of(whole, path));
  if (family.type != "gpt2") read_sizes(config, out);
  if (family.read != nullptr) family.read(config, out);
  out.set("vocab", config.needed("vocab_size"));
  out.set("norm", std::string(family.norm));
  out.set("activation", std::string(family.gated ? "swiglu" : "gelu"));
  out.set("biases", family.biases);
  out.set("rope", family.rope);
  out.set("tied_embeddings", config.flag("tie_word_embeddings", family.tied));
  if (family.qkv_biases) out.set("qkv_biases", true);
  if (family.qk_norm) out.set("qk_norm", true);
  read_window(family, config, out);
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
