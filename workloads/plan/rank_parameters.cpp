#include "workloads/plan/rank_parameters.hpp"

#include <algorithm>
#include <iterator>

#include "engine/check.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/lora.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

void add_norm(ParameterTensors& out, const TransformerShape& s, const std::string& name,
              std::int64_t width) {
  out.push_back({name, width, false, true});
  if (s.norm == Norm::layernorm) out.push_back({name + ".bias", width, false, true});
}

/// Column parallel: rows of the weight and its bias are cut. Row parallel: the bias is whole.
void add_linear(ParameterTensors& out, bool bias, const std::string& name, std::int64_t in,
                std::int64_t out_width, bool row_parallel) {
  add_weight(out, name, out_width, in, false);
  if (bias) out.push_back({name + ".bias", out_width, false, row_parallel});
}

/// Whole on every tensor rank: the weight down to a rank, and the rank's norm.
void add_down(ParameterTensors& out, const TransformerShape& s, const std::string& name,
              std::int64_t rank, std::int64_t beside) {
  add_weight(out, "attention." + name + "_down", rank + beside, s.hidden, true);
  add_norm(out, s, "attention." + name + "_norm", rank);
}

void add_latent(ParameterTensors& out, const TransformerShape& s, const RankWidths& rank) {
  const LatentShape& l = s.latent;
  if (l.q_rank > 0) {
    add_down(out, s, "q", l.q_rank, 0);
    add_linear(out, false, "attention.q_up", l.q_rank, rank.query, false);
  } else {
    add_linear(out, false, "attention.q", s.hidden, rank.query, false);
  }
  add_down(out, s, "kv", l.kv_rank, l.rope);
  add_linear(out, false, "attention.kv_up", l.kv_rank, rank.heads * l.nope + rank.value, false);
}

void add_query_key_value(ParameterTensors& out, const TransformerShape& s, const RankWidths& rank,
                         bool packed) {
  const bool bias = s.biases || s.qkv_biases;
  const std::int64_t query = rank.query + rank.gate;
  if (packed) {
    add_linear(out, bias, "attention.qkv", s.hidden, query + rank.kv + rank.kv_values, false);
  } else {
    add_linear(out, bias, "attention.q", s.hidden, query, false);
    add_linear(out, bias, "attention.k", s.hidden, rank.kv, false);
    if (rank.kv_values > 0) add_linear(out, bias, "attention.v", s.hidden, rank.kv_values, false);
  }
  if (!s.qk_norm && !s.qk_norm_whole) return;
  add_norm(out, s, "attention.q_norm", s.qk_norm_whole ? rank.query : s.head_dim);
  add_norm(out, s, "attention.k_norm", s.qk_norm_whole ? rank.kv : s.head_dim);
}

/// Queries of the index come out of the queries' low rank, its key (one for all heads, with a norm)
/// and the heads' weights out of the layer's input; whole on every tensor rank.
void add_index(ParameterTensors& out, const TransformerShape& s) {
  const IndexShape& i = s.index;
  add_weight(out, "index.q", i.heads * i.dim, s.latent.q_rank, true);
  add_weight(out, "index.k", i.dim, s.hidden, true);
  add_weight(out, "index.weights", i.heads, s.hidden, true);
  out.push_back({"index.norm", i.dim, false, true});
}

/// One product for all that a head needs, a short convolution, decay and step of each head, a norm
/// of what leaves.
void add_delta(ParameterTensors& out, const DeltaShape& whole, std::int64_t hidden,
               std::int64_t tensor) {
  const DeltaShape d = delta_of_rank(whole, tensor);
  add_weight(out, "delta.in", d.projected(), hidden, false);
  out.push_back({"delta.conv", convolution_taps * d.convolved(), false, false});
  out.push_back({"delta.decay", 2 * d.value_heads, false, false});
  out.push_back({"delta.norm", d.value_dim, false, true});
}

/// With more tensor ranks than groups each rank keeps one group.
void add_state_space(ParameterTensors& out, const StateSpaceShape& whole, std::int64_t hidden,
                     std::int64_t tensor) {
  const StateSpaceShape s = state_space_of_rank(whole, tensor);
  add_weight(out, "ssd.in", s.projected(), hidden, false);
  out.push_back({"ssd.conv", (convolution_taps + 1) * s.convolved(), false, false});
  out.push_back({"ssd.heads", 3 * s.heads, false, false});
  out.push_back({"ssd.norm", s.inner(), false, false});
}

/// BERT's: transform and its norm, bias of the logits, pooler, next-sentence classes.
void add_masked_head(ParameterTensors& out, const TransformerShape& s, std::int64_t tensor) {
  for (const char* dense : {"head.transform", "pooler"}) {
    add_weight(out, dense, s.hidden, s.hidden, true);
    out.push_back({dense + std::string(".bias"), s.hidden, false, true});
  }
  add_norm(out, s, "head.norm", s.hidden);
  out.push_back({"head.bias", RankWidths(s, tensor).vocab, false, false});
  add_weight(out, "next_sentence", 2, s.hidden, true);
  out.push_back({"next_sentence.bias", 2, false, true});
}

}  // namespace

void add_weight(ParameterTensors& out, const std::string& name, std::int64_t rows,
                std::int64_t columns, bool replicated) {
  out.push_back({name, rows * columns, true, replicated});
  out.back().rows = rows;
}

RankWidths::RankWidths(const TransformerShape& s, std::int64_t tensor)
    : heads(s.heads / tensor),
      kv_heads(std::max<std::int64_t>(1, s.kv_heads / tensor)),
      query(heads * score_width(s)),
      kv(kv_heads * score_width(s)),
      kv_values(s.values_are_keys ? 0 : kv_heads * value_width(s)),
      gate(s.gate == AttentionGate::none   ? 0
           : s.gate == AttentionGate::head ? heads
                                           : heads * value_width(s)),
      value(heads * value_width(s)),
      ffn(s.ffn_hidden / tensor),
      vocab(s.vocab / tensor) {}

LayerKind layer_kind(const TransformerShape& s, const Precision& precision, std::int64_t layer) {
  LayerKind kind{layer_form(s, layer)};
  kind.plain = precision.recipe != Recipe::none && (layer < precision.bf16_first_layers ||
                                                    layer >= s.layers - precision.bf16_last_layers);
  return kind;
}

LayerKind mtp_kind(const TransformerShape& s, const Precision& precision) {
  LayerKind kind = layer_kind(s, precision, s.layers - 1);
  static_cast<LayerForm&>(kind) = mtp_form(s);
  return kind;
}

std::vector<LayerKind> layer_kinds(const TransformerShape& s, const Precision& precision) {
  std::vector<LayerKind> out;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const LayerKind kind = layer_kind(s, precision, layer);
    if (std::ranges::find(out, kind) == out.end()) out.push_back(kind);
  }
  return out;
}

namespace {

void add_norm_before(ParameterTensors& out, const TransformerShape& s, const std::string& name) {
  if (s.norm_place != NormPlace::behind) add_norm(out, s, name, s.hidden);
}
void add_norm_behind(ParameterTensors& out, const TransformerShape& s, const std::string& name) {
  if (s.norm_place != NormPlace::before) add_norm(out, s, name + ".behind", s.hidden);
}

void add_attention(ParameterTensors& out, const TransformerShape& s, const RankWidths& rank,
                   bool packed, Mixer mixer) {
  if (latent(s))
    add_latent(out, s, rank);
  else
    add_query_key_value(out, s, rank, packed);
  if (s.index.heads > 0 && mixer == Mixer::full) add_index(out, s);
  if (s.sinks) out.push_back({"attention.sinks", rank.heads, false, false});
  add_linear(out, s.biases, "attention.o", rank.value, s.hidden, true);
}

void add_mixer(ParameterTensors& out, const TransformerShape& s, const ParallelPlan& plan,
               bool packed, Mixer mixer) {
  if (mixer == Mixer::none) return;
  add_norm_before(out, s, "norm1");
  if (attends(mixer)) add_attention(out, s, RankWidths(s, plan.tensor), packed, mixer);
  if (mixer == Mixer::delta) {
    add_delta(out, s.delta, s.hidden, plan.tensor);
    add_linear(out, false, "delta.out", s.delta.values() / plan.tensor, s.hidden, true);
  }
  if (has_state_space(mixer)) {
    add_state_space(out, s.state_space, s.hidden, plan.tensor);
    add_linear(out, false, "ssd.out", s.state_space.inner() / plan.tensor, s.hidden, true);
  }
  add_norm_behind(out, s, "norm1");
}

void add_dense_mlp(ParameterTensors& out, const TransformerShape& s, std::int64_t ffn,
                   bool packed) {
  if (!gated(s)) {
    add_linear(out, s.biases, "mlp.up", s.hidden, ffn, false);
  } else if (packed) {
    add_linear(out, s.biases, "mlp.gate_up", s.hidden, 2 * ffn, false);
  } else {
    add_linear(out, s.biases, "mlp.gate", s.hidden, ffn, false);
    add_linear(out, s.biases, "mlp.up", s.hidden, ffn, false);
  }
  add_linear(out, s.biases, "mlp.down", ffn, s.hidden, true);
}

/// `s` has the sizes of the layer.
ParameterTensors base_tensors(const TransformerShape& s, const ParallelPlan& plan, bool packed,
                              const LayerKind& kind) {
  ParameterTensors out;
  add_mixer(out, s, plan, packed, kind.mixer);
  if (kind.mlp == Mlp::none) return out;
  add_norm_before(out, s, "norm2");
  if (kind.experts())
    add_expert_tensors(out, s, plan, packed);
  else
    add_dense_mlp(out, s, RankWidths(s, plan.tensor).ffn, packed);
  add_norm_behind(out, s, "norm2");
  return out;
}

}  // namespace

ParameterTensors layer_tensors(const TransformerShape& s, const ParallelPlan& plan, bool packed,
                               LayerKind kind) {
  return with_sizes_of(s, kind, [&](const TransformerShape& own) {
    ParameterTensors out = base_tensors(own, plan, packed, kind);
    freeze(out, own);
    add_adapters(out, own, plan.tensor, kind);
    return out;
  });
}

ParameterTensors embedding_tensors(const TransformerShape& s, std::int64_t tensor) {
  ParameterTensors out{{"embedding", RankWidths(s, tensor).vocab * s.hidden, false, false}};
  out.back().rows = RankWidths(s, tensor).vocab;
  if (learned_positions(s)) out.push_back({"positions", s.max_positions * s.hidden, false, true});
  if (masked(s)) {
    out.push_back({"segments", 2 * s.hidden, false, true});
    add_norm(out, s, "embedding.norm", s.hidden);
  }
  freeze(out, s);
  return out;
}

ParameterTensors head_tensors(const TransformerShape& s, std::int64_t tensor, bool own_copy) {
  ParameterTensors out;
  if (masked(s))
    add_masked_head(out, s, tensor);
  else
    add_norm(out, s, "final_norm", s.hidden);
  if (!s.tied_embeddings || own_copy)
    add_weight(out, "head", RankWidths(s, tensor).vocab, s.hidden, false);
  freeze(out, s);
  return out;
}

ParameterTensors mtp_tensors(const TransformerShape& s, const ParallelPlan& plan,
                             const Precision& precision, bool packed) {
  ParameterTensors out;
  if (s.mtp_layers == 0) return out;
  expects(s.mtp_layers == 1, "one module for further tokens");
  for (const char* name : {"mtp.norm_embedding", "mtp.norm_hidden"})
    add_norm(out, s, name, s.hidden);
  add_weight(out, "mtp.projection", s.hidden / plan.tensor, 2 * s.hidden, false);
  const ParameterTensors layer = layer_tensors(s, plan, packed, mtp_kind(s, precision));
  out.insert(out.end(), layer.begin(), layer.end());
  add_norm(out, s, "mtp.final_norm", s.hidden);
  return out;
}

std::int64_t elements_of(const ParameterTensors& tensors) {
  std::int64_t sum = 0;
  for (const ParameterTensor& t : tensors) sum += t.elements;
  return sum;
}

ParameterTensors trained_of(const ParameterTensors& tensors) {
  ParameterTensors out = tensors;
  std::erase_if(out, [](const ParameterTensor& t) { return t.frozen; });
  return out;
}

std::int64_t trained_elements_of(const ParameterTensors& tensors) {
  std::int64_t sum = 0;
  for (const ParameterTensor& t : tensors) sum += t.frozen ? 0 : t.elements;
  return sum;
}

std::int64_t kept_bytes(const ParameterTensor& t, std::int64_t elements, std::int64_t element) {
  return t.frozen ? frozen_bytes(t.base, elements, element) : element * elements;
}

std::int64_t kept_bytes(const ParameterTensors& tensors, std::int64_t element) {
  std::int64_t sum = 0;
  for (const ParameterTensor& t : tensors) sum += kept_bytes(t, t.elements, element);
  return sum;
}

std::int64_t replicated_elements_of(const ParameterTensors& tensors) {
  std::int64_t sum = 0;
  for (const ParameterTensor& t : tensors) sum += t.replicated ? t.elements : 0;
  return sum;
}

AlikeLayers part_of(const AlikeLayers& layers, bool experts) {
  AlikeLayers out = layers;
  std::erase_if(out.tensors, [experts](const ParameterTensor& t) { return t.expert != experts; });
  return out;
}

StageParameters trained_of(const StageParameters& stage) {
  StageParameters out = stage;
  for (AlikeLayers& alike : out.kinds) alike.tensors = trained_of(alike.tensors);
  out.root = trained_of(out.root);
  return out;
}

std::int64_t StageParameters::layer_elements() const {
  std::int64_t most = 0;
  for (const AlikeLayers& alike : kinds) most = std::max(most, elements_of(alike.tensors));
  return most;
}

std::int64_t StageParameters::elements() const {
  return over_layers(elements_of) + elements_of(root);
}

std::int64_t StageParameters::tensors() const {
  return over_layers([](const ParameterTensors& layer) { return std::ssize(layer); }) +
         std::ssize(root);
}

namespace {

/// Layers before each part of the model, and all.
std::vector<std::int64_t> first_layers(const TransformerShape& s, const ParallelPlan& plan) {
  std::vector<std::int64_t> out{0};
  for (std::int64_t part = 0; part < plan.parts(); ++part)
    out.push_back(out.back() + layers_of_part(s.layers, plan, part));
  return out;
}

std::uint8_t index_of_kind(std::vector<AlikeLayers>& kinds, LayerKind kind) {
  auto at = std::ranges::find(kinds, kind, &AlikeLayers::kind);
  if (at == kinds.end()) at = kinds.insert(at, {kind, {}, 0});
  ++at->count;
  return static_cast<std::uint8_t>(at - kinds.begin());
}

}  // namespace

StageParameters stage_parameters(const TransformerShape& s, const ParallelPlan& plan,
                                 const Precision& precision, bool packed, std::int64_t stage) {
  StageParameters out;
  const std::vector<std::int64_t> firsts = first_layers(s, plan);
  for (std::int64_t chunk = 0; chunk < plan.virtual_stages; ++chunk) {
    const auto part = static_cast<std::size_t>(plan.part_of(stage, chunk));
    for (std::int64_t layer = firsts[part]; layer < firsts[part + 1]; ++layer)
      out.kind_of.push_back(index_of_kind(out.kinds, layer_kind(s, precision, layer)));
    out.chunk_layers.push_back(firsts[part + 1] - firsts[part]);
    out.layers += out.chunk_layers.back();
  }
  for (AlikeLayers& alike : out.kinds) alike.tensors = layer_tensors(s, plan, packed, alike.kind);
  const bool first = plan.has_first_part(stage), last = plan.has_last_part(stage);
  if (first) out.root = embedding_tensors(s, plan.tensor);
  if (last) {
    const auto add = [&](const ParameterTensors& more) {
      out.root.insert(out.root.end(), more.begin(), more.end());
    };
    if (!first && s.mtp_layers > 0 && !s.tied_embeddings) add(embedding_tensors(s, plan.tensor));
    add(head_tensors(s, plan.tensor, !first));
    add(mtp_tensors(s, plan, precision, packed));
  }
  return out;
}

}  // namespace stepcast::workloads
