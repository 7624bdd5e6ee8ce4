// The parts that a step repeats, each as its calls, without the step: for bounds of a plan's time
// that must cost microseconds. What joins them (schedule, exchanges, buckets) stands in
// step_program.
#pragma once

#include <vector>

#include "engine/program.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::workloads {

/// Of layers that are alike.
struct LayerPieces {
  Piece forward, backward;
  Piece kept_backward;  // of a layer that recompute leaves out; empty: there is none
};
LayerPieces layer_pieces(const StepInputs&, KernelTable&, const AlikeLayers&);

/// Pieces of one micro-batch, and what their actions' indexes mean.
struct MicroBatchParts {
  std::vector<Kernel> kernels;
  std::vector<Collective> collectives;
  std::vector<LayerPieces> layers;  // by kind, as layer_kinds() has them
  Piece embedding_forward, embedding_backward, head_forward, head_backward;
};
MicroBatchParts micro_batch_parts(const StepInputs&);

/// Calls of one program, and what their arguments mean.
struct PartCalls {
  std::vector<Kernel> kernels;
  std::vector<Collective> collectives;
  std::vector<engine::Instruction> calls;
};

/// What data parallelism adds to one layer in the first micro-batch of a step, and in one between
/// the first and the last: gathers, copies, sums of gradients; no reductions of buckets.
struct LayerData {
  PartCalls first, later;
};
LayerData layer_data(const StepInputs&, LayerKind);

/// What backward reduces of a micro-batch's gradients on the first of several stages, where they
/// are reduced in buckets and with each micro-batch: chunk by chunk, of which compute waits for the
/// last bucket.
std::vector<PartCalls> bucket_reductions(const StepInputs&, const StageParameters&);

/// The end of a stage's step: gradient norm, optimizer, parameters gathered after it.
PartCalls stage_tail(const StepInputs&, const StageParameters&);

/// Unit by unit: bytes that a gather and a reduction of a unit of so many elements move.
Collective unit_gather(const StepInputs&, std::int64_t elements);
Collective unit_reduction(const StepInputs&, std::int64_t elements);

}  // namespace stepcast::workloads
