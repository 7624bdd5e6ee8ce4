// What Megatron-LM's arguments say of layers that are not alike, and of parts of a plan.
#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/split.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/translator.hpp"
#include "workloads/plan/layers.hpp"

namespace stepcast::sim {
namespace {

/// "M-M*-|M-ME-/*E": a letter a layer, '|' between parts of the pipeline, '/' before each module
/// for further tokens (core/models/hybrid/hybrid_layer_allocation.py, read 2026-11).
struct Letters {
  std::string layers, module;
  std::vector<std::int64_t> parts;
  std::int64_t modules = 0;
};

Letters letters_in(std::string_view text) {
  Letters out;
  const std::string_view layers = text.substr(0, text.find('/'));
  for (const std::string_view part : split(layers, '|')) {
    out.layers += part;
    out.parts.push_back(std::ssize(part));
  }
  if (layers.size() < text.size()) {
    out.modules = std::ranges::count(text, '/');
    out.module = text.substr(text.rfind('/') + 1);
  }
  std::ranges::replace(out.layers, '+', '*');  // latent attention, which other arguments say
  return out;
}

class MegatronParts : public Translator {
 public:
  using Translator::Translator;

  void model() {
    if (on("attention_output_gate")) set("model.attention_gate", std::string("element"));
    const std::string softmax = word("softmax_type");
    if (softmax == "learnable" || softmax == "off-by-one") set("model.sinks", softmax[0] == 'l');
    if (const Letters said = letters_in(letters()); !said.layers.empty()) return hybrid(said);
    if (word("experimental_attention_variant") == "gated_delta_net") return delta();
    window();
  }

  /// Its older name is --hybrid-override-pattern.
  std::string letters() const {
    const std::string said = word("hybrid_layer_pattern");
    return said.empty() ? word("hybrid_override_pattern") : said;
  }

  void plan() {
    modules();
    if (on("optimizer_cpu_offload")) {
      const double share = settings_.number(name("optimizer_offload_fraction")).value_or(1.0);
      facts_.set("plan.optimizer_offload", {share, ""}, source_);
      if (on("overlap_cpu_optimizer_d2h_h2d")) set("plan.optimizer_offload_overlap", true);
    }
    if (on("tp_comm_overlap")) set("plan.tensor_overlap", std::string("userbuffers"));
    const std::string exchange = word("cp_comm_type");
    if (exchange == "p2p") set("software.context_exchange", std::string("ring"));
    if (exchange == "all_gather") set("software.context_exchange", std::string("all_gather"));
    if (exchange == "a2a") set("software.context_exchange", std::string("all_to_all"));
  }

 private:
  std::string mlp() const { return facts_.integer("model.experts").value_or(0) > 1 ? "E" : "-"; }

  /// Layers that are a mixer or an MLP each.
  void hybrid(const Letters& said) {
    workloads::LayerPattern layers;
    std::string wrong;
    if (!workloads::read_letters(said.layers, layers, wrong))
      throw InputError(source_,
                       "layers of kind " + wrong + " (hybrid_layer_pattern) are not modelled",
                       "these are: " + std::string(workloads::pattern_letters));
    set("model.layers", std::int64_t{std::ssize(layers)});
    set("model.layer_pattern", workloads::to_text(workloads::shortest(layers)));
    for (const char* key : {"model.dense_layers", "model.expert_every"}) facts_.erase(key);
    if (const auto ffn = integer("ffn_hidden_size")) set("model.ffn_hidden", *ffn);
    if (said.layers.find('M') != std::string::npos) state_space();
    if (said.layers.find('G') != std::string::npos) delta_sizes();
    if (said.modules == 0) return;
    set("model.mtp_layers", said.modules);
    note(fmt::format("The layers of a module for further tokens, {}, are taken as one.",
                     said.module));
  }

  /// Mamba-2; its defaults: core/transformer/transformer_config.py.
  void state_space() {
    constexpr std::int64_t width = 64, most = 1'000'000'000;
    const std::int64_t head = std::max<std::int64_t>(1, integer("mamba_head_dim").value_or(width));
    set("model.ssm_head_dim", head);
    set("model.ssm_state", std::int64_t{128});
    set("model.ssm_groups", std::int64_t{8});
    if (const auto hidden = integer("hidden_size"); hidden && *hidden < most)
      set("model.ssm_heads", 2 * *hidden / head);
    take_part(megatron_words(),
              [](const LaunchWord& word) { return word.key.starts_with("model.ssm_"); });
  }

  /// Every n-th layer is another, the n-th first: "W- W- W- *-".
  void pattern(char usual, std::int64_t every) {
    std::string words;
    for (std::int64_t i = 1; i < every; ++i) words += std::string(1, usual) + mlp() + " ";
    set("model.layer_pattern", words + "*" + mlp());
    for (const char* key : {"model.dense_layers", "model.expert_every"})
      if (facts_.find(key) != nullptr) {
        facts_.erase(key);
        note("Layers of two kinds beside dense ones: all are taken as layers of experts.");
      }
  }

  /// "127,0", "(127, 0)": so many tokens before, none behind.
  void window() {
    const auto size = numbers_in(word("window_size"));
    if (size.empty() || size[0] < 1) return;
    set("model.window", size[0] + 1);
    const std::string which = word("window_attn_skip_freq");
    const auto every = integer("window_attn_skip_freq");
    if (every == 2) return set("model.window_every", *every);
    if (every && *every > 1) return pattern('W', *every);
    if (which.find('[') != std::string::npos)
      note("window_attn_skip_freq is a list: every layer is taken to have the window.");
  }

  void delta_sizes() {
    take_part(megatron_words(),
              [](const LaunchWord& word) { return word.key.starts_with("model.delta_"); });
  }

  void delta() {
    delta_sizes();
    pattern('G', integer("linear_attention_freq").value_or(4));
  }

  /// "core_attn layernorm moe_act", "['core_attn']": what selective recompute runs again.
  void modules() {
    std::string list = word("recompute_modules");
    if (list.empty() || word("recompute_granularity") != "selective") return;
    std::ranges::replace_if(
        list, [](char c) { return c == '[' || c == ']' || c == '\'' || c == ','; }, ' ');
    TomlValue::Array out;
    bool core = false;
    for (const std::string_view one : split(list, ' '))
      for (const auto& [theirs, ours] : {std::pair{"layernorm", "norm"},
                                         {"mla_up_proj", "latent_up"},
                                         {"moe_act", "expert_activation"},
                                         {"mlp", "mlp"},
                                         {"shared_experts", "shared_experts"},
                                         {"moe", "experts"},
                                         {"core_attn", ""}}) {
        if (one != theirs) continue;
        if (*ours == '\0')
          core = true;
        else
          out.push_back(toml_text(ours, ""));
      }
    if (!core) set("plan.recompute", std::string("none"));
    if (!out.empty()) facts_.set("plan.recompute_modules", {std::move(out), ""}, source_);
  }
};

}  // namespace

std::vector<std::int64_t> layers_of_letters(const Settings& settings, const std::string& prefix) {
  Facts none;
  const std::string said = MegatronParts(none, settings, prefix, "").letters();
  return said.empty() ? std::vector<std::int64_t>{} : letters_in(said).parts;
}

void add_megatron_parts(Facts& facts, const Settings& settings, const std::string& prefix,
                        const std::string& source) {
  MegatronParts(facts, settings, prefix, source).model();
}

void add_megatron_plan_parts(Facts& facts, const Settings& settings, const std::string& prefix,
                             const std::string& source) {
  MegatronParts(facts, settings, prefix, source).plan();
}

}  // namespace stepcast::sim
