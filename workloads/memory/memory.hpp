// Bytes of GPU memory per rank, part by part, at the fullest moment of a step. Formulas from
// Korthikanti 2022 (arXiv 2205.05198) and the tensors that autograd keeps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/units.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

struct MemoryPart {
  std::string name;  // "parameters", "gradients", "optimizer", "activations", "logits", ...
  Bytes bytes{};
};

struct Memory {
  std::vector<MemoryPart> parts;
  Bytes total() const;
  Bytes of(std::string_view part) const;  // 0 where there is none
  Bytes& part(std::string_view name);     // made where there is none
};

/// What a rank of pipeline stage `stage` cannot do without: the tensors of a step that are alive at
/// its fullest moment, and, as "fixed", CUDA's context, NCCL's buffers and cuBLAS' workspace.
/// `channels`: that NCCL opens in a communicator.
Memory memory_of_stage(const TransformerShape&, const ParallelPlan&, const Batch&, const Precision&,
                       const Software&, std::int64_t stage, std::int64_t channels = 24);

/// What a checkpoint holds, each parameter and its optimizer states once: copies share the writing.
struct CheckpointSize {
  Bytes rank{};  // that the fullest rank writes
  Bytes total{};
};
CheckpointSize checkpoint_size(const TransformerShape&, const ParallelPlan&, const Batch&,
                               const Precision&, const Software&);

}  // namespace stepcast::workloads
