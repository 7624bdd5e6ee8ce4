// What the memory of a rank is made of: elements of its parameters, its schedule, its types.
#pragma once

#include <cstdint>

#include "engine/arithmetic.hpp"
#include "workloads/plan/pipeline.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/piece.hpp"

namespace stepcast::workloads {

struct MemoryRank {
  MemoryRank(const StepInputs& inputs, std::int64_t stage_index)
      : in(inputs),
        sizes(inputs),
        stage(stage_index),
        parameters(
            stage_parameters(in.shape, in.plan, in.precision, in.software.products.packed, stage)),
        all(parameters.elements()),
        unit(parameters.layer_elements()),
        root(elements_of(parameters.root)),
        shard(ceil_div(all, in.plan.shards())),
        schedule(pipeline_shape(in.plan, in.batch)),
        low(bytes_per_element(in.precision.compute)),
        wide(bytes_per_element(in.precision.gradient_reduce)) {}

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
  // Elements of the stage, its largest layer, the root, a shard of all.
  std::int64_t all, unit, root, shard;
  PipelineShape schedule;
  std::int64_t low, wide;  // bytes of the compute and of the reduce dtype
};

/// Gradients of replicated parameters that stay from step to step, sharded for zero2 unless they
/// wait; what a backward has beside them; what an update has. DeepSpeed's differ.
std::int64_t resident_gradients(const MemoryRank&);
std::int64_t backward_gradients(const MemoryRank&);
std::int64_t update_gradients(const MemoryRank&);

/// Buckets beside replicated parameters' gradients: torch DDP's, of all of them; DeepSpeed's one;
/// none where gradients live in them.
std::int64_t bucket_bytes(const MemoryRank&);

}  // namespace stepcast::workloads
