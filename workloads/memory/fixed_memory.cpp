#include "workloads/memory/fixed_memory.hpp"

#include <algorithm>

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

/// Buffers of the exchange between experts, outside of torch's allocator. DeepEP, 10 channels of 20
/// SMs: rows that a peer of the node may have under way, and of each node (csrc/config.hpp,
/// deep_ep/buffer.py at v1.2.1, by number of ranks). HybridEP: room for all tokens at one rank
/// (csrc/hybrid_ep/buffer/intranode.cu at 94a9f8f), here with all ranks in one NVLink domain.
double exchange_gib(const StepInputs& in) {
  constexpr std::int64_t channels = 10, node = 8, sent_ahead = 128, of_row = 2056,
                         of_far_row = 2072;
  const std::int64_t ranks = in.plan.expert.degree;
  if (in.shape.experts.count == 0 || ranks <= 1) return 0.0;
  const std::int64_t row = 2 * in.shape.hidden;
  std::int64_t bytes = 0;
  if (in.plan.expert.dispatcher == Dispatcher::node_aware) {
    const std::int64_t received = ranks <= 8 ? 256 : ranks <= 64 ? 288 : ranks <= 128 ? 560 : 720;
    bytes = channels * std::min(ranks, node) * received * (row + of_row);
    if (ranks > node) bytes += 2 * channels * (ranks / node) * sent_ahead * (row + of_far_row);
  }
  if (in.plan.expert.dispatcher == Dispatcher::nvlink_domain)
    bytes = Sizes(in).local_tokens * ranks * (row + 4 * in.shape.experts.count);
  return static_cast<double>(bytes) / 1073741824.0;
}

/// With lazy loading 0.4 GiB (pytorch#109888, 2023-09); before CUDA 11.7 all kernels of a framework
/// were loaded at once, more than 1,000 MB (pytorch#107667, 2023-08).
double context_gib(bool lazy) { return lazy ? 0.4 : 1e9 / 1073741824.0; }

/// Of cuBLAS for torch's products, 32 MiB on Hopper (pytorch PR 120925). Transformer Engine has one
/// as large of its own, four more for grouped products, three more for user buffers: 32 MiB, 128
/// more with experts, 96 more with user buffers (cpp_extensions/gemm.py at v2.16 and v2.18, read
/// 2026-11; at v2.2 user buffers have three in all, pytorch/module/base.py). Before Hopper its are
/// of 4 MiB, which is not told apart. Its own serves its products in 16 bits too. Without experts,
/// user buffers and low precision it is left out: fused kernels alone do not tell Transformer
/// Engine from Megatron-LM of 2020 or llm.c.
double workspaces_gib(const StepInputs& in) {
  constexpr double one = 32.0 / 1024.0;
  if (!in.software.fused()) return one;
  const bool experts = in.shape.experts.count > 0,
             buffers = in.plan.tensor_overlap == TensorOverlap::userbuffers,
             own = experts || buffers || in.precision.recipe != Recipe::none;
  return one * (1 + (own ? 1 : 0) + (experts ? 4 : 0) + (buffers ? 3 : 0));
}

}  // namespace

std::int64_t FixedMemory::total() const {
  return static_cast<std::int64_t>((context_gib + workspace_gib + nccl_gib) * 1073741824.0);
}

FixedMemory fixed_memory(const StepInputs& in, std::int64_t stage, std::int64_t channels) {
  return {context_gib(in.software.memory.lazy_modules),
          communicators_gib(in, stage, channels) + exchange_gib(in), workspaces_gib(in)};
}

}  // namespace stepcast::workloads
