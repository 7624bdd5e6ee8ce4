// Bytes of GPU memory per rank, part by part, at the peak of the schedule. Formulas from
// Korthikanti 2022 (arXiv 2205.05198) and the tensors that autograd keeps.
#pragma once

#include <cstdint>
#include <string>
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
};

/// Memory of a rank of pipeline stage `stage`; `fixed` is context, NCCL buffers and workspace.
Memory memory_of_stage(const TransformerShape&, const ParallelPlan&, const Batch&, const Precision&,
                       const Software&, std::int64_t stage);

/// The stage that needs most, and its memory.
std::int64_t fullest_stage(const TransformerShape&, const ParallelPlan&, const Batch&,
                           const Precision&, const Software&);
Memory peak_memory(const TransformerShape&, const ParallelPlan&, const Batch&, const Precision&,
                   const Software&);

/// What a checkpoint holds, each parameter and its optimizer states once: copies share the writing.
struct CheckpointSize {
  Bytes rank{};  // that the fullest rank writes
  Bytes total{};
};
CheckpointSize checkpoint_size(const TransformerShape&, const ParallelPlan&, const Batch&,
                               const Precision&, const Software&);

}  // namespace stepcast::workloads
