// The model in Megatron-LM's arguments. Names and since when: megatron_words.cpp.
#include <algorithm>

#include "sim/launch/argument_text.hpp"
#include "sim/launch/forms.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::sim {
namespace {

using workloads::TransformerShape;

constexpr MegatronRelease year_2023{2023,
                                    0};  // swiglu, untied embeddings, no biases, rope (recalled)

/// The layers, 1 where `is` holds.
template <class Is>
std::vector<bool> layers_where(const Scenario& s, Is is) {
  std::vector<bool> out;
  for (std::int64_t layer = 0; layer < s.model.layers; ++layer)
    out.push_back(is(workloads::layer_form(s.model, layer)));
  return out;
}

std::vector<bool> windows(const Scenario& s) {
  return layers_where(
      s, [](const workloads::LayerForm& f) { return f.mixer == workloads::Mixer::window; });
}

bool has_delta(const Scenario& s) {
  const auto all = layers_where(
      s, [](const workloads::LayerForm& f) { return f.mixer == workloads::Mixer::delta; });
  return std::ranges::count(all, true) > 0;
}

/// N where the others are every layer but the N-th, 2N-th, ...; 0: another order.
std::int64_t period_of(const std::vector<bool>& others) {
  const auto first = std::ranges::find(others, false);
  if (first == others.end()) return 0;
  const auto every = first - others.begin() + 1;
  for (std::ptrdiff_t i = 0; i < std::ssize(others); ++i)
    if (others[static_cast<std::size_t>(i)] == ((i + 1) % every == 0)) return 0;
  return every;
}

std::string list_of(const std::vector<bool>& layers) {
  std::string out;
  for (const bool one : layers) out += (out.empty() ? "" : ",") + std::string(one ? "1" : "0");
  return "[" + out + "]";
}

std::string quoted(const std::string& list) { return list[0] == '[' ? "'" + list + "'" : list; }

class ModelArguments {
 public:
  ModelArguments(const Scenario& scenario, ArgumentText& out)
      : s_(scenario), m_(scenario.model), out_(out) {}

  void write() {
    sizes();
    blocks();
    attention();
    if (has_delta(s_)) delta();
    if (m_.mtp_layers > 0) out_.set("mtp-num-layers", m_.mtp_layers);
  }

 private:
  bool before(MegatronRelease release) const { return out_.release < release; }
  bool deepspeed() const { return is_megatron_deepspeed(s_); }
  bool old() const { return deepspeed() || before(megatron_core); }
  /// A part of the model that its release has no argument for.
  void flag_since(MegatronRelease since, std::string_view name) {
    if (!deepspeed() && before(since))
      out_.notes.push_back(fmt::format("--{} came later than {}: its model has none.", name,
                                       framework_and_version(s_)));
    else
      out_.old_flag(name);
  }

  void sizes() {
    out_.set("num-layers", m_.layers);
    out_.set("hidden-size", m_.hidden);
    out_.set("ffn-hidden-size", m_.ffn_hidden > 0 ? m_.ffn_hidden : m_.experts.ffn);
    out_.set("num-attention-heads", m_.heads);
    if (m_.latent.kv_rank == 0) out_.set("kv-channels", m_.head_dim);
    if (m_.kv_heads != m_.heads && m_.latent.kv_rank == 0) grouped_heads();
    out_.set("seq-length", s_.batch.sequence);
    out_.set("max-position-embeddings", std::max(m_.max_positions, s_.batch.sequence));
    if (before(year_2023))
      out_.notes.push_back(fmt::format("The vocabulary of {} is the tokenizer's.", m_.vocab));
    else
      out_.set("vocab-size", m_.vocab);
  }

  void grouped_heads() {
    if (deepspeed()) return out_.old_set("num-key-value-heads", m_.kv_heads);
    if (before(megatron_core)) return flag_since(megatron_core, "group-query-attention");
    out_.flag("group-query-attention");
    out_.set("num-query-groups", m_.kv_heads);
  }

  void blocks() {
    using workloads::Activation;
    if (deepspeed() && before(year_2023) && m_.rope)
      out_.notes.emplace_back("Arguments of Llama's blocks are those of 2023 (b644fba3).");
    if (m_.activation == Activation::swiglu) activation();
    if (m_.activation == Activation::squared_relu) out_.flag("squared-relu");
    if (m_.norm == workloads::Norm::rmsnorm)
      flag_since(megatron_core, deepspeed() ? "normalization rmsnorm" : "normalization RMSNorm");
    if (!m_.biases) flag_since(year_2023, "disable-bias-linear");
    if (m_.qkv_biases && !m_.biases) out_.flag("add-qkv-bias");
    if (!m_.tied_embeddings) flag_since(year_2023, "untie-embeddings-and-output-weights");
    if (m_.rope)
      flag_since(year_2023,
                 old() ? "use-rotary-position-embeddings" : "position-embedding-type rope");
    if (m_.alibi) out_.notes.emplace_back("ALiBi has no argument.");
    if (!m_.dropout) {
      out_.set("attention-dropout", "0.0");
      out_.set("hidden-dropout", "0.0");
    }
    const bool flash = !s_.software.attention.keeps_scores();
    if (flash && old() && !before(year_2023)) out_.flag("use-flash-attn");
  }

  /// GPT-OSS's is a gated unit of its own, clamped and shifted (Megatron's examples/gptoss).
  void activation() {
    if (!m_.sinks) return flag_since(year_2023, "swiglu");
    out_.flag("quick-geglu");
    out_.set("glu-linear-offset", "1.0");
    out_.set("activation-func-clamp-value", "7.0");
  }

  void attention() {
    if (m_.qk_norm) out_.flag("qk-layernorm");
    if (m_.latent.kv_rank > 0) latent();
    if (m_.gate == workloads::AttentionGate::element) out_.flag("attention-output-gate");
    if (m_.sinks) out_.set("softmax-type", "learnable");
    if (m_.window == 0) return;
    out_.set("window-size", fmt::format("{},0", m_.window - 1));  // so many before, none behind
    if (const std::string which = window_frequency(s_); !which.empty())
      out_.set("window-attn-skip-freq", quoted(which));
  }

  void latent() {
    out_.flag("multi-latent-attention");
    if (m_.latent.q_rank > 0) out_.set("q-lora-rank", m_.latent.q_rank);
    out_.set("kv-lora-rank", m_.latent.kv_rank);
    out_.set("qk-head-dim", m_.latent.nope);
    out_.set("qk-pos-emb-head-dim", m_.latent.rope);
    out_.set("v-head-dim", m_.latent.value);
  }

  void delta() {
    const auto linear = layers_where(
        s_, [](const workloads::LayerForm& f) { return f.mixer == workloads::Mixer::delta; });
    out_.set("experimental-attention-variant", "gated_delta_net");
    if (const std::int64_t every = period_of(linear); every > 0)
      out_.set("linear-attention-freq", every);
    else
      out_.set("linear-attention-freq", quoted(list_of(linear)));
    out_.set("linear-key-head-dim", m_.delta.key_dim);
    out_.set("linear-value-head-dim", m_.delta.value_dim);
    out_.set("linear-num-key-heads", m_.delta.key_heads);
    out_.set("linear-num-value-heads", m_.delta.value_heads);
  }

  const Scenario& s_;
  const TransformerShape& m_;
  ArgumentText& out_;
};

/// What a part of the model is called here and the argument that says it; none: there is none.
struct Part {
  bool there;
  const char *what, *argument;
};

}  // namespace

std::string window_frequency(const Scenario& s) {
  const auto which = windows(s);
  if (std::ranges::count(which, false) == 0) return "";
  const std::int64_t every = period_of(which);
  return every > 0 ? std::to_string(every) : list_of(which);
}

std::string expert_frequency(const Scenario& s) {
  const auto& e = s.model.experts;
  if (e.dense_layers == 0 && e.every == 1) return "";
  std::vector<bool> out;
  for (std::int64_t layer = 0; layer < s.model.layers; ++layer)
    out.push_back(workloads::layer_kind(s.model, s.precision, layer).experts());
  return list_of(out);
}

void write_megatron_model(const Scenario& s, ArgumentText& out) { ModelArguments(s, out).write(); }

std::string megatron_model_refusal(const Scenario& s) {
  const TransformerShape& m = s.model;
  const auto any = [&](auto is) {
    const auto all = layers_where(s, is);
    return std::ranges::count(all, true) > 0;
  };
  const Part parts[] = {
      {m.norm_place != workloads::NormPlace::before, "norms behind attention and MLP", nullptr},
      {m.logit_cap, "capped logits", nullptr},
      {m.values_are_keys || m.value_dim > 0, "values of a size of their own", nullptr},
      {m.qk_norm_whole, "norms of all queries and keys together", nullptr},
      {m.index.heads > 0, "attention to keys that an index chooses", nullptr},
      {m.experts.latent > 0, "experts of a narrower tensor", nullptr},
      {m.gate == workloads::AttentionGate::head, "a gate a head", nullptr},
      {m.window_heads > 0 || m.window_head_dim > 0, "other heads in windows", nullptr},
      {any([](const workloads::LayerForm& f) { return has_state_space(f.mixer); }),
       "layers of state spaces", nullptr},
      {any([](const workloads::LayerForm& f) {
         return f.mixer == workloads::Mixer::none || f.mlp == workloads::Mlp::none;
       }),
       "layers without attention or without an MLP", nullptr},
      {any([](const workloads::LayerForm& f) { return f.ffn > 0; }), "MLPs of several widths",
       nullptr},
      {has_delta(s), "layers of the gated delta rule", "experimental-attention-variant"},
      {m.latent.kv_rank > 0, "latent attention (MLA)", "multi-latent-attention"},
      {m.gate == workloads::AttentionGate::element, "a gate on attention's output",
       "attention-output-gate"},
      {m.qk_norm, "norms of queries and keys", "qk-layernorm"},
      {m.qkv_biases && !m.biases, "biases of q, k and v alone", "add-qkv-bias"},
      {m.window > 0, "windows of attention", "window-size"},
      {m.sinks, "sinks of attention", "softmax-type"},
      {m.mtp_layers > 0, "modules for further tokens (MTP)", "mtp-num-layers"},
      {m.activation == workloads::Activation::squared_relu, "a squared ReLU", "squared-relu"},
  };
  const ArgumentText release(s);
  const bool core = s.software.framework == "megatron-core";
  for (const auto& [there, what, argument] : parts)
    if (there && (argument == nullptr || !core || !release.has(argument)))
      return fmt::format("{} has no argument for a model that has {}", framework_and_version(s),
                         what);
  return "";
}

}  // namespace stepcast::sim
