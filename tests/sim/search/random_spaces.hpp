// Random machines, models and spaces of plans, small enough to simulate all of.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "sim/scenario/file.hpp"
#include "sim/search/search.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {

class RandomSpaces {
 public:
  explicit RandomSpaces(std::uint64_t seed) : random_(seed) {}

  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(below(values.size())));
  }
  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }

  /// A scenario whose plan is open.
  Scenario base() {
    const char* nodes[] = {"dgx-1v", "dgx-2", "dgx-a100", "dgx-h100", "dgx-b200", "pcie4-8"};
    const char* frameworks[] = {"pytorch-fsdp2", "pytorch-fsdp1", "megatron-core", "deepspeed",
                                "torchtitan",    "megatron-lm",   "pytorch-ddp",   "nanotron"};
    const std::string node = nodes[below(std::size(nodes))];
    const std::string framework = frameworks[below(std::size(frameworks))];
    const std::int64_t heads = one_of({8, 12, 16}), head = one_of({64, 128});
    const std::int64_t hidden = heads * head;
    const bool llama = below(2) == 0;
    const std::int64_t count = one_of({1, 2, 4, 8});
    const char* layers[] = {
        "", "lora_rank = 16\n", "qkv_biases = true\nwindow = 128\nwindow_every = 2\n",
        "qk_norm = true\nmtp_layers = 1\n",
        "latent_kv_rank = 128\nlatent_nope = 48\nlatent_rope = 16\nlatent_value = 32\n"};
    const std::size_t modern = llama ? below(std::size(layers)) : 0;
    const bool grouped = llama && modern != 4;
    std::string text =
        "[model]\nname = \"x\"\nlayers = " + std::to_string(one_of({4, 6, 8})) +
        "\nhidden = " + std::to_string(hidden) + "\nheads = " + std::to_string(heads) +
        "\nkv_heads = " + std::to_string(grouped ? heads / 4 : heads) +
        "\nhead_dim = " + std::to_string(head) + "\nffn_hidden = " + std::to_string(4 * hidden) +
        "\nvocab = " + std::to_string(one_of({16384, 32000})) +
        "\nsequence = " + std::to_string(one_of({512, 1024, 2048})) +
        (llama ? std::string("\n") + layers[modern]
               : "\nnorm = \"layernorm\"\nactivation = \"gelu\"\n"
                 "biases = true\n") +
        "tied_embeddings = " + (below(2) == 0 ? "true" : "false") + "\n[cluster]\nnode = \"" +
        node + "\"\nnodes = " + std::to_string(count) +
        "\n[batch]\nglobal = " + std::to_string(count * one_of({8, 16, 32})) +
        "\n[plan]\ntensor = \"best\"\n[software]\nframework = \"" + framework +
        "\"\nschedules = [\"gpipe\", \"1f1b\", \"zb_h1\", \"zb_h2\", \"zb_v\", \"dualpipe\", "
        "\"dualpipe_v\"]\n" +
        (modern == 1 ? "" : precision(node, framework));  // no recipes beside adapters
    return read_scenario(read_toml(text, "random.toml"), catalogue());
  }

  /// The same with layers of experts.
  Scenario base_of_experts() {
    Scenario out = base();
    out.software.experts.runs = true;
    out.software.experts.dispatchers = workloads::ExpertSoftware().dispatchers;
    out.software.experts.fused_router = below(2) == 0;
    out.software.experts.products =
        below(2) == 0 ? workloads::GroupedProducts::loop : workloads::GroupedProducts::one_launch;
    out.model.activation = workloads::Activation::swiglu;
    workloads::ExpertShape& e = out.model.experts;
    e.count = 8, e.per_token = 2, e.ffn = 1024;
    e.shared_ffn = below(2) == 0 ? 0 : 1024;
    e.dense_layers = one_of({0, 1});
    if (below(4) == 0) out.plan.routing = {workloads::RoutingKind::max_violation, 1, 0.5, {}};
    return out;
  }

  /// A recipe of low precision where GPU and framework have any.
  std::string precision(const std::string& node, const std::string& framework) {
    const bool low = (node == "dgx-h100" || node == "dgx-b200") && below(2) == 0;
    const std::string narrow = below(2) == 0 ? "fp8_parameters = true\n" : "";
    if (low && framework == "torchtitan") return "[precision]\nrecipe = \"fp8_current\"\n" + narrow;
    if (low && framework == "megatron-core") {
      const char* recipes[] = {"fp8_delayed", "fp8_current", "mxfp8"};
      const std::string recipe = recipes[below(node == "dgx-b200" ? 3 : 2)];
      return "[precision]\nbf16_last_layers = 1\nrecipe = \"" + recipe + "\"\n" + narrow;
    }
    return below(4) == 0 ? "[precision]\ncompute = \"fp16\"\n" : "";
  }

  /// Of every knob one to `most` of its usual values; `requests`: also one or two of every second
  /// knob that is tried on request alone (all of them at once are hardly ever legal).
  SearchSpace space(const Scenario& base, std::size_t most, bool requests = false) {
    SearchSpace out({base}, true);
    for (const Knob& knob : knobs().subspan(1)) {
      std::vector<std::int64_t> values = out.values_of(knob);
      const bool requested = requests && knob.on_request && below(2) == 0;
      if (requested) values = knob.usual(base, true);
      if (std::string_view(knob.key) == "plan.schedule") values = {0, 1, 2, 3, 4, 5, 6};
      std::shuffle(values.begin(), values.end(), random_);
      values.resize(std::min(values.size(), 1 + below(requested ? 2 : most)));
      TomlValue::Array written;
      for (const std::int64_t value : values)
        written.push_back(knob.parts > 1       ? TomlValue{static_cast<double>(value) / 1e6, "test"}
                          : knob.words.empty() ? TomlValue{value, "test"}
                                               : toml_text(knob.word(value), "test"));
      out.set(knob.key, {std::move(written), "test"});
    }
    return out;
  }

  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
};

inline std::vector<KnobValues> plans_of(const SearchSpace& space) {
  std::vector<KnobValues> out;
  space.walk([&](const KnobValues& c, const DraftPlan&) {
    out.push_back(c);
    return true;
  });
  return out;
}

}  // namespace stepcast::sim
