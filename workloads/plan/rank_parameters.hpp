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
  bool matmul = false;      // its gradient comes out of a GEMM
  bool replicated = false;  // whole on every tensor rank
  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

using ParameterTensors = std::vector<ParameterTensor>;

/// What a tensor rank has of a layer's width: the heads, the MLP's and the vocabulary.
struct RankWidths {
  RankWidths(const TransformerShape&, std::int64_t tensor);

  std::int64_t heads;
  std::int64_t kv_heads;  // with more ranks than kv heads each rank keeps one (a copy)
  std::int64_t query;     // q heads x head_dim
  std::int64_t kv;        // kv heads x head_dim
  std::int64_t ffn;       // f / t
  std::int64_t vocab;     // V / t
};

ParameterTensors layer_tensors(const TransformerShape&, std::int64_t tensor, bool packed);
ParameterTensors embedding_tensors(const TransformerShape&, std::int64_t tensor);
/// Final norm and head; with tied embeddings the head is the embedding's weight, and on a last
/// stage that is not the first one a copy of it.
ParameterTensors head_tensors(const TransformerShape&, std::int64_t tensor, bool own_copy);

std::int64_t elements_of(const ParameterTensors&);
std::int64_t replicated_elements_of(const ParameterTensors&);

/// What a pipeline stage holds.
struct StageParameters {
  std::int64_t layers = 0;                 // of all its chunks
  std::vector<std::int64_t> chunk_layers;  // of each model chunk
  ParameterTensors layer;                  // of each layer
  ParameterTensors root;  // embedding on the first stage, final norm and head on the last
  std::int64_t elements() const { return layers * elements_of(layer) + elements_of(root); }
  std::int64_t tensors() const;
};

StageParameters stage_parameters(const TransformerShape&, const ParallelPlan&, bool packed,
                                 std::int64_t stage);

}  // namespace stepcast::workloads
