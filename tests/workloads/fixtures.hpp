// Models, plans and software that the tests of workloads share.
#pragma once

#include "workloads/step/step_program.hpp"

namespace stepcast::workloads::test {

inline TransformerShape llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                              std::int64_t kv_heads, std::int64_t ffn) {
  TransformerShape s;
  s.layers = layers;
  s.hidden = hidden;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.head_dim = hidden / heads;
  s.ffn_hidden = ffn;
  s.vocab = 32000;
  return s;
}
inline TransformerShape llama_1b() { return llama(22, 2048, 32, 4, 5632); }
inline TransformerShape llama_7b() { return llama(32, 4096, 32, 32, 11008); }
inline TransformerShape llama_13b() { return llama(40, 5120, 40, 40, 13824); }
inline TransformerShape llama_70b() { return llama(80, 8192, 64, 8, 28672); }

inline TransformerShape gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                            std::int64_t positions) {
  TransformerShape s = llama(layers, hidden, heads, heads, 4 * hidden);
  s.vocab = 50257;
  s.norm = Norm::layernorm;
  s.activation = Activation::gelu;
  s.biases = true;
  s.rope = false;
  s.max_positions = positions;
  s.tied_embeddings = true;
  return s;
}

inline TransformerShape bert_large() {
  TransformerShape s = gpt(24, 1024, 16, 512);
  s.vocab = 30522;
  s.objective = Objective::masked;
  s.dropout = true;
  return s;
}

inline Software eager() { return {}; }
inline Software compiled() {
  Software s;
  s.fusion = Fusion::compiled;
  return s;
}
inline Software fused() {
  Software s;
  s.framework = "megatron-core";
  s.fusion = Fusion::fused;
  s.products.packed = true;
  s.optimizer.kernel = OptimizerKernel::fused;
  s.data.flat_parameters = FlatParameters::buckets;
  return s;
}

}  // namespace stepcast::workloads::test
