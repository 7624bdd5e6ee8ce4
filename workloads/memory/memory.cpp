#include "workloads/memory/memory.hpp"

#include <algorithm>
#include <string>

#include "engine/arithmetic.hpp"
#include "workloads/memory/fixed_memory.hpp"
#include "workloads/memory/optimizer_states.hpp"
#include "workloads/memory/rank.hpp"
#include "workloads/memory/step_allocations.hpp"
#include "workloads/memory/trainer_memory.hpp"

namespace stepcast::workloads {
namespace {

/// Our attention's backward sums dQ in fp32, beside one number per row, and has dK and dV of every
/// query head before it sums those of a group (calibrate/kernels/flash.cu).
std::int64_t attention_scratch_bytes(const StepInputs& in) {
  const Sizes sizes(in);
  const std::int64_t per_head = sizes.query == sizes.kv ? 0 : 2 * sizes.element * sizes.query;
  return sizes.tokens * (4 * sizes.query + per_head + 4 * sizes.heads);
}

/// Between steps: FSDP an fp32 shard 4P/N; autocast fp32 weights 4P; otherwise 16-bit weights 2P
/// (their fp32 master counts as optimizer state), and copies in a recipe's type.
std::int64_t parameter_bytes(const MemoryRank& r) {
  if (r.sharded()) return shard_bytes(r) * r.shard;
  return r.in.software.data.autocast ? 4 * r.all : resident_weights(r);
}

/// Of `share` of a stage's trained parameters: what the optimizer keeps, and an fp32 master 4 where
/// weights are kept in 16 bits.
std::int64_t state_bytes(const MemoryRank& r, std::int64_t share) {
  const bool master =
      !r.sharded() && !r.in.software.data.autocast && r.low < 4 && r.in.precision.masters;
  const std::int64_t kept = kept_states(r), whole = kept / std::max<std::int64_t>(1, r.all);
  // Whole bytes of a parameter, and what is over: a product of both would not fit.
  const double over = static_cast<double>(kept - whole * r.all) / static_cast<double>(r.all);
  return (whole + (master ? master_bytes(r) : 0)) * share +
         static_cast<std::int64_t>(over * static_cast<double>(share));
}

/// Weights of all trained parameters between steps, and their states, over the ranks that hold a
/// copy.
std::int64_t checkpoint_bytes(const MemoryRank& r) {
  const std::int64_t share = ceil_div(r.all - r.experts, r.in.plan.copies()) +
                             (r.experts > 0 ? ceil_div(r.experts, r.in.plan.expert_copies()) : 0);
  const std::int64_t states = state_bytes(r, share);
  if (r.sharded()) return shard_bytes(r) * share + states;
  if (adapted(r.in.shape))  // frozen weights are elsewhere
    return (r.in.software.data.autocast ? 4 : r.low) * share + states;
  const double weight = static_cast<double>(parameter_bytes(r)) / static_cast<double>(r.all);
  return static_cast<std::int64_t>(weight * static_cast<double>(share)) + states;
}

}  // namespace

Bytes Memory::total() const {
  Bytes sum{};
  for (const MemoryPart& part : parts) sum += part.bytes;
  return sum;
}

Bytes Memory::of(std::string_view name) const {
  const auto found = std::ranges::find(parts, name, &MemoryPart::name);
  return found == parts.end() ? Bytes{} : found->bytes;
}

Bytes& Memory::part(std::string_view name) {
  const auto found = std::ranges::find(parts, name, &MemoryPart::name);
  if (found != parts.end()) return found->bytes;
  return parts.emplace_back(MemoryPart{std::string(name), {}}).bytes;
}

Memory memory_of_stage(const TransformerShape& shape, const ParallelPlan& plan, const Batch& batch,
                       const Precision& precision, const Software& software, std::int64_t stage,
                       std::int64_t channels) {
  expects(stage >= 0 && stage < plan.pipeline, "a stage of the pipeline");
  const StepInputs in{shape, plan, batch, precision, software};
  const bool own = software.own() && trainer_has(plan);
  const bool host = software.attention.kernel == AttentionKernel::host;  // no GPU, no context
  Memory memory;
  if (own) {
    memory = trainer_memory(in, stage);
    if (!host) memory.part("scratch") = Bytes(attention_scratch_bytes(in));
  } else {
    const KindBytes fullest = fullest_moment(MemoryRank(in, stage));
    for (std::size_t kind = 0; kind < fullest.size(); ++kind)
      memory.parts.push_back({std::string(tensor_kind_names[kind]), Bytes(fullest[kind])});
  }
  if (!host) memory.parts.push_back({"fixed", Bytes(fixed_memory(in, stage, channels).total())});
  return memory;
}

CheckpointSize checkpoint_size(const TransformerShape& shape, const ParallelPlan& plan,
                               const Batch& batch, const Precision& precision,
                               const Software& software) {
  const StepInputs in{shape, plan, batch, precision, software};
  CheckpointSize size;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    const Bytes rank(checkpoint_bytes(MemoryRank(in, stage)));
    size.rank = std::max(size.rank, rank);
    size.total += rank * (plan.tensor * plan.copies());
  }
  return size;
}

}  // namespace stepcast::workloads
