#include "workloads/memory/memory.hpp"

#include <algorithm>
#include <array>

#include "engine/arithmetic.hpp"
#include "workloads/memory/activation_memory.hpp"
#include "workloads/memory/trainer_memory.hpp"
#include "workloads/plan/pipeline.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/piece.hpp"

namespace stepcast::workloads {
namespace {

/// The moments at which a rank may need most.
enum class Moment : std::uint8_t { loss, backward, optimizer };

/// Everything that the parts are made of.
struct Rank {
  Rank(const StepInputs& inputs, std::int64_t stage_index)
      : in(inputs),
        sizes(inputs),
        stage(stage_index),
        parameters(stage_parameters(in.shape, in.plan, in.software.products.packed, stage)),
        all(parameters.elements()),
        unit(elements_of(parameters.layer)),
        root(elements_of(parameters.root)),
        shard(ceil_div(all, in.plan.shards())),
        schedule{in.plan.schedule, in.plan.pipeline, in.batch.micro_batches,
                 in.plan.virtual_stages},
        low(bytes_per_element(in.precision.compute)),
        wide(bytes_per_element(in.precision.gradient_reduce)) {}

  bool zero3() const { return in.plan.data == DataParallel::zero3; }
  bool sharded() const { return in.sharded(); }
  bool last_stage() const { return stage == in.plan.pipeline - 1; }
  /// Gradients of several micro-batches wait unsharded for one reduction.
  bool accumulates() const {
    return in.batch.micro_batches > 1 && in.plan.reduce == ReduceWhen::last;
  }

  const StepInputs& in;
  Sizes sizes;
  std::int64_t stage;
  StageParameters parameters;
  std::int64_t all, unit, root, shard;  // elements of the stage, a layer, the root, a shard of all
  PipelineShape schedule;
  std::int64_t low, wide;  // bytes of the compute and of the reduce dtype
};

/// Between steps: FSDP an fp32 shard 4P/N; autocast fp32 weights 4P; otherwise 16-bit weights 2P
/// (their fp32 master counts as optimizer state).
std::int64_t parameter_bytes(const Rank& r) {
  if (r.sharded()) return 4 * r.shard;
  return (r.in.software.data.autocast ? 4 : r.low) * r.all;
}

/// What computing needs beyond it. zero2: all of it unsharded from forward to backward, 2P. zero3:
/// the root and two units (the one in use and its gather buffer) plus those gathered ahead. Views
/// (FSDP1) need no buffer beside the unit. autocast: cast weights kept for backward, 2P.
std::int64_t gathered_bytes(const Rank& r, Moment moment) {
  if (moment == Moment::optimizer) return 0;
  if (!r.sharded()) return r.in.software.data.autocast ? r.low * r.all : 0;
  const std::int64_t buffers = r.in.software.data.fsdp1() ? 0 : r.low * r.unit;
  if (!r.zero3()) return r.low * r.all + buffers;
  const std::int64_t units = std::min(r.parameters.layers, 1 + r.in.plan.prefetch);
  return r.low * (r.root + units * r.unit) + buffers;
}

/// FSDP: fp32 shard 4P/N, and in backward the gradients that wait: all of them when micro-batches
/// accumulate (in the reduce dtype), else one unit and the head. Buckets: where gradients live
/// (fp32 for autocast, else the reduce dtype), sharded for zero2 unless they wait as well.
std::int64_t gradient_bytes(const Rank& r, Moment moment) {
  if (!r.sharded()) {
    const bool shards = r.in.plan.data == DataParallel::zero2 && !r.accumulates();
    return bytes_per_element(r.in.gradient_dtype()) * (shards ? r.shard : r.all);
  }
  const std::int64_t shard = 4 * r.shard;
  if (moment == Moment::optimizer) return shard;
  if (r.accumulates()) return shard + r.wide * r.all;
  const std::int64_t head = r.last_stage() ? r.sizes.vocab * r.sizes.hidden : 0;
  return shard + (moment == Moment::backward ? r.low * (r.unit + head) : 0);
}

/// Adam's two moments 8, and an fp32 master 4 where weights are kept in 16 bits; sharded by all but
/// ddp.
std::int64_t optimizer_bytes(const Rank& r, Moment moment) {
  const std::int64_t elements = r.in.plan.data == DataParallel::ddp ? r.all : r.shard;
  const bool master = !r.sharded() && !r.in.software.data.autocast && r.low < 4;
  // foreach AdamW keeps the roots of the second moments of all tensors: 4 more while it runs.
  const bool roots =
      moment == Moment::optimizer && r.in.software.optimizer.kernel == OptimizerKernel::foreach;
  return (8 + (master ? 4 : 0) + (roots ? 4 : 0)) * elements;
}

/// Buffers of collectives: FSDP the reduction's input of one unit (two with FSDP1, whose flat
/// gradient and cast are both alive); torch DDP its buckets beside the gradients; DeepSpeed and
/// Megatron one bucket.
std::int64_t communication_bytes(const Rank& r, Moment moment) {
  if (moment != Moment::backward) return 0;
  if (r.sharded()) return (r.wide + (r.in.software.data.fsdp1() ? r.low : 0)) * r.unit;
  if (r.in.software.data.autocast) return 4 * r.all;
  if (r.in.software.fused()) return 0;  // gradients live in the buckets
  return std::min(r.in.software.data.bucket_bytes, r.wide * r.all);
}

/// K and V of other context ranks. Ring: those in use and those on their way, with their gradients
/// as many again. Gathered: of all ranks, and their gradients. all_to_all: q, k, v, o of the heads.
std::int64_t context_bytes(const Rank& r, Moment moment) {
  const std::int64_t c = r.in.plan.context;
  if (c == 1 || moment != Moment::backward) return 0;
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

/// Activations of all micro-batches in flight, chunk by chunk; with full recompute, of one layer
/// beside them. The embedding's output is kept with the first chunk.
std::int64_t activation_bytes(const Rank& r, Moment moment) {
  if (moment == Moment::optimizer) return 0;
  const ActivationMemory kept(r.in);
  std::vector<std::int64_t> of_chunk;
  for (const std::int64_t layers : r.parameters.chunk_layers) {
    const std::int64_t again = ceil_div(layers, r.in.plan.recompute_every);
    of_chunk.push_back(again * kept.layer() + (layers - again) * kept.layer_without_recompute());
  }
  if (r.stage == 0) of_chunk.front() += r.sizes.local_bytes();
  std::int64_t bytes = peak_in_flight(r.schedule, r.stage, of_chunk);
  if (moment == Moment::backward && r.in.plan.recompute == Recompute::full)
    bytes += kept.layer_without_recompute();
  if (moment == Moment::backward && r.in.plan.recompute == Recompute::selective)
    bytes += kept.scores();
  return bytes;
}

/// GPipe keeps the logits of every micro-batch until its backward, 1F1B has one on the last stage.
/// In the loss's backward the largest number of copies is alive for one of them.
std::int64_t logits_bytes(const Rank& r, Moment moment) {
  if (!r.last_stage() || moment == Moment::optimizer) return 0;
  const ActivationMemory kept(r.in);
  std::vector<std::int64_t> in_last_chunk(r.parameters.chunk_layers.size(), 0);
  in_last_chunk.back() = 1;
  const std::int64_t in_flight = peak_in_flight(r.schedule, r.stage, in_last_chunk);
  if (moment == Moment::loss) return in_flight * kept.head() + kept.loss_work();
  return (in_flight - 1) * kept.head();
}

std::int64_t gib(double v) { return static_cast<std::int64_t>(v * 1073741824.0); }

/// CUDA context 0.4 GiB with lazy loading (pytorch#107667), cuBLAS workspace 32 MiB on Hopper
/// (pytorch PR 120925); each communicator 0.67 GiB, 0.53 with two ranks (nccl#964, A100 NVLink).
std::int64_t fixed_bytes(const Rank& r) {
  const ParallelPlan& p = r.in.plan;
  double communicators = 0.0;
  const auto add = [&](std::int64_t ranks) {
    if (ranks > 1) communicators += ranks > 2 ? 0.67 : 0.53;
  };
  add(p.tensor);
  add(p.copies());
  if (p.shard_replicas() > 1) {
    add(p.shards());
    add(p.shard_replicas());
  }
  add(p.context);
  if (p.ranks() != p.copies() && p.ranks() != p.tensor) add(p.ranks());
  if (p.pipeline > 1) {
    const bool inner = (r.stage > 0 && !r.last_stage()) || p.virtual_stages > 1;
    add(2);
    if (inner) add(2);
  }
  return gib(0.4 + 32.0 / 1024.0 + communicators);
}

/// Our attention's backward sums dQ in fp32, beside one number per row, and has dK and dV of every
/// query head before it sums those of a group (calibrate/kernels/flash.cu).
std::int64_t attention_scratch_bytes(const StepInputs& in) {
  const Sizes sizes(in);
  const std::int64_t per_head = sizes.query == sizes.kv ? 0 : 2 * sizes.element * sizes.query;
  return sizes.tokens * (4 * sizes.query + per_head + 4 * sizes.heads);
}

Memory memory_at(const Rank& r, Moment moment) {
  const ActivationMemory kept(r.in);
  const std::int64_t work = moment == Moment::backward ? kept.layer_work() : 0;
  Memory memory;
  memory.parts = {
      {"parameters", Bytes(parameter_bytes(r))},
      {"gathered parameters", Bytes(gathered_bytes(r, moment))},
      {"gradients", Bytes(gradient_bytes(r, moment))},
      {"optimizer", Bytes(optimizer_bytes(r, moment))},
      {"activations", Bytes(activation_bytes(r, moment))},
      {"logits", Bytes(logits_bytes(r, moment))},
      {"communication", Bytes(communication_bytes(r, moment) + context_bytes(r, moment))},
      {"work", Bytes(work)}};
  // Reserved over allocated: 36.5 / 36.2 GB for ZeRO-2 with static shapes (OpenTau PR 273). More is
  // common, but the allocator gives cached blocks back before it fails.
  const std::int64_t allocated = memory.total().value;
  memory.parts.push_back({"fragmentation", Bytes(allocated / 120)});
  memory.parts.push_back({"fixed", Bytes(fixed_bytes(r))});
  return memory;
}

}  // namespace

Bytes Memory::total() const {
  Bytes sum{};
  for (const MemoryPart& part : parts) sum += part.bytes;
  return sum;
}

Memory memory_of_stage(const TransformerShape& shape, const ParallelPlan& plan, const Batch& batch,
                       const Precision& precision, const Software& software, std::int64_t stage) {
  expects(stage >= 0 && stage < plan.pipeline, "a stage of the pipeline");
  const StepInputs in{shape, plan, batch, precision, software};
  const Rank rank(in, stage);
  if (software.own() && trainer_has(plan)) {
    Memory memory = trainer_memory(in, stage);
    if (software.attention.kernel == AttentionKernel::host) return memory;  // no GPU, no context
    memory.parts.push_back({"fixed", Bytes(fixed_bytes(rank) + attention_scratch_bytes(in))});
    return memory;
  }
  Memory most = memory_at(rank, Moment::backward);
  for (const Moment moment : {Moment::loss, Moment::optimizer}) {
    Memory candidate = memory_at(rank, moment);
    if (candidate.total() > most.total()) most = std::move(candidate);
  }
  return most;
}

Memory peak_memory(const TransformerShape& shape, const ParallelPlan& plan, const Batch& batch,
                   const Precision& precision, const Software& software) {
  Memory most;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    Memory candidate = memory_of_stage(shape, plan, batch, precision, software, stage);
    if (candidate.total() > most.total()) most = std::move(candidate);
  }
  return most;
}

}  // namespace stepcast::workloads
