#include "workloads/memory/rank.hpp"

#include <algorithm>

#include "workloads/plan/low_precision.hpp"
#include "workloads/step/weight_casts.hpp"

namespace stepcast::workloads {
bool sums_in_fp32(const MemoryRank& r) {
  const bool partitioned = r.in.plan.data == DataParallel::zero2;
  return r.deepspeed() && !partitioned && r.in.precision.compute == Dtype::bf16 &&
         r.in.precision.gradient_reduce == Dtype::fp32;
}

PipelineShape told_shape(const MemoryRank& r) {
  PipelineShape s = r.schedule;
  if (s.schedule == Schedule::one_f_one_b && s.micro_batches % s.stages == 0)
    s.micro_batches = std::min(s.micro_batches, 2 * s.stages);
  else if (s.schedule == Schedule::one_f_one_b && s.chunks == 1)
    s.micro_batches = std::min(s.micro_batches, s.stages + 2);
  return s;
}

std::int64_t gathered_weights(const MemoryRank& r) {
  std::int64_t bytes = r.low * r.root;
  for (const AlikeLayers& alike : r.parameters.kinds)
    bytes += alike.count * gathered_bytes_of(r.in.precision, alike);
  return bytes;
}

std::int64_t gathered_layer(const MemoryRank& r) {
  std::int64_t most = 0;
  for (const AlikeLayers& alike : r.parameters.kinds)
    most = std::max(most, gathered_bytes_of(r.in.precision, alike));
  return most;
}

std::int64_t resident_weights(const MemoryRank& r, const AlikeLayers& alike) {
  if (keeps_weight_copies(r.in)) return kept_weight_bytes(r.in.precision, alike);
  return r.low * elements_of(alike.tensors);
}

std::int64_t resident_weights(const MemoryRank& r) {
  std::int64_t bytes = r.low * r.root;
  for (const AlikeLayers& alike : r.parameters.kinds)
    bytes += alike.count * resident_weights(r, alike);
  return bytes;
}

/// stage_1_and_2.py at 0.14.4 (read 2026-11): a shard in 16 bits (grads_in_partition), and the sums
/// of earlier micro-batches beside it (averaged_gradients).
std::int64_t resident_gradients(const MemoryRank& r) {
  if (sums_in_fp32(r)) return 4 * r.all;
  const std::int64_t elements = r.partitions() ? r.shard : r.all;
  if (!r.deepspeed()) return bytes_per_element(r.in.gradient_dtype()) * elements;
  const bool sums = r.partitions() && r.in.batch.micro_batches > 1;
  return (sums ? 2 : 1) * r.low * elements;
}

/// step() of stage_1_and_2.py: the shard's gradients are made flat and widened at once.
std::int64_t update_gradients(const MemoryRank& r) {
  const bool widens = r.deepspeed() && !sums_in_fp32(r) && r.in.plan.data != DataParallel::ddp;
  return widens ? (r.low + 4) * (r.shard - offloaded_states(r, r.shard)) : 0;
}

std::int64_t bucket_bytes(const MemoryRank& r) {
  if (r.in.software.fused()) return 0;
  if (r.in.software.data.autocast) return 4 * r.all;
  if (r.in.software.data.reducer_buckets) return r.in.plan.copies() > 1 ? r.low * r.all : 0;
  return std::min(r.in.software.data.bucket_bytes, r.wide * r.all);
}

std::int64_t reduced_together(const MemoryRank& r, const ParameterTensors& layer) {
  const std::int64_t all = elements_of(layer);
  if (!r.splits_root()) return all;
  std::int64_t most = std::min(all, r.in.software.data.bucket_bytes / r.low);
  for (const ParameterTensor& p : layer) most = std::max(most, p.elements);
  return most;
}

std::int64_t context_bytes(const MemoryRank& r) {
  const std::int64_t c = r.in.plan.context;
  if (c == 1) return 0;
  const std::int64_t row = r.sizes.element * r.sizes.tokens;
  switch (r.in.software.attention.exchange) {
    case ContextExchange::ring:
      return 8 * row * r.sizes.kv;
    case ContextExchange::all_gather:
      return 4 * c * row * r.sizes.kv;
    case ContextExchange::all_to_all:
      return row * (2 * r.sizes.query + 2 * r.sizes.kv);
  }
  throw BrokenPromise("unknown exchange");
}

}  // namespace stepcast::workloads
