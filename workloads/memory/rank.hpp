// What the memory of a rank is made of: elements of its parameters, its schedule, its types.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/arithmetic.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/plan/pipeline.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {

struct MemoryRank {
  MemoryRank(const StepInputs& inputs, std::int64_t stage_index)
      : in(inputs),
        sizes(inputs),
        stage(stage_index),
        parameters(
            stage_parameters(in.shape, in.plan, in.precision, in.software.products.packed, stage)),
        adapters(adapted(in.shape) ? std::optional(trained_of(parameters)) : std::nullopt),
        all(trained().elements()),
        root(elements_of(parameters.root)),
        experts(trained().over_layers(expert_elements_of) + expert_elements_of(trained().root)),
        shard(ceil_div(all - experts, in.plan.shards()) +
              (experts > 0 ? ceil_div(experts, in.plan.expert_copies()) : 0)),
        schedule(pipeline_shape(in.plan, in.batch)),
        low(bytes_per_element(in.precision.compute)),
        wide(bytes_per_element(in.precision.gradient_reduce)) {}

  const StageParameters& trained() const { return adapters ? *adapters : parameters; }
  bool zero3() const { return in.plan.data == DataParallel::zero3; }
  bool sharded() const { return in.sharded(); }
  bool last_stage() const { return in.plan.has_last_part(stage); }
  bool first_part(std::int64_t chunk) const { return in.plan.part_of(stage, chunk) == 0; }
  bool last_part(std::int64_t chunk) const {
    return in.plan.part_of(stage, chunk) == in.plan.parts() - 1;
  }
  /// Gradients of several micro-batches wait unsharded for one reduction.
  bool accumulates() const {
    return in.batch.micro_batches > 1 && in.plan.reduce == ReduceWhen::last;
  }

  /// torch makes a gradient when backward comes to it and drops it after the update (zero_grad sets
  /// to none, its default from 2.0 on; recalled, 2026): none is there at the loss. Gradients that
  /// wait for further micro-batches, live in buffers, are widened or sharded are not of these.
  bool makes_gradients() const {
    const Software& software = in.software;
    const bool torch = (software.eager() || software.compiled()) &&
                       software.memory.allocator == Allocator::caching;
    const bool own_type = software.data.autocast || !in.precision.masters || low == 4;
    return torch && own_type && in.plan.data == DataParallel::ddp && in.batch.micro_batches == 1 &&
           in.plan.pipeline == 1 && !in.plan.optimizer_in_backward;
  }

  /// zero2 of replicated parameters, whose gradients go apart as backward makes them.
  bool partitions() const {
    return !sharded() && in.plan.data == DataParallel::zero2 && !accumulates();
  }

  /// zero3 of DeepSpeed and its like: embedding and head are gathered, and their gradients reduced,
  /// module by module as layers are (partitioned_param_coordinator.py at 03aecee8, read 2026-11).
  /// FSDP's root unit holds both from the step's beginning to its end.
  bool splits_root() const {
    return sharded() && in.software.data.flat_parameters == FlatParameters::buckets;
  }

  /// FSDP gathers and reduces on streams of its own, on which its buffers are made.
  bool own_streams() const { return sharded() && !splits_root(); }

  /// FSDP has the stage's embedding in a unit of its own, which is given back after its use; the
  /// head's gradients do not wait for it.
  bool embedding_apart() const {
    return own_streams() && in.software.data.embedding_unit && !in.shape.tied_embeddings &&
           in.plan.has_first_part(stage);
  }

  bool deepspeed() const {
    return in.software.optimizer.states == OptimizerStates::deepspeed && low < 4;
  }
  /// Micro-batches that a static graph has room for on every stage but the last: its buffers, and
  /// what fills them; 0: those in flight.
  std::int64_t buffers() const {
    const bool pipelined = in.plan.pipeline > 1 && in.batch.micro_batches > 1 && !last_stage();
    if (!pipelined || in.software.pipeline.buffers == 0) return 0;
    return in.software.pipeline.buffers * in.plan.pipeline + 1;
  }

  const StepInputs& in;
  Sizes sizes;
  std::int64_t stage;
  StageParameters parameters;
  std::optional<StageParameters> adapters;  // where they alone are trained
  // Elements of the stage that are trained, of the root, of experts that are trained, of a shard.
  std::int64_t all, root, experts, shard;
  PipelineShape schedule;
  std::int64_t low, wide;  // bytes of the compute and of the reduce dtype
};

/// 1F1B repeats itself once the pipeline is full; two rounds of it show all that there is.
PipelineShape told_shape(const MemoryRank&);

/// Weights in the type that they are gathered in, of all and of the largest layer.
std::int64_t gathered_weights(const MemoryRank&);
std::int64_t gathered_layer(const MemoryRank&);
/// Replicated weights between steps, and what is kept of them in a recipe's type.
std::int64_t resident_weights(const MemoryRank&);
/// Of a layer.
std::int64_t resident_weights(const MemoryRank&, const AlikeLayers&);
/// Each of Adam's moments, bytes per parameter.
inline std::int64_t moment_bytes(const MemoryRank& r) {
  return r.in.precision.masters ? bytes_per_element(r.in.precision.moments) : r.low;
}
/// Of a trained element in a shard, and of its gradient's.
inline std::int64_t shard_bytes(const MemoryRank& r) { return r.in.precision.masters ? 4 : r.low; }

/// Of a master beside a weight in 16 bits.
inline std::int64_t master_bytes(const MemoryRank& r) {
  return r.in.software.optimizer.remainders && r.in.precision.moments == Dtype::bf16 ? 2 : 4;
}

/// Of so many elements with optimizer states those whose states the host has.
inline std::int64_t offloaded_states(const MemoryRank& r, std::int64_t elements) {
  return static_cast<std::int64_t>(r.in.plan.offload.optimizer * static_cast<double>(elements));
}

/// bf16 with fp32 sums goes through DeepSpeed's bf16_optimizer.py (at 0acdb021, read 2026-11),
/// where a backward's whole 16-bit gradients wait beside the sums; the rest through
/// stage_1_and_2.py.
bool sums_in_fp32(const MemoryRank&);

/// Gradients of replicated parameters that stay from step to step, sharded for zero2 unless they
/// wait; what an update has beside them. DeepSpeed's differ.
std::int64_t resident_gradients(const MemoryRank&);
std::int64_t update_gradients(const MemoryRank&);

/// Buckets beside replicated parameters' gradients: torch DDP's, of all of them; DeepSpeed's one;
/// none where gradients live in them.
std::int64_t bucket_bytes(const MemoryRank&);

/// Elements of a layer that one reduction of sharded gradients takes: all of them, FSDP's unit;
/// else tensors up to a bucket, or one that is larger (stage3.py, read 2026-11).
std::int64_t reduced_together(const MemoryRank&, const ParameterTensors& layer);

/// K and V of other context ranks in a layer's backward. Ring: those in use and those on their way,
/// with their gradients as many again. Gathered: of all ranks, and their gradients. all_to_all: q,
/// k, v, o of the heads.
std::int64_t context_bytes(const MemoryRank&);

}  // namespace stepcast::workloads
