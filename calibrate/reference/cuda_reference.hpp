// What the GPU kernels should compute (calibrate/kernels/kernels.hpp), in double on the CPU, a row
// at a time: the whole of a long attention would take too long, samples of its rows do not. Plain
// C++.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast::calibrate::reference {

using Row = std::vector<double>;
using View = std::span<const double>;

/// Largest difference over the largest value wanted; infinite if anything is not finite.
double relative_error(View got, View wanted);

// ---- Attention. Tensors are [batch, sequence, heads or kv_heads, head_dim].

struct Attention {
  std::int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = true;
  double scale = 0.0;
};
struct AttentionTensors {
  View q, k, v, d_o;  // d_o: backward alone
};
struct Place {
  std::int64_t batch = 0, head = 0, token = 0;  // head: of q or, for keys, of k and v
};

struct AttentionOutput {
  Row o;
  double lse = 0.0;  // ln sum exp of the scaled scores
};
AttentionOutput attention_output(const Attention& shape, const AttentionTensors& tensors,
                                 const Place& query);

/// The gradient of one query's row of q.
Row attention_dq(const Attention& shape, const AttentionTensors& tensors, const Place& query);

/// lse and delta = dO . O of every query, [batch, heads, sequence].
struct RowStatistics {
  Row lse, delta;
};
/// Takes batch heads sequence^2 head_dim multiplications. What checks a long sequence may give the
/// GPU's own lse and delta to attention_key_gradients, once they are checked.
RowStatistics attention_statistics(const Attention& shape, const AttentionTensors& tensors);

struct KeyGradients {
  Row dk, dv;
};
/// The gradients of one key's rows, over all query heads that read its kv head.
KeyGradients attention_key_gradients(const Attention& shape, const AttentionTensors& tensors,
                                     const RowStatistics& statistics, const Place& key);

// ---- Norms of one row. dweight and dbias are this row's part: their sum over rows is the
// gradient.

struct NormGradients {
  Row dx, dweight, dbias;
};
Row rmsnorm(View x, View weight, double epsilon);
NormGradients rmsnorm_gradients(View x, View weight, View dy, double epsilon);
Row layernorm(View x, View weight, View bias, double epsilon);
NormGradients layernorm_gradients(View x, View weight, View dy, double epsilon);

// ---- Elements.

double gelu(double x);
double gelu_gradient(double x);
double swiglu(double gate, double up);
struct SwigluGradients {
  double gate = 0.0, up = 0.0;
};
SwigluGradients swiglu_gradients(double gate, double up, double dy);

/// One head of one token, turned by `direction` (1 forward, -1 backward) times its angles.
Row rope(View x, std::int64_t position, double base, double direction);

// ---- Vocabulary, optimizer.

struct CrossEntropy {
  double loss = 0.0;
  Row gradient;  // of the loss, not scaled
};
CrossEntropy cross_entropy(View logits, std::int64_t target);

/// Row `id` of the table's gradient; dy is [tokens, width].
Row embedding_gradient(std::span<const std::int32_t> ids, View dy, std::int64_t width,
                       std::int64_t id);

struct AdamWSettings {
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  std::int64_t step = 1;
};
struct AdamWState {
  double weight = 0, first_moment = 0, second_moment = 0;
};
AdamWState adamw(const AdamWSettings& settings, const AdamWState& before, double gradient);

double sum_of_squares(View x);

}  // namespace stepcast::calibrate::reference
