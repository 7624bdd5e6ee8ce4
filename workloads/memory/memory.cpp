#include "workloads/memory/memory.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "engine/arithmetic.hpp"
#include "workloads/memory/fixed_memory.hpp"
#include "workloads/memory/rank.hpp"
#include "workloads/memory/trainer_memory.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/plan/pipeline.hpp"

namespace stepcast::workloads {
namespace {

/// The moments at which a rank may need most.
enum class Moment : std::uint8_t { loss, backward, optimizer };

constexpr std::array<const char*, 10> part_names{
    "parameters", "gathered parameters", "gradients", "optimizer",     "activations",
    "logits",     "communication",       "work",      "fragmentation", "fixed"};
using PartBytes = std::array<std::int64_t, part_names.size()>;

std::int64_t total(const PartBytes& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

/// Between steps: FSDP an fp32 shard 4P/N; autocast fp32 weights 4P; otherwise 16-bit weights 2P
/// (their fp32 master counts as optimizer state), and copies in a recipe's type.
std::int64_t parameter_bytes(const MemoryRank& r) {
  if (r.sharded()) return 4 * r.shard;
  return r.in.software.data.autocast ? 4 * r.all : resident_weights(r);
}

/// What computing needs beyond it. zero2: all of it unsharded from forward to backward, 2P. zero3:
/// the root and two units (the one in use and its gather buffer) plus those gathered ahead. Views
/// (FSDP1) need no buffer beside the unit. autocast: cast weights kept for backward, 2P.
std::int64_t gathered_bytes(const MemoryRank& r, Moment moment) {
  if (moment == Moment::optimizer) return 0;
  if (!r.sharded()) return r.in.software.data.autocast ? r.low * r.all : 0;
  const std::int64_t layer = gathered_layer(r);
  const std::int64_t buffers = r.in.software.data.fsdp1() ? 0 : layer;
  if (!r.zero3()) return gathered_weights(r) + buffers;
  const std::int64_t units = std::min(r.parameters.layers, 1 + r.in.plan.prefetch);
  return r.low * r.root + units * layer + buffers;
}

/// FSDP: fp32 shard 4P/N, and in backward the gradients that wait: all of them when micro-batches
/// accumulate (in the reduce dtype), else one unit and the head. Buckets: where gradients live
/// (fp32 for autocast, else the reduce dtype), sharded for zero2 unless they wait as well.
std::int64_t gradient_bytes(const MemoryRank& r, Moment moment) {
  if (!r.sharded()) {
    return resident_gradients(r) +
           (moment == Moment::optimizer ? update_gradients(r) : backward_gradients(r));
  }
  const std::int64_t shard = 4 * r.shard;
  if (moment == Moment::optimizer) return shard;
  if (r.accumulates()) return shard + r.wide * r.all;
  const std::int64_t head = r.last_stage() ? r.sizes.vocab * r.sizes.hidden : 0;
  return shard + (moment == Moment::backward ? r.low * (r.unit + head) : 0);
}

/// Of a parameter: Adam's two moments 8 (4 in bf16), and an fp32 master 4 where weights are kept in
/// 16 bits.
std::int64_t state_bytes(const MemoryRank& r) {
  const bool master = !r.sharded() && !r.in.software.data.autocast && r.low < 4;
  return 2 * moment_bytes(r) + (master ? 4 : 0);
}

/// Sharded by all but ddp.
std::int64_t optimizer_bytes(const MemoryRank& r, Moment moment) {
  const std::int64_t elements = r.in.plan.data == DataParallel::ddp ? r.all : r.shard;
  // foreach AdamW keeps the roots of the second moments of all tensors: 4 more while it runs.
  const bool roots =
      moment == Moment::optimizer && r.in.software.optimizer.kernel == OptimizerKernel::foreach;
  return (state_bytes(r) + (roots ? 4 : 0)) * (elements - offloaded_states(r, elements));
}

/// Buffers of collectives: FSDP the reduction's input of one unit (two with FSDP1, whose flat
/// gradient and cast are both alive); torch DDP its buckets beside the gradients; DeepSpeed and
/// Megatron one bucket.
std::int64_t communication_bytes(const MemoryRank& r, Moment moment) {
  if (moment != Moment::backward) return 0;
  if (r.sharded()) return (r.wide + (r.in.software.data.fsdp1() ? r.low : 0)) * r.unit;
  return bucket_bytes(r);
}

/// K and V of other context ranks. Ring: those in use and those on their way, with their gradients
/// as many again. Gathered: of all ranks, and their gradients. all_to_all: q, k, v, o of the heads.
std::int64_t context_bytes(const MemoryRank& r, Moment moment) {
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

/// The most that a layer of any kind has.
std::int64_t most_of_layers(const MemoryRank& r, std::int64_t (ActivationMemory::*bytes)() const) {
  std::int64_t most = 0;
  for (const AlikeLayers& alike : r.parameters.kinds)
    most = std::max(most, (ActivationMemory(r.in, alike.kind).*bytes)());
  return most;
}

/// In a pair the forward's layers come as the backward's go: the micro-batch more of the warm-up
/// makes it as much as without pairs, and a layer.
PipelineShape unpaired(const MemoryRank& r) {
  PipelineShape out = r.schedule;
  out.paired = false;
  return out;
}

/// Activations of all micro-batches in flight, chunk by chunk. The embedding's output is kept with
/// the first part. Between a chunk's input and weight gradients its products' output gradients are
/// kept as well, and what was computed again.
std::int64_t activations_in_flight(const MemoryRank& r) {
  struct KindBytes {
    std::int64_t again, whole, output_gradients;
    ActivationMemory kept;
  };
  std::vector<KindBytes> of_kind;  // layers that are recomputed, and not
  for (const AlikeLayers& alike : r.parameters.kinds) {
    const ActivationMemory kept(r.in, alike.kind);
    of_kind.push_back(
        {kept.layer(), kept.layer_without_recompute(), kept.output_gradients(), kept});
  }
  std::vector<std::int64_t> of_chunk, until_weights;
  std::int64_t most_offloaded = 0;
  auto kind = r.parameters.kind_of.begin();
  for (const std::int64_t layers : r.parameters.chunk_layers) {
    of_chunk.push_back(0);
    until_weights.push_back(0);
    for (std::int64_t i = 0; i < layers; ++i, ++kind) {
      const KindBytes& bytes = of_kind[*kind];
      const bool again = i % r.in.plan.recompute_every == 0;
      const std::int64_t away = i + 1 == layers ? 0 : bytes.kept.offloaded_bytes(i);
      most_offloaded = std::max(most_offloaded, away);
      of_chunk.back() += (again ? bytes.again : bytes.whole) - away;
      until_weights.back() += bytes.output_gradients + (again ? bytes.whole - bytes.again : 0);
    }
  }
  for (std::size_t chunk = 0; chunk < of_chunk.size(); ++chunk)
    if (r.first_part(static_cast<std::int64_t>(chunk))) of_chunk[chunk] += r.sizes.local_bytes();
  std::int64_t bytes =
      r.buffers() > 0
          ? r.buffers() * std::accumulate(of_chunk.begin(), of_chunk.end(), std::int64_t{0})
          : peak_in_flight(unpaired(r), r.stage, of_chunk, until_weights);
  bytes += 2 * most_offloaded;  // of two layers on their way (step/activation_offload.hpp)
  if (r.schedule.paired) bytes += most_of_layers(r, &ActivationMemory::layer);
  if (r.schedule.paired && r.in.plan.expert.delay_wgrad)
    bytes += most_of_layers(r, &ActivationMemory::output_gradients);
  return bytes;
}

/// With full recompute, of one layer beside those in flight.
std::int64_t activation_bytes(const MemoryRank& r, Moment moment, std::int64_t in_flight) {
  if (moment == Moment::optimizer) return 0;
  std::int64_t bytes = in_flight;
  if (moment == Moment::backward && r.in.plan.recompute == Recompute::full)
    bytes += most_of_layers(r, &ActivationMemory::layer_without_recompute);
  const bool core = r.in.plan.recompute == Recompute::selective ||
                    r.in.plan.recompute_modules.has(LayerModule::attention_core);
  if (moment == Moment::backward && core) bytes += most_of_layers(r, &ActivationMemory::scores);
  return bytes;
}

/// GPipe keeps the logits of every micro-batch until its backward, 1F1B has one on the last stage.
/// In the loss's backward the largest number of copies is alive for one of them.
std::int64_t logits_bytes(const MemoryRank& r, Moment moment) {
  if (!r.last_stage() || moment == Moment::optimizer) return 0;
  const ActivationMemory kept(r.in);
  std::vector<std::int64_t> in_last_chunk(r.parameters.chunk_layers.size(), 0);
  for (std::size_t chunk = 0; chunk < in_last_chunk.size(); ++chunk)
    in_last_chunk[chunk] = r.last_part(static_cast<std::int64_t>(chunk)) ? 1 : 0;
  const std::int64_t in_flight = peak_in_flight(unpaired(r), r.stage, in_last_chunk);
  if (moment == Moment::loss) return in_flight * kept.head() + kept.loss_work();
  return (in_flight - 1) * kept.head();
}

/// Our attention's backward sums dQ in fp32, beside one number per row, and has dK and dV of every
/// query head before it sums those of a group (calibrate/kernels/flash.cu).
std::int64_t attention_scratch_bytes(const StepInputs& in) {
  const Sizes sizes(in);
  const std::int64_t per_head = sizes.query == sizes.kv ? 0 : 2 * sizes.element * sizes.query;
  return sizes.tokens * (4 * sizes.query + per_head + 4 * sizes.heads);
}

PartBytes parts_at(const MemoryRank& r, Moment moment, std::int64_t in_flight) {
  const std::int64_t work =
      moment == Moment::backward ? most_of_layers(r, &ActivationMemory::layer_work) : 0;
  PartBytes parts{parameter_bytes(r),
                  gathered_bytes(r, moment),
                  gradient_bytes(r, moment),
                  optimizer_bytes(r, moment),
                  activation_bytes(r, moment, in_flight),
                  logits_bytes(r, moment),
                  communication_bytes(r, moment) + context_bytes(r, moment),
                  work};
  // Reserved over allocated: 36.5 / 36.2 GB for ZeRO-2 with static shapes (OpenTau PR 273). More is
  // common, but the allocator gives cached blocks back before it fails.
  parts[8] = total(parts) / 120;
  parts[9] = fixed_memory(r.in, r.stage).total();
  return parts;
}

/// At the moment that needs most.
PartBytes most_parts(const MemoryRank& r) {
  const std::int64_t in_flight = activations_in_flight(r);
  PartBytes most = parts_at(r, Moment::backward, in_flight);
  for (const Moment moment : {Moment::loss, Moment::optimizer}) {
    const PartBytes parts = parts_at(r, moment, in_flight);
    if (total(parts) > total(most)) most = parts;
  }
  return most;
}

/// Weights of all parameters between steps, and their states, over the ranks that hold a copy.
std::int64_t checkpoint_bytes(const MemoryRank& r) {
  const std::int64_t share = ceil_div(r.all - r.experts, r.in.plan.copies()) +
                             (r.experts > 0 ? ceil_div(r.experts, r.in.plan.expert_copies()) : 0);
  if (r.sharded()) return (4 + state_bytes(r)) * share;
  const double weight = static_cast<double>(parameter_bytes(r)) / static_cast<double>(r.all);
  return static_cast<std::int64_t>((weight + static_cast<double>(state_bytes(r))) *
                                   static_cast<double>(share));
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
  if (software.own() && trainer_has(plan)) {
    Memory memory = trainer_memory(in, stage);
    if (software.attention.kernel == AttentionKernel::host) return memory;  // no GPU, no context
    memory.parts.push_back(
        {"fixed", Bytes(fixed_memory(in, stage).total() + attention_scratch_bytes(in))});
    return memory;
  }
  const PartBytes parts = most_parts(MemoryRank(in, stage));
  Memory memory;
  for (std::size_t i = 0; i < parts.size(); ++i)
    memory.parts.push_back({part_names[i], Bytes(parts[i])});
  return memory;
}

std::int64_t fullest_stage(const TransformerShape& shape, const ParallelPlan& plan,
                           const Batch& batch, const Precision& precision,
                           const Software& software) {
  if (plan.pipeline == 1) return 0;
  const StepInputs in{shape, plan, batch, precision, software};
  const bool own = software.own() && trainer_has(plan);
  std::int64_t fullest = 0, most = 0;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    const std::int64_t bytes =
        own ? memory_of_stage(shape, plan, batch, precision, software, stage).total().value
            : total(most_parts(MemoryRank(in, stage)));
    if (bytes > most) most = bytes, fullest = stage;
  }
  return fullest;
}

Memory peak_memory(const TransformerShape& shape, const ParallelPlan& plan, const Batch& batch,
                   const Precision& precision, const Software& software) {
  return memory_of_stage(shape, plan, batch, precision, software,
                         fullest_stage(shape, plan, batch, precision, software));
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
