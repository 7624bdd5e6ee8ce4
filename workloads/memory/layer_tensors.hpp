// The tensors of one layer, which all layers of its kind have alike.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/pieces/activation_memory.hpp"

namespace stepcast::workloads {

struct LayerTensors {
  LayerTensors(const StepInputs& in, LayerKind kind)
      : memory(in, kind),
        kept(memory.layer_tensors()),
        forward_work(memory.forward_work_tensors()),
        backward_work(memory.work_tensors()),
        scores(memory.scores()),
        output_gradients(memory.output_gradients()) {}

  ActivationMemory memory;
  std::vector<std::int64_t> kept, forward_work, backward_work;  // bytes of each
  std::int64_t scores, output_gradients;
};

}  // namespace stepcast::workloads
