#include "workloads/memory/fixed_memory.hpp"

namespace stepcast::workloads {
namespace {

/// A communicator of the stage's rank with `ranks` members: 688 MiB with more than two, 544 with
/// two, on 4 A100 over NVLink (nccl#964, 2023-08), which have 24 channels; in proportion to the
/// channels (nccl#986, 2023-09).
double communicator_gib(std::int64_t ranks, std::int64_t channels) {
  if (ranks <= 1) return 0.0;
  return (ranks > 2 ? 0.67 : 0.53) * static_cast<double>(channels) / 24.0;
}

/// Of its data, tensor and context groups, of all ranks, and of each neighbour in the pipeline.
double communicators_gib(const StepInputs& in, std::int64_t stage, std::int64_t channels) {
  const ParallelPlan& p = in.plan;
  double sum = 0.0;
  const auto add = [&](std::int64_t ranks) { sum += communicator_gib(ranks, channels); };
  add(p.tensor);
  add(p.copies());
  if (p.shard_replicas() > 1) {
    add(p.shards());
    add(p.shard_replicas());
  }
  add(p.context);
  if (in.shape.experts.count > 0) {
    add(p.expert.degree);
    add(p.expert_tensor());
    add(p.expert_copies());
  }
  if (p.ranks() != p.copies() && p.ranks() != p.tensor) add(p.ranks());
  if (p.pipeline > 1) {
    const bool ends = stage == 0 || stage == p.pipeline - 1;
    add(2);
    const bool wraps = p.virtual_stages > 1 && p.placement() == Placement::looped;
    if (!ends || wraps) add(2);
    if (p.placement() == Placement::mirrored) add(2);
  }
  return sum;
}

/// With lazy loading 0.4 GiB (pytorch#109888, 2023-09); before CUDA 11.7 all kernels of a framework
/// were loaded at once, more than 1,000 MB (pytorch#107667, 2023-08).
double context_gib(bool lazy) { return lazy ? 0.4 : 1e9 / 1073741824.0; }

}  // namespace

std::int64_t FixedMemory::total() const {
  return static_cast<std::int64_t>((context_gib + workspace_gib + nccl_gib) * 1073741824.0);
}

FixedMemory fixed_memory(const StepInputs& in, std::int64_t stage, std::int64_t channels) {
  constexpr double cublas_gib = 32.0 / 1024.0;  // on Hopper (pytorch PR 120925)
  return {context_gib(in.software.memory.lazy_modules), communicators_gib(in, stage, channels),
          cublas_gib};
}

}  // namespace stepcast::workloads
