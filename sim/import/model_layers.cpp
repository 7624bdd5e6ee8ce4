#include "sim/import/model_layers.hpp"
#include "sim/files/json_text.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::sim {
namespace {

using Json = ConfigReader::Json;
using workloads::LayerForm;
using workloads::LayerPattern;
using workloads::Mixer;
using workloads::Mlp;

struct LayerWord {
  std::string_view name;
  LayerForm form;
};

/// layer_types of layers with a mixer and an MLP.
constexpr LayerWord mixer_words[] = {
    {"full_attention", {Mixer::full}},      {"attention", {Mixer::full}},
    {"global_attention", {Mixer::full}},    {"deepseek_sparse_attention", {Mixer::full}},
    {"chunked_attention", {Mixer::full}},  // counted over all of the sequence
    {"sliding_attention", {Mixer::window}}, {"linear_attention", {Mixer::delta}},
    {"mamba", {Mixer::state_space}},        {"mamba2", {Mixer::state_space}},
};
/// layers_block_type of layers that are either.
constexpr LayerWord block_words[] = {
    {"mamba", {Mixer::state_space, Mlp::none}},
    {"attention", {Mixer::full, Mlp::none}},
    {"mlp", {Mixer::none, Mlp::dense}},
    {"moe", {Mixer::none, Mlp::experts}},
};

template <std::size_t N>
LayerForm form_of(const ConfigReader& config, const char* key, const LayerWord (&words)[N],
                  const Json& item) {
  for (const LayerWord& word : words)
    if (item == word.name) return word.form;
  std::string known;
  for (const LayerWord& word : words) known += (known.empty() ? "" : ", ") + std::string(word.name);
  config.refuse(
      "layers of kind " + json_text(item) + " ('" + std::string(key) + "') are not modelled",
      "these are: " + known);
}

template <std::size_t N>
LayerPattern listed(const ConfigReader& config, const char* key, const LayerWord (&words)[N]) {
  LayerPattern out;
  if (const Json* items = config.list(key))
    for (const Json& item : *items) out.push_back(form_of(config, key, words, item));
  return out;
}

/// Layers that are a mixer or an MLP each (Nemotron-H).
LayerPattern blocks_of(const ConfigReader& config) {
  constexpr const char* letters = "hybrid_override_pattern";
  LayerPattern out;
  std::string wrong;
  if (!workloads::read_letters(config.text(letters), out, wrong))
    config.refuse("layers of kind \"" + wrong + "\" ('" + letters + "') are not modelled",
                  "these are: " + std::string(workloads::pattern_letters));
  if (out.empty()) out = listed(config, "layers_block_type", block_words);
  const bool blocks =
      std::ranges::any_of(out, [](const LayerForm& f) { return f.mixer == Mixer::none; });
  return blocks ? out : LayerPattern{};
}

/// Every layer's attention and the width of its MLP (Nemotron of NAS; configuration_decilm.py and
/// its _ffn_mult_to_intermediate_size(), read 2026-08).
LayerPattern searched(const ConfigReader& config) {
  LayerPattern out;
  const Json* blocks = config.list("block_configs");
  if (blocks == nullptr) return out;
  const auto hidden = static_cast<double>(config.needed("hidden_size"));
  const auto whole = Json::object();
  for (const Json& block : *blocks) {
    const Json attention = block.value("attention", whole), ffn = block.value("ffn", whole);
    if (attention.value("replace_with_linear", false) || ffn.value("replace_with_linear", false))
      config.refuse("layers with one product in attention's or the MLP's place are not modelled");
    LayerForm form;
    if (attention.value("no_op", false)) form.mixer = Mixer::none;
    if (ffn.value("no_op", false)) form.mlp = Mlp::none;
    if (form.mlp == Mlp::dense) {
      constexpr std::int64_t multiple = 256;
      const double width = 2.0 * ffn.value("ffn_mult", 0.0) * hidden / 3.0;
      if (!(width >= 1.0)) config.refuse("'block_configs' has an MLP without 'ffn_mult'");
      form.ffn = (static_cast<std::int64_t>(width) + multiple - 1) / multiple * multiple;
    }
    if (form.mixer == Mixer::none && form.mlp == Mlp::none)
      config.refuse("layers that are nothing ('block_configs') are not modelled");
    out.push_back(form);
  }
  return out;
}

// ---- mixers

std::int64_t number_of_layers(const ConfigReader& config) {
  if (const auto stated = config.integer("num_hidden_layers")) return *stated;
  for (const char* key : {"layers_block_type", "layer_types"})
    if (const Json* items = config.list(key)) return std::ssize(*items);
  const auto letters = std::ssize(config.text("hybrid_override_pattern"));
  return letters > 0 ? letters : config.needed("num_hidden_layers");
}

/// Every n-th layer is `last`, counted from 1, the others `usual`.
void every(LayerPattern& layers, std::int64_t n, Mixer usual, Mixer last) {
  for (std::int64_t l = 0; l < std::ssize(layers); ++l)
    layers[static_cast<std::size_t>(l)].mixer = (l + 1) % n == 0 ? last : usual;
}

void read_mixers(const ConfigReader& config, const LayerHints& hints, LayerPattern& layers) {
  if (hints.both)
    for (LayerForm& form : layers) form.mixer = Mixer::both;
  const bool used =
      config.says("sliding_window") && config.flag("use_sliding_window", !hints.windows_asked);
  const auto sparse_every = config.integer("full_attention_interval");
  const auto full_every = config.first({"sliding_window_pattern", "_sliding_window_pattern"});
  LayerPattern stated = listed(config, "layer_types", mixer_words);
  if (stated.empty()) stated = listed(config, "layers_block_type", mixer_words);
  const Json* flags = config.list("hybrid_layer_pattern");
  if (flags != nullptr)
    for (const Json& flag : *flags) stated.push_back({flag == 1 ? Mixer::window : Mixer::full});
  if (!stated.empty()) {
    if (stated.size() < layers.size())
      config.refuse("fewer layers are listed ('layer_types') than there are");
    for (std::size_t l = 0; l < layers.size(); ++l) layers[l].mixer = stated[l].mixer;
  } else if (sparse_every) {
    every(layers, *sparse_every, Mixer::delta, Mixer::full);
  } else if (used && (full_every || hints.full_every > 0)) {
    every(layers, full_every.value_or(hints.full_every), Mixer::window, Mixer::full);
  } else if (used && hints.windows) {
    for (LayerForm& form : layers) form.mixer = Mixer::window;
  } else if (used && !hints.windows_asked && !hints.both) {
    config.refuse("a sliding window ('sliding_window') of this family is not modelled",
                  "for sequences no longer than it, set it to null in a copy of the file");
  }
  if (!used)
    for (LayerForm& form : layers)
      if (form.mixer == Mixer::window) form.mixer = Mixer::full;
  if (const Json* kinds = config.list("attn_type_list"))  // MiniMax: 1 attention, 0 lightning
    for (const Json& kind : *kinds)
      if (kind != 1) config.refuse("lightning attention ('attn_type_list') is not modelled");
  const Json* indexes = config.list("indexer_types");
  for (std::size_t l = 0; indexes != nullptr && l < std::min(layers.size(), indexes->size()); ++l)
    if ((*indexes)[l] == "shared") layers[l].mixer = Mixer::reuse;
}

// ---- MLPs

/// Numbers of layers, "3,4,5".
std::vector<std::int64_t> numbers_in(const std::string& text) {
  std::vector<std::int64_t> out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.size(), text.find(',', begin));
    out.push_back(std::strtoll(text.substr(begin, end - begin).c_str(), nullptr, 10));
    begin = end + 1;
  }
  return out;
}

void read_mlps(const ConfigReader& config, const LayerHints& hints, LayerPattern& layers) {
  const std::int64_t count = std::ssize(layers);
  const auto at = [&](std::int64_t l) -> LayerForm& { return layers[static_cast<std::size_t>(l)]; };
  if (!hints.experts) return;
  for (LayerForm& form : layers) form.mlp = Mlp::experts;
  const auto dense = [&](std::int64_t l) {
    if (l >= 0 && l < count) at(l).mlp = Mlp::dense;
  };
  const std::int64_t first = config.count_first({"first_k_dense_replace", "moe_layer_start_index"});
  for (std::int64_t l = 0; l < first; ++l) dense(l);
  if (const auto last = config.first({"moe_layer_end_index"}))
    for (std::int64_t l = *last + 1; l < count; ++l) dense(l);
  if (const Json* flags = config.list("moe_layer_freq")) {
    for (std::int64_t l = 0; l < std::min<std::int64_t>(count, std::ssize(*flags)); ++l)
      if ((*flags)[static_cast<std::size_t>(l)] == 0) dense(l);
  } else if (const auto n = config.first({"moe_layer_freq", "moe_layer_interval"})) {
    for (std::int64_t l = 0; l < count; ++l)
      if (l % *n != 0) dense(l);
  }
  const std::int64_t sparse =
      config.first({"decoder_sparse_step", "interleave_moe_layer_step"}).value_or(1);
  for (std::int64_t l = 0; l < count; ++l)
    if ((l + 1) % sparse != 0) dense(l);
  if (const Json* only = config.list("mlp_only_layers"))
    for (const Json& l : *only)
      if (l.is_number_integer()) dense(l.get<std::int64_t>());
  if (const Json* types = config.list("mlp_layer_types"))
    for (std::int64_t l = 0; l < std::min<std::int64_t>(count, std::ssize(*types)); ++l)
      if ((*types)[static_cast<std::size_t>(l)] == "dense") dense(l);
  const std::string stated = config.text("moe_layers_enum");
  const Json* numbers = config.list("moe_layers");
  if (stated.empty() && (numbers == nullptr || numbers->empty())) return;
  for (LayerForm& form : layers) form.mlp = Mlp::dense;
  for (const std::int64_t l : numbers_in(stated))
    if (l >= 0 && l < count) at(l).mlp = Mlp::experts;
  if (numbers != nullptr)
    for (const Json& l : *numbers)
      if (l.is_number_integer() && l >= 0 && l < count)
        at(l.get<std::int64_t>()).mlp = Mlp::experts;
}

// ---- as keys

/// Whether `of` holds in layers first + n - 1, first + 2n - 1, ... and in no others; `n` is found.
template <class Of>
bool from_on_every(const LayerPattern& layers, std::int64_t first, std::int64_t& n, Of of) {
  const std::int64_t count = std::ssize(layers);
  std::int64_t l = first;
  while (l < count && !of(layers[static_cast<std::size_t>(l)])) ++l;
  if (l == count) return false;
  n = l - first + 1;
  for (l = 0; l < count; ++l)
    if (of(layers[static_cast<std::size_t>(l)]) != (l >= first && (l - first) % n == n - 1))
      return false;
  return true;
}

bool with_experts(const LayerForm& form) { return form.experts(); }
bool with_window(const LayerForm& form) { return form.mixer == Mixer::window; }

using Keys = std::vector<std::pair<const char*, std::int64_t>>;

/// Experts by dense_layers and expert_every; false: these cannot say it.
bool said_of_experts(const LayerPattern& layers, Keys& out) {
  if (std::ranges::none_of(layers, with_experts)) return true;
  const auto first = std::ranges::find_if(layers, with_experts) - layers.begin();
  std::int64_t n = 1;
  if (from_on_every(layers, 0, n, with_experts)) {
    if (n > 1) out.emplace_back("expert_every", n);
    return true;
  }
  if (!from_on_every(layers, first, n, with_experts) || n != 1) return false;
  out.emplace_back("dense_layers", first);
  return true;
}

bool said_of_windows(const LayerPattern& layers, Keys& out) {
  if (std::ranges::none_of(layers, with_window)) return true;
  std::int64_t period = 1;
  while (period < std::ssize(layers) && !with_window(layers[static_cast<std::size_t>(period)]))
    ++period;
  for (std::int64_t l = 0; l < std::ssize(layers); ++l)
    if (with_window(layers[static_cast<std::size_t>(l)]) != (l % period == 0)) return false;
  if (period > 1) out.emplace_back("window_every", period);
  return true;
}

bool plain(const LayerForm& form) {
  return (form.mixer == Mixer::full || with_window(form)) && form.mlp != Mlp::none && form.ffn == 0;
}

void write_layers(const ConfigReader& config, const LayerPattern& layers, ModelEntry& out) {
  out.set("layers", std::int64_t{std::ssize(layers)});
  if (std::ranges::any_of(layers, with_window)) out.set("window", config.needed("sliding_window"));
  Keys keys;
  if (!std::ranges::all_of(layers, plain) || !said_of_experts(layers, keys) ||
      !said_of_windows(layers, keys))
    return out.set("layer_pattern", workloads::to_text(workloads::shortest(layers)));
  for (const auto& [key, value] : keys) out.set(key, value);
}

}  // namespace

void read_layers(const ConfigReader& config, const LayerHints& hints, ModelEntry& out) {
  LayerPattern layers = blocks_of(config);
  if (layers.empty()) layers = searched(config);
  if (layers.empty()) {
    const std::int64_t count = number_of_layers(config);
    if (count > 100'000) config.refuse("'num_hidden_layers' is too large");
    layers.resize(static_cast<std::size_t>(count));
    read_mixers(config, hints, layers);
    read_mlps(config, hints, layers);
  } else {
    config.integer("num_hidden_layers");
  }
  write_layers(config, layers, out);
}

}  // namespace stepcast::sim
