// What Megatron-LM's arguments say of layers that are not alike, and of parts of a plan.
#include <fmt/format.h>

#include <algorithm>

#include "sim/files/split.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/translator.hpp"

namespace stepcast::sim {
namespace {

class MegatronParts : public Translator {
 public:
  using Translator::Translator;

  void model() {
    if (on("attention_output_gate")) set("model.attention_gate", std::string("element"));
    const std::string softmax = word("softmax_type");
    if (softmax == "learnable" || softmax == "off-by-one") set("model.sinks", softmax[0] == 'l');
    if (word("experimental_attention_variant") == "gated_delta_net") return delta();
    window();
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

  void delta() {
    take_part(megatron_words(),
              [](const LaunchWord& word) { return word.key.starts_with("model.delta_"); });
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

void add_megatron_parts(Facts& facts, const Settings& settings, const std::string& prefix,
                        const std::string& source) {
  MegatronParts(facts, settings, prefix, source).model();
}

void add_megatron_plan_parts(Facts& facts, const Settings& settings, const std::string& prefix,
                             const std::string& source) {
  MegatronParts(facts, settings, prefix, source).plan();
}

}  // namespace stepcast::sim
