#include "workloads/memory/rank.hpp"

#include <algorithm>

#include "workloads/plan/low_precision.hpp"
#include "workloads/step/weight_casts.hpp"

namespace stepcast::workloads {
namespace {

/// bf16 with fp32 sums goes through bf16_optimizer.py (at 0acdb021, read 2026-11), the rest through
/// stage_1_and_2.py (at 02aa38c3, read 2026-11).
bool sums_in_fp32(const MemoryRank& r) {
  const bool partitioned = r.in.plan.data == DataParallel::zero2;
  return r.deepspeed() && !partitioned && r.in.precision.compute == Dtype::bf16 &&
         r.in.precision.gradient_reduce == Dtype::fp32;
}

}  // namespace

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

std::int64_t resident_gradients(const MemoryRank& r) {
  const bool shards = r.in.plan.data == DataParallel::zero2 && !r.accumulates();
  const std::int64_t elements = shards ? r.shard : r.all;
  if (sums_in_fp32(r)) return 4 * elements;
  return (r.deepspeed() ? r.low : bytes_per_element(r.in.gradient_dtype())) * elements;
}

/// fp32 sums are whole, and a backward's 16-bit gradients lie beside them until they are added.
std::int64_t backward_gradients(const MemoryRank& r) { return sums_in_fp32(r) ? r.low * r.all : 0; }

/// The shard's gradients are widened at once (single_grad_partition).
std::int64_t update_gradients(const MemoryRank& r) {
  const bool widens = r.deepspeed() && !sums_in_fp32(r) && r.in.plan.data != DataParallel::ddp;
  return widens ? 4 * r.shard : 0;
}

std::int64_t bucket_bytes(const MemoryRank& r) {
  if (r.in.software.fused()) return 0;
  if (r.in.software.data.autocast) return 4 * r.all;
  if (r.in.software.data.reducer_buckets) return r.in.plan.copies() > 1 ? r.low * r.all : 0;
  return std::min(r.in.software.data.bucket_bytes, r.wide * r.all);
}

}  // namespace stepcast::workloads
