// Memory of a process that no tensor has: CUDA's context, the buffers of NCCL's communicators, the
// workspace of cuBLAS.
#pragma once

#include <cstdint>

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

struct FixedMemory {
  double context_gib = 0, nccl_gib = 0, workspace_gib = 0;
  std::int64_t total() const;
};

/// `channels`: that NCCL opens in a communicator.
FixedMemory fixed_memory(const StepInputs&, std::int64_t stage, std::int64_t channels = 24);

}  // namespace stepcast::workloads
