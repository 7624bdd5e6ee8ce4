// The tensors of one layer, which all layers of its kind have alike.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "workloads/pieces/activation_memory.hpp"

namespace stepcast::workloads {

/// Bytes of tensors that are made together.
struct TensorSizes {
  TensorSizes() = default;
  explicit TensorSizes(std::vector<std::int64_t> bytes)
      : each(std::move(bytes)), sum(std::accumulate(each.begin(), each.end(), std::int64_t{0})) {}

  std::vector<std::int64_t> each;
  std::int64_t sum = 0;
};

/// Of trained parameters, `element` bytes each.
inline TensorSizes gradient_sizes(const ParameterTensors& parameters, std::int64_t element) {
  std::vector<std::int64_t> bytes;
  for (const ParameterTensor& p : parameters)
    if (!p.frozen) bytes.push_back(element * p.elements);
  return TensorSizes(std::move(bytes));
}

struct LayerTensors {
  /// `element`: bytes of a gradient as backward makes it.
  LayerTensors(const StepInputs& in, LayerKind kind, std::int64_t element,
               const ParameterTensors& parameters)
      : memory(in, kind),
        attention(in.operators_again() ? memory.operator_tensors() : memory.attention_tensors()),
        mlp(in.operators_again() ? std::vector<std::int64_t>{} : memory.mlp_tensors()),
        attention_alone(memory.attention_alone_tensors()),
        mlp_alone(memory.mlp_alone_tensors()),
        again(in.operators_again() ? memory.tensors_again() : std::vector<std::int64_t>{}),
        forward_work(memory.forward_work_tensors()),
        mlp_work(memory.work_tensors()),
        attention_work(memory.attention_work_tensors()),
        gradients(gradient_sizes(parameters, element)),
        scores(memory.scores()),
        output_gradients(memory.output_gradients()) {
    if (gradients.each.empty()) return;
    last_gradient = TensorSizes({gradients.each.back()});
    gradients.each.pop_back();
    gradients.sum -= last_gradient.sum;
  }

  /// Backward is fullest in attention's half, when what the other has kept is gone: that is seldom.
  bool fullest_in_attention() const { return attention_work.sum > mlp_work.sum + mlp.sum; }

  ActivationMemory memory;
  TensorSizes attention, mlp;  // what is kept, by halves; by operators all of it in the first
  TensorSizes attention_alone, mlp_alone;  // of a forward that keeps none of them
  TensorSizes again, forward_work, mlp_work, attention_work;
  TensorSizes last_gradient{}, gradients;  // of the last product's weights; of all others
  std::int64_t scores, output_gradients;
};

}  // namespace stepcast::workloads
