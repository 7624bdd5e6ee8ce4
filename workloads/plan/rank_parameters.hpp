// The parameter tensors that one rank holds before data-parallel sharding: cut by the tensor degree
// where Megatron and DTensor cut them, whole where they replicate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/plan/plan.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

struct ParameterTensor {
  std::string name;  // "attention.q", "mlp.down.bias", "norm1"
  std::int64_t elements = 0;
  bool matmul = false;                // its gradient comes out of a GEMM
  bool replicated = false;            // whole on every tensor rank
  bool expert = false;                // of experts: its copies are the plan's expert_copies()
  bool frozen = false;                // has no gradient and no optimizer states
  LoraBase base = LoraBase::compute;  // that a frozen one is kept in
  std::int64_t rows = 0;              // of a matrix, or of each of several; 0: a vector
  std::int64_t matrices = 1;          // of experts: in one tensor

  bool matrix() const { return rows > 0; }
  std::int64_t columns() const { return elements / (rows * matrices); }
  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

using ParameterTensors = std::vector<ParameterTensor>;

/// The weight of a product, of so many rows; `replicated`: whole on every tensor rank.
void add_weight(ParameterTensors&, const std::string& name, std::int64_t rows, std::int64_t columns,
                bool replicated);

/// What a tensor rank has of a layer's width: the heads, the MLP's and the vocabulary.
struct RankWidths {
  RankWidths(const TransformerShape&, std::int64_t tensor);

  std::int64_t heads;
  std::int64_t kv_heads;   // with more ranks than kv heads each rank keeps one (a copy)
  std::int64_t query;      // q heads x head_dim
  std::int64_t kv;         // kv heads x head_dim
  std::int64_t kv_values;  // kv heads x the width of their values, as a product makes them
  std::int64_t gate;       // of attention's output: columns beside the query's
  std::int64_t value;      // q heads x the width of their values: what the last product reads
  std::int64_t ffn;        // f / t
  std::int64_t vocab;      // V / t
};

/// In what the layers of one model may differ.
struct LayerKind : LayerForm {
  bool plain = false;  // the precision's recipe leaves its products alone
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};
LayerKind layer_kind(const TransformerShape&, const Precision&, std::int64_t layer);
/// Of the layer in a module for further tokens.
LayerKind mtp_kind(const TransformerShape&, const Precision&);
/// Those that a model has, in the order in which they come.
std::vector<LayerKind> layer_kinds(const TransformerShape&, const Precision&);

ParameterTensors layer_tensors(const TransformerShape&, const ParallelPlan&, bool packed,
                               LayerKind kind = {});
ParameterTensors embedding_tensors(const TransformerShape&, std::int64_t tensor);
/// Final norm and head; with tied embeddings the head is the embedding's weight, and on a last
/// stage that is not the first one a copy of it.
ParameterTensors head_tensors(const TransformerShape&, std::int64_t tensor, bool own_copy);

/// Router, experts and shared experts of a layer that has them.
void add_expert_tensors(ParameterTensors&, const TransformerShape&, const ParallelPlan&,
                        bool packed);
/// Of the module that predicts a further token: its layer's, and its own; none without.
ParameterTensors mtp_tensors(const TransformerShape&, const ParallelPlan&, const Precision&,
                             bool packed);
/// Whether the last of several stages holds the embedding too, tied to the head or for MTP.
inline bool embedding_on_both_ends(const TransformerShape& s, const ParallelPlan& plan) {
  return plan.pipeline > 1 && (s.tied_embeddings || s.mtp_layers > 0);
}

std::int64_t elements_of(const ParameterTensors&);
/// Without those that are frozen.
ParameterTensors trained_of(const ParameterTensors&);
std::int64_t trained_elements_of(const ParameterTensors&);
/// Of so many elements of a tensor that trained ones keep in `element` bytes each.
std::int64_t kept_bytes(const ParameterTensor&, std::int64_t elements, std::int64_t element);
/// Of whole tensors.
std::int64_t kept_bytes(const ParameterTensors&, std::int64_t element);
std::int64_t expert_elements_of(const ParameterTensors&);
/// Of a rank where each copy has a shard: of the plan's shards, of experts' copies.
std::int64_t shard_elements_of(const ParameterTensors&, const ParallelPlan&);
std::int64_t replicated_elements_of(const ParameterTensors&);

/// Layers of a stage that are alike.
struct AlikeLayers {
  LayerKind kind;
  ParameterTensors tensors;  // of each
  std::int64_t count = 0;
};

/// The same layers with their experts' tensors alone, or with the others.
AlikeLayers part_of(const AlikeLayers&, bool experts);

/// What a pipeline stage holds.
struct StageParameters {
  std::int64_t layers = 0;                 // of all its chunks
  std::vector<std::int64_t> chunk_layers;  // of each model chunk
  std::vector<AlikeLayers> kinds;          // of layers
  std::vector<std::uint8_t> kind_of;       // of each layer, chunk by chunk: index of `kinds`
  ParameterTensors root;  // embedding on the first stage, final norm and head on the last
  const ParameterTensors& layer(std::size_t i) const { return kinds.at(kind_of.at(i)).tensors; }
  /// Of the largest layer; 0: there is none.
  std::int64_t layer_elements() const;
  std::int64_t elements() const;
  std::int64_t tensors() const;
  /// Sum of `f(tensors)` over all layers.
  template <class F>
  std::int64_t over_layers(F&& f) const {
    std::int64_t sum = 0;
    for (const AlikeLayers& alike : kinds) sum += alike.count * f(alike.tensors);
    return sum;
  }
};

/// The same stage with its trained tensors alone.
StageParameters trained_of(const StageParameters&);

StageParameters stage_parameters(const TransformerShape&, const ParallelPlan&, const Precision&,
                                 bool packed, std::int64_t stage);

}  // namespace stepcast::workloads
