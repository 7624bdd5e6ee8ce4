#include "sim/import/model_config.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "sim/files/suggest.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::json;

/// What transformers' configuration_*.py of a family means where config.json does not say
/// (huggingface/transformers, read 2026-11), and what of its code our layer is only near to.
struct ModelFamily {
  std::string_view type;
  const char* norm;
  bool gated;   // two products and an activation between them, then the third
  bool biases;  // of all products
  bool rope;
  bool tied;  // tie_word_embeddings, unless stated
  std::vector<const char*> notes;
};

constexpr const char* query_key_norms = "its norms of queries and keys are left out";
constexpr const char* side_by_side =
    "attention and MLP stand side by side behind one norm: they are counted one after the other";
constexpr const char* query_key_biases = "its biases of q, k and v alone are left out";

const std::vector<ModelFamily>& model_families() {
  static const std::vector<ModelFamily> all{
      {"llama", "rmsnorm", true, false, true, false, {}},
      {"mistral", "rmsnorm", true, false, true, false, {}},
      {"qwen2", "rmsnorm", true, false, true, false, {query_key_biases}},
      {"qwen3", "rmsnorm", true, false, true, false, {query_key_norms}},
      {"gemma",
       "rmsnorm",
       true,
       false,
       true,
       true,
       {"its gate is a GELU: it is counted as a SiLU"}},
      {"olmo", "layernorm", true, false, true, false, {"its norms have no parameters: ours have"}},
      {"olmo2", "rmsnorm", true, false, true, false, {query_key_norms}},
      {"phi", "layernorm", false, true, true, false, {side_by_side}},
      {"phi3", "rmsnorm", true, false, true, false, {}},
      {"gpt_neox", "layernorm", false, true, true, false, {}},
      {"gpt2", "layernorm", false, true, false, true, {}},
  };
  return all;
}

/// Keys by which a configuration asks for what is not modelled, where they are neither null, false
/// nor zero.
constexpr std::array<std::pair<const char*, const char*>, 10> not_modelled{{
    {"num_local_experts", "a mixture of experts"},
    {"num_experts", "a mixture of experts"},
    {"n_routed_experts", "a mixture of experts"},
    {"kv_lora_rank", "latent attention (MLA)"},
    {"attn_logit_softcapping", "capped attention scores"},
    {"final_logit_softcapping", "capped logits"},
    {"num_nextn_predict_layers", "layers that predict further tokens (MTP)"},
    {"quantization_config", "quantised weights"},
    {"text_config", "a model of several kinds of input"},
    {"layer_types", "layers of several kinds"},
}};

class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& path) : config_(config), path_(path) {}

  bool says(const char* key) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return false;
    if (found->is_boolean()) return found->get<bool>();
    if (found->is_number()) return found->get<double>() != 0;
    return true;
  }

  std::optional<std::int64_t> integer(const char* key) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return std::nullopt;
    if (!found->is_number_integer() || found->get<std::int64_t>() < 1)
      throw InputError(path_, "'" + std::string(key) + "' is no positive whole number");
    return found->get<std::int64_t>();
  }

  std::int64_t needed(const char* key) const {
    const auto found = integer(key);
    if (!found)
      throw InputError(path_, "'" + std::string(key) + "' is missing",
                       "a model's config.json states it");
    return *found;
  }

  bool flag(const char* key, bool otherwise) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return otherwise;
    if (!found->is_boolean())
      throw InputError(path_, "'" + std::string(key) + "' is neither true nor false");
    return found->get<bool>();
  }

  std::string text(const char* key) const {
    const auto found = config_.find(key);
    return found != config_.end() && found->is_string() ? found->get<std::string>() : "";
  }

 private:
  const Json& config_;
  const std::string& path_;
};

void refuse_what_is_not_modelled(const Json& json, const ConfigReader& config,
                                 const std::string& path) {
  for (const auto& [key, what] : not_modelled) {
    const bool alike = std::string_view(key) == "layer_types" && json.contains(key) &&
                       std::all_of(json[key].begin(), json[key].end(),
                                   [](const Json& type) { return type == "full_attention"; });
    if (config.says(key) && !alike)
      throw InputError(path, std::string(what) + " ('" + key + "') is not modelled");
  }
  if (config.says("sliding_window") && config.flag("use_sliding_window", true))
    throw InputError(path, "a sliding window ('sliding_window') is not modelled",
                     "for sequences no longer than it, set it to null in a copy of the file");
}

const ModelFamily& family_of(const ConfigReader& config, const std::string& path) {
  const std::string type = config.text("model_type");
  std::vector<std::string> names;
  for (const ModelFamily& family : model_families()) {
    if (family.type == type) return family;
    names.emplace_back(family.type);
  }
  if (type.empty())
    throw InputError(path, "is no configuration of a model: it has no 'model_type'",
                     "config.json as transformers writes it");
  throw InputError(path, "models of type '" + type + "' are not modelled", suggestion(type, names));
}

class ModelEntry {
 public:
  explicit ModelEntry(const std::string& path) : path_(path), document_(toml_table(path)) {}

  void set(const char* key, std::int64_t value) { document_.set(key, TomlValue{value, path_}); }
  void set(const char* key, bool value) { document_.set(key, TomlValue{value, path_}); }
  void set(const char* key, const std::string& text) { document_.set(key, toml_text(text, path_)); }
  void set(const char* key, const std::vector<std::string>& texts) {
    TomlValue::Array items;
    for (const std::string& text : texts) items.push_back(toml_text(text, path_));
    document_.set(key, TomlValue{std::move(items), path_});
  }
  TomlValue take() { return std::move(document_); }

 private:
  const std::string& path_;
  TomlValue document_;
};

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

void read_gpt2(const ConfigReader& config, ModelEntry& out) {
  const std::int64_t hidden = config.needed("n_embd");
  out.set("layers", config.needed("n_layer"));
  out.set("hidden", hidden);
  out.set("heads", config.needed("n_head"));
  out.set("ffn_hidden", config.integer("n_inner").value_or(4 * hidden));
  out.set("max_positions", config.needed("n_positions"));
  out.set("dropout", config.says("resid_pdrop") || config.says("attn_pdrop"));
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

std::vector<std::string> notes_of(const ModelFamily& family, const ConfigReader& config) {
  std::vector<std::string> notes(family.notes.begin(), family.notes.end());
  if (family.type == "gpt_neox" && config.flag("use_parallel_residual", true))
    notes.emplace_back(side_by_side);
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (!family.biases && config.flag(key, false))
      notes.push_back("its biases ('" + std::string(key) + "') are left out");
  if (config.says("clip_qkv")) notes.emplace_back("the clipping of q, k and v is left out");
  return notes;
}

}  // namespace

bool is_model_config(std::string_view name) { return name.ends_with(".json"); }

TomlValue model_of_config(std::string_view text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    throw InputError(path, "is no JSON object", "config.json as transformers writes it");
  const ConfigReader config(json, path);
  refuse_what_is_not_modelled(json, config, path);
  const ModelFamily& family = family_of(config, path);
  ModelEntry out(path);
  out.set("name", name_of(config, path));
  if (family.type == "gpt2")
    read_gpt2(config, out);
  else
    read_sizes(config, out);
  out.set("vocab", config.needed("vocab_size"));
  out.set("norm", std::string(family.norm));
  out.set("activation", std::string(family.gated ? "swiglu" : "gelu"));
  out.set("biases", family.biases);
  out.set("rope", family.rope);
  out.set("tied_embeddings", config.flag("tie_word_embeddings", family.tied));
  out.set("source",
          "config.json of " + name_of(config, path) + ", model_type " + std::string(family.type));
  if (const auto notes = notes_of(family, config); !notes.empty()) out.set("notes", notes);
  return out.take();
}

TomlValue read_model_config(const std::string& path) {
  return model_of_config(read_toml_text(path), path);
}

}  // namespace stepcast::sim
