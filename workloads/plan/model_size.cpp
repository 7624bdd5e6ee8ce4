#include "workloads/plan/model_size.hpp"

#include <algorithm>

#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/lora.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {
namespace {

/// LayerNorm has a bias.
std::int64_t norm_elements(const TransformerShape& s, std::int64_t width) {
  return s.norm == Norm::layernorm ? 2 * width : width;
}

/// q, k, v, o and a gate; latent: down to the ranks (the keys' rotary part beside), up from them,
/// o.
std::int64_t attention_products(const TransformerShape& s) {
  const RankWidths w(s, 1);
  const std::int64_t scores = w.query, values = w.value;
  if (!latent(s)) return s.hidden * (scores + w.gate + values + w.kv + w.kv_values);
  const LatentShape& l = s.latent;
  const std::int64_t q = l.q_rank > 0 ? l.q_rank * (s.hidden + scores) : s.hidden * scores;
  return q + s.hidden * (l.kv_rank + l.rope) + l.kv_rank * (s.heads * l.nope + values) +
         values * s.hidden;
}

/// Its queries, its key and the weights of its heads.
std::int64_t index_products(const TransformerShape& s) {
  const IndexShape& i = s.index;
  return s.latent.q_rank * i.heads * i.dim + s.hidden * (i.dim + i.heads);
}

bool has_index(const TransformerShape& s, const LayerForm& form) {
  return s.index.heads > 0 && form.mixer == Mixer::full;
}

/// Of the layer's mixer, with the layer's sizes.
std::int64_t mixer_products(const TransformerShape& s, const LayerForm& form) {
  std::int64_t sum = attends(form.mixer) ? attention_products(s) : 0;
  if (has_index(s, form)) sum += index_products(s);
  if (form.mixer == Mixer::delta) sum += s.hidden * (s.delta.projected() + s.delta.values());
  if (has_state_space(form.mixer))
    sum += s.hidden * (s.state_space.projected() + s.state_space.inner());
  return sum;
}

/// Biases of q, k and v, of o, and sinks; convolutions, decays and steps of heads.
std::int64_t mixer_rest(const TransformerShape& s, const LayerForm& form) {
  std::int64_t sum = 0;
  const DeltaShape& d = s.delta;
  const StateSpaceShape& x = s.state_space;
  if (form.mixer == Mixer::delta) sum += convolution_taps * d.convolved() + 2 * d.value_heads;
  if (has_state_space(form.mixer)) sum += (convolution_taps + 1) * x.convolved() + 3 * x.heads;
  if (!attends(form.mixer)) return sum;
  const RankWidths w(s, 1);
  const std::int64_t qkv = w.query + w.gate + w.kv + w.kv_values;
  return sum + (s.biases || s.qkv_biases ? qkv : 0) + (s.biases ? s.hidden : 0) +
         (s.sinks ? s.heads : 0);
}

std::int64_t norms_of_attention(const TransformerShape& s) {
  if (latent(s)) return norm_elements(s, s.latent.q_rank + s.latent.kv_rank);
  if (s.qk_norm_whole) return norm_elements(s, (s.heads + s.kv_heads) * s.head_dim);
  return s.qk_norm ? 2 * norm_elements(s, s.head_dim) : 0;
}

std::int64_t norms_of_layer(const TransformerShape& s, const LayerForm& form) {
  const int halves = (form.mixer != Mixer::none) + (form.mlp != Mlp::none);
  const int each = s.norm_place == NormPlace::both ? 2 : 1;
  std::int64_t sum = halves * each * norm_elements(s, s.hidden);
  if (attends(form.mixer)) sum += norms_of_attention(s);
  if (has_index(s, form)) sum += s.index.dim;
  if (form.mixer == Mixer::delta) sum += s.delta.value_dim;
  if (has_state_space(form.mixer)) sum += s.state_space.inner();
  return sum;
}

std::int64_t mlp_matrices(const TransformerShape& s) { return gated(s) ? 3 : 2; }
std::int64_t dense_products(const TransformerShape& s) {
  return mlp_matrices(s) * s.hidden * s.ffn_hidden;
}
std::int64_t dense_mlp(const TransformerShape& s) {
  return dense_products(s) + (s.biases ? (mlp_matrices(s) - 1) * s.ffn_hidden + s.hidden : 0);
}

std::int64_t expert_products(const TransformerShape& s) {
  return mlp_matrices(s) * expert_width(s) * s.experts.ffn;
}
/// To the width that experts work in and back.
std::int64_t expert_latent_products(const TransformerShape& s) {
  return 2 * s.hidden * s.experts.latent;
}
std::int64_t shared_products(const TransformerShape& s) {
  return mlp_matrices(s) * s.hidden * s.experts.shared_ffn;
}

struct LayerParameters {
  std::int64_t attention = 0, norms = 0, dense = 0, router = 0, experts = 0, shared = 0;
  std::int64_t total() const { return attention + norms + dense + router + experts + shared; }
  void add(const LayerParameters& more, std::int64_t times) {
    attention += times * more.attention, norms += times * more.norms, dense += times * more.dense;
    router += times * more.router, experts += times * more.experts, shared += times * more.shared;
  }
};

LayerParameters parameters_of_layer(const TransformerShape& model, const LayerForm& form,
                                    Counted counted) {
  return with_sizes_of(model, form, [&](const TransformerShape& s) {
    LayerParameters out{.attention = mixer_products(s, form) + mixer_rest(s, form),
                        .norms = norms_of_layer(s, form)};
    const ExpertShape& e = s.experts;
    if (form.mlp == Mlp::dense) out.dense = dense_mlp(s);
    if (!form.experts()) return out;
    out.router = e.count * (s.hidden + (e.biases ? 1 : 0) + (e.score_bias ? 1 : 0));
    out.experts = (counted == Counted::all ? e.count : e.per_token) * expert_parameters(s) +
                  expert_latent_products(s);
    out.shared = shared_products(s) + (e.shared_gate ? s.hidden : 0);
    return out;
  });
}

std::int64_t mtp_module(const TransformerShape& s, Counted counted) {
  return parameters_of_layer(s, mtp_form(s), counted).total() + 2 * s.hidden * s.hidden +
         3 * norm_elements(s, s.hidden);
}

std::int64_t products_of_layer(const TransformerShape& model, const LayerForm& form) {
  return with_sizes_of(model, form, [&](const TransformerShape& s) {
    const std::int64_t mixer = mixer_products(s, form);
    if (form.mlp == Mlp::none) return mixer;
    if (!form.experts()) return mixer + dense_products(s);
    return mixer + s.hidden * s.experts.count + s.experts.per_token * expert_products(s) +
           expert_latent_products(s) + shared_products(s);
  });
}

/// `add` of each distinct form with how many layers have it. Few forms are distinct, layers many.
template <class Add>
void for_each_form(const TransformerShape& s, Add add) {
  std::vector<std::pair<LayerForm, std::int64_t>> forms;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const LayerForm form = layer_form(s, layer);
    const auto found = std::ranges::find(forms, form, &std::pair<LayerForm, std::int64_t>::first);
    if (found == forms.end())
      forms.emplace_back(form, 1);
    else
      ++found->second;
  }
  for (const auto& [form, count] : forms) add(form, count);
}

/// Without the head.
std::int64_t products_of_layers(const TransformerShape& s) {
  std::int64_t sum = s.mtp_layers * (products_of_layer(s, mtp_form(s)) + 2 * s.hidden * s.hidden);
  for_each_form(s, [&](const LayerForm& form, std::int64_t count) {
    sum += count * products_of_layer(s, form);
  });
  return sum;
}

/// Of a token, forward and backward: two for each weight and pass, without a frozen weight's own.
double products_flops(const TransformerShape& s, double weights) {
  if (!adapted(s)) return 6.0 * weights;
  return 4.0 * weights + 6.0 * static_cast<double>(adapter_products(s));
}

/// Multiply-adds of a token that no weight is in, forward: scores and values of the keys that
/// `keys(window)` counts; of an index all keys' scores and attention to those it chose; states.
template <class Keys, class States>
double unweighted_products(const TransformerShape& model, Keys keys, States states) {
  double sum = 0;
  const auto add = [&](const LayerForm& form, std::int64_t count) {
    with_sizes_of(model, form, [&](const TransformerShape& s) {
      const auto heads = static_cast<double>(s.heads * (score_width(s) + value_width(s)));
      double layer = states(s, form);
      if (s.index.heads > 0 && attends(form.mixer))
        layer += heads * keys(s.index.top);
      else if (attends(form.mixer))
        layer += heads * keys(form.mixer == Mixer::window ? s.window : 0);
      if (has_index(s, form)) layer += static_cast<double>(s.index.heads * s.index.dim) * keys(0);
      sum += static_cast<double>(count) * layer;
    });
  };
  for_each_form(model, add);
  if (model.mtp_layers > 0) add(mtp_form(model), model.mtp_layers);
  return sum;
}

/// Convolution, and of each head's state the sum and what is read of it.
double state_products(const TransformerShape& s, const LayerForm& form) {
  std::int64_t sum = 0;
  const DeltaShape& d = s.delta;
  const StateSpaceShape& x = s.state_space;
  if (form.mixer == Mixer::delta)
    sum += convolution_taps * d.convolved() + 4 * d.value_heads * d.key_dim * d.value_dim;
  if (has_state_space(form.mixer))
    sum += convolution_taps * x.convolved() + 2 * x.inner() * x.state;
  return static_cast<double>(sum);
}

/// Of a token, forward, as Megatron counts them (training.py, gdn_layer_flops() and
/// mamba_layer_flops() at d98e8a6, read 2026-08): the delta rule's states, whatever their width,
/// by the values'; of a state space 7 FLOPs an element, of an inner width of twice the hidden one
/// whatever its heads say, and its products of that width.
double states_as_megatron(const TransformerShape& s, const LayerForm& form) {
  const DeltaShape& d = s.delta;
  const StateSpaceShape& x = s.state_space;
  double flops = 0;
  if (form.mixer == Mixer::delta)
    flops += 2.0 * static_cast<double>(convolution_taps * d.convolved() +
                                       4 * d.value_heads * d.value_dim * d.value_dim);
  if (has_state_space(form.mixer)) {
    const std::int64_t inner = 2 * s.hidden, beyond = inner - x.inner();
    flops += 7.0 * static_cast<double>(inner * x.state) +
             2.0 * static_cast<double>(3 * s.hidden * beyond);
  }
  return flops / 2;
}

}  // namespace

bool has_experts(const TransformerShape& s, std::int64_t layer) {
  return layer_form(s, layer).experts();
}

bool has_window(const TransformerShape& s, std::int64_t layer) {
  return layer_form(s, layer).mixer == Mixer::window;
}

std::int64_t expert_layers(const TransformerShape& s) {
  if (s.experts.count == 0) return 0;
  if (s.pattern.empty()) return (s.layers - s.experts.dense_layers) / s.experts.every;
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) sum += has_experts(s, layer) ? 1 : 0;
  return sum;
}

std::int64_t expert_width(const TransformerShape& s) {
  return s.experts.latent > 0 ? s.experts.latent : s.hidden;
}

std::int64_t score_width(const TransformerShape& s) {
  return latent(s) ? s.latent.nope + s.latent.rope : s.head_dim;
}
std::int64_t value_width(const TransformerShape& s) {
  return latent(s) ? s.latent.value : s.value_dim > 0 ? s.value_dim : s.head_dim;
}

const char* attention_beyond_llama(const TransformerShape& s) {
  if (any_layer(s, [](const LayerForm& f) { return f.mixer == Mixer::delta; }))
    return "layers of the gated delta rule";
  if (any_layer(s, [](const LayerForm& f) { return has_state_space(f.mixer); }))
    return "layers of state spaces";
  if (any_layer(s, [](const LayerForm& f) { return f.mixer == Mixer::none || f.mlp == Mlp::none; }))
    return "layers without attention or without an MLP";
  if (any_layer(s, [](const LayerForm& f) { return f.ffn > 0; })) return "MLPs of several widths";
  if (s.index.heads > 0) return "attention to keys that an index chooses";
  if (latent(s)) return "latent attention (MLA)";
  if (s.norm_place != NormPlace::before) return "norms behind attention and MLP";
  if (s.gate != AttentionGate::none) return "a gate on attention's output";
  if (s.logit_cap) return "capped logits";
  if (s.values_are_keys || s.value_dim > 0) return "values of a size of their own";
  if (s.activation == Activation::squared_relu) return "a squared ReLU";
  if (s.experts.latent > 0) return "experts of a narrower tensor";
  if (s.qk_norm_whole) return "norms of all queries and keys together";
  if (s.qk_norm) return "norms of queries and keys";
  if (s.qkv_biases && !s.biases) return "biases of q, k and v alone";
  if (s.window > 0) return "windows of attention";
  if (s.sinks) return "sinks of attention";
  if (s.mtp_layers > 0) return "modules for further tokens (MTP)";
  return nullptr;
}

std::int64_t expert_parameters(const TransformerShape& s) {
  return expert_products(s) +
         (s.experts.biases ? (mlp_matrices(s) - 1) * s.experts.ffn + s.hidden : 0);
}

std::int64_t layer_parameters(const TransformerShape& s, std::int64_t layer) {
  return parameters_of_layer(s, layer_form(s, layer), Counted::all).total();
}

std::int64_t mtp_parameters(const TransformerShape& s) {
  return s.mtp_layers > 0 ? s.mtp_layers * mtp_module(s, Counted::all) : 0;
}

ModelParameters parameters_by_part(const TransformerShape& s, Counted counted) {
  LayerParameters layers;
  for_each_form(s, [&](const LayerForm& form, std::int64_t count) {
    layers.add(parameters_of_layer(s, form, counted), count);
  });
  const std::int64_t final_norm = masked(s) ? 0 : norm_elements(s, s.hidden);
  return {.embedding = embedding_parameters(s),
          .attention = layers.attention,
          .norms = layers.norms + final_norm,
          .dense_mlp = layers.dense,
          .router = layers.router,
          .experts = layers.experts,
          .shared_experts = layers.shared,
          .mtp = s.mtp_layers > 0 ? s.mtp_layers * mtp_module(s, counted) : 0,
          .head = head_parameters(s) - final_norm};
}

std::int64_t products_per_token(const TransformerShape& s) {
  return products_of_layers(s) + (1 + s.mtp_layers) * s.vocab * s.hidden;
}

Flops model_flops(const TransformerShape& s, std::int64_t tokens, std::int64_t sequence) {
  const double predicted =
      static_cast<double>(predicted_positions(s, sequence)) / static_cast<double>(sequence);
  const std::int64_t head = (1 + s.mtp_layers) * (s.vocab + (masked(s) ? s.hidden : 0)) * s.hidden;
  const double matmul =
      static_cast<double>(products_of_layers(s)) + predicted * static_cast<double>(head);
  const auto keys = [&](std::int64_t most) {
    return static_cast<double>(most > 0 ? std::min(most, sequence) : sequence);
  };
  const double rest = unweighted_products(s, keys, state_products);
  return Flops((products_flops(s, matmul) + 6.0 * rest) * static_cast<double>(tokens));
}

Flops causal_model_flops(const TransformerShape& s, std::int64_t tokens, std::int64_t sequence) {
  const auto all = static_cast<double>(sequence);
  const auto keys = [&](std::int64_t most) {
    if (masked(s)) return all;
    const double seen = most > 0 ? static_cast<double>(std::min(most, sequence)) : all;
    return seen - seen * seen / (2 * all);
  };
  const double rest = unweighted_products(s, keys, states_as_megatron);
  const auto products = static_cast<double>(products_per_token(s));
  return Flops((products_flops(s, products) + 6.0 * rest) * static_cast<double>(tokens));
}

}  // namespace stepcast::workloads
