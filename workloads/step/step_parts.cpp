#include "workloads/step/step_parts.hpp"

#include <utility>

#include "engine/arithmetic.hpp"
#include "workloads/pieces/ends_piece.hpp"
#include "workloads/pieces/layer_piece.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/step/calls.hpp"
#include "workloads/step/gradient_buckets.hpp"
#include "workloads/step/optimizer_calls.hpp"
#include "workloads/step/sharded_units.hpp"

namespace stepcast::workloads {
namespace {

/// A stage that holds one layer and nothing else.
StageParameters one_layer(const StepInputs& in, LayerKind kind) {
  StageParameters out;
  out.layers = 1;
  out.chunk_layers = {1};
  out.kinds = {{kind, layer_tensors(in.shape, in.plan, in.software.products.packed, kind), 1}};
  out.kind_of = {0};
  return out;
}

Calls new_calls(const StepInputs& in) {
  return Calls(in.overlaps_tensor(), false, in.software.host);
}

PartCalls taken(Calls& calls, KernelTable& table) {
  return {table.take_kernels(), table.take_collectives(), calls.builder().instructions()};
}

/// The layer's micro-batches one after the other, without its own kernels. Sharded gradients that
/// are reduced with each micro-batch are reduced here as well; buckets never: where they end
/// depends on the layers before.
template <class Data>
void write_micro_batch(Data& data, const StageParameters& stage, bool first, bool last) {
  data.start_forward(false);
  data.before_forward(0);
  data.after_forward(0);
  data.start_backward(first, last);
  data.before_backward(0);
  for (std::size_t tensor = 0; tensor < stage.layer(0).size(); ++tensor)
    if (!stage.layer(0)[tensor].frozen) data.gradient(0, tensor);
  data.after_backward(0);
}

template <class Data>
LayerData write_layer(const StepInputs& in, LayerKind kind, bool sharded) {
  KernelTable table;
  Calls calls = new_calls(in);
  const StageParameters stage = one_layer(in, kind);
  Data data(in, table, calls, stage);
  if constexpr (requires { data.enter(UnitRange{}); }) data.enter({0, 1});
  const bool only = in.batch.micro_batches == 1;
  // Forwards that come before the backwards of earlier micro-batches find the layer gathered.
  const bool unclear = in.plan.data == DataParallel::zero2 &&
                       (in.plan.pipeline > 1 || in.plan.schedule == Schedule::gpipe);
  write_micro_batch(data, stage, true, sharded && only);
  const auto middle = static_cast<std::ptrdiff_t>(calls.builder().size());
  if (!only && !unclear) write_micro_batch(data, stage, false, false);
  const std::vector<engine::Instruction>& all = calls.builder().instructions();
  LayerData out;
  out.first.calls.assign(all.begin(), all.begin() + middle);
  out.later.calls.assign(all.begin() + middle, all.end());
  out.first.kernels = out.later.kernels = table.take_kernels();
  out.first.collectives = out.later.collectives = table.take_collectives();
  return out;
}

Collective unit_collective(const StepInputs& in, const char* name, CollectiveKind kind, Dtype dtype,
                           std::int64_t elements) {
  const std::int64_t padded = ceil_div(elements, in.plan.shards()) * in.plan.shards();
  return {name, kind, shard_group(in.plan), dtype, Bytes(bytes_per_element(dtype) * padded)};
}

}  // namespace

LayerPieces layer_pieces(const StepInputs& in, KernelTable& table, const AlikeLayers& alike) {
  LayerPieces out{layer_forward(in, table, alike.kind),
                  layer_backward(in, table, alike.tensors, alike.kind),
                  {}};
  if (in.plan.recompute_every == 1) return out;
  ParallelPlan keeping = in.plan;
  keeping.recompute = Recompute::none;
  out.kept_backward = layer_backward({in.shape, keeping, in.batch, in.precision, in.software},
                                     table, alike.tensors, alike.kind);
  return out;
}

MicroBatchParts micro_batch_parts(const StepInputs& in) {
  KernelTable table;
  MicroBatchParts out;
  for (const LayerKind kind : layer_kinds(in.shape, in.precision))
    out.layers.push_back(layer_pieces(in, table, one_layer(in, kind).kinds[0]));
  out.embedding_forward = embedding_forward(in, table);
  out.embedding_backward =
      embedding_backward(in, table, embedding_tensors(in.shape, in.plan.tensor));
  out.head_forward = head_forward(in, table);
  // Tied embeddings on one stage leave no tensor of the head's own: all of them serve as marks.
  ParameterTensors last = head_tensors(in.shape, in.plan.tensor, true);
  const ParameterTensors more =
      mtp_tensors(in.shape, in.plan, in.precision, in.software.products.packed);
  last.insert(last.end(), more.begin(), more.end());
  out.head_backward = head_backward(in, table, last);
  out.kernels = table.take_kernels();
  out.collectives = table.take_collectives();
  return out;
}

LayerData layer_data(const StepInputs& in, LayerKind kind) {
  return in.sharded() ? write_layer<ShardedUnits>(in, kind, true)
                      : write_layer<GradientBuckets>(in, kind, false);
}

std::vector<PartCalls> bucket_reductions(const StepInputs& in, const StageParameters& stage) {
  std::vector<PartCalls> out;
  std::size_t begin = 0;
  for (const std::int64_t layers : stage.chunk_layers) {
    KernelTable table;
    Calls calls = new_calls(in);
    GradientBuckets buckets(in, table, calls, stage);
    const std::size_t end = begin + static_cast<std::size_t>(layers), root = buckets.has_root();
    const auto gradients = [&](std::size_t unit, const ParameterTensors& tensors) {
      for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor)
        if (!tensors[tensor].frozen) buckets.gradient(unit, tensor);
    };
    buckets.start_backward(false, false);
    for (std::size_t layer = end; layer-- > begin;) gradients(root + layer, stage.layer(layer));
    if (begin == 0 && root > 0) gradients(0, stage.root);
    buckets.finish_backward();
    out.push_back(taken(calls, table));
    begin = end;
  }
  return out;
}

PartCalls stage_tail(const StepInputs& in, const StageParameters& stage) {
  KernelTable table;
  Calls calls = new_calls(in);
  write_optimizer(in, table, calls, stage);
  if (!in.sharded()) GradientBuckets(in, table, calls, stage).after_optimizer();
  return taken(calls, table);
}

Collective unit_gather(const StepInputs& in, std::int64_t elements) {
  // At least: of weights that are gathered in eight bits others stay in sixteen.
  return unit_collective(in, "gather", CollectiveKind::all_gather,
                         gathers_narrow(in.precision) ? Dtype::fp8 : in.precision.compute,
                         elements);
}

Collective unit_reduction(const StepInputs& in, std::int64_t elements) {
  return unit_collective(in, "reduce", CollectiveKind::reduce_scatter, in.precision.gradient_reduce,
                         elements);
}

}  // namespace stepcast::workloads
