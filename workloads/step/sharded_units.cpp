#include "workloads/step/sharded_units.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "workloads/plan/low_precision.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

}  // namespace

ShardedUnits::ShardedUnits(const StepInputs& in, KernelTable& table, Calls& calls,
                           const StageParameters& stage)
    : in_(in),
      calls_(calls),
      has_root_(!stage.root.empty()),
      num_units_(static_cast<std::size_t>(stage.layers) + (has_root_ ? 1 : 0)),
      kind_of_(stage.kind_of),
      states_(num_units_) {
  if (has_root_) root_ = make_unit("root", {{{}, true}, stage.root, 1}, table);
  for (const AlikeLayers& alike : stage.kinds) {
    layers_.push_back(make_unit("layer", alike, table));
    if (in.precision.recipe != Recipe::none) casts_.push_back(weight_casts(in, table, alike));
  }
}

// Bytes for P parameters of the unit and N shard ranks, 16-bit compute, fp32 master shard
// (torch fsdp): cast reads 4P/N writes 2P/N; copy-in 2P/N each way; gather 2P; copy-out 2P each
// way. Reduction with reduce dtype of r bytes, gradients that wait in g bytes: FSDP2 chunk_cat
// reads gP writes rP; FSDP1 joins gradients flat (2P each way), casts (2P, rP) if r differs,
// divides in place (rP each way). ReduceScatter rP; the shard is cast to fp32 (r + 4)P/N unless r
// = 4. With weights gathered in eight bits `low_bytes` are fewer than 2P.
// Frozen weights lie in their shards as they are gathered, and have nothing to reduce.
ShardedUnits::Kernels ShardedUnits::make_kernels(const std::string& name,
                                                 const ParameterTensors& tensors,
                                                 std::int64_t low_bytes, std::int64_t ranks,
                                                 GroupKind group, KernelTable& table) const {
  const std::int64_t elements = trained_elements_of(tensors);
  const std::int64_t shard = ceil_div(elements, ranks);  // of this rank
  const std::int64_t full = shard * ranks;               // gathered, with the padding
  const Dtype low = in_.precision.compute, wide = in_.precision.gradient_reduce;
  const std::int64_t e = bytes_per_element(low), r = bytes_per_element(wide);
  const std::int64_t g = accumulates() ? r : e;
  const bool frozen = adapted(in_.shape);
  const bool narrow = frozen || low_bytes < e * elements;
  const std::int64_t part = narrow ? ceil_div(low_bytes, ranks) : e * shard;  // of this rank, cast
  Kernels k;
  k.group = group;
  if (const double share = in_.plan.offload.parameters; share > 0.0) {
    const std::int64_t bytes = frozen ? part : host_bytes() * shard;
    k.from_host = table.pass(name + ".from_host", host_copy, low,
                             static_cast<std::int64_t>(share * static_cast<double>(bytes)));
  }
  const std::int64_t written = frozen ? e * shard : part;
  if (e != 4 && elements > 0 && in_.precision.masters)
    k.cast = table.pass(name + ".cast", pointwise, low, 4 * shard + written);
  if (!fsdp1()) {
    k.copy_in = table.pass(name + ".copy_in", copy, low, 2 * part);
    k.copy_out = table.pass(name + ".copy_out", copy, low, 2 * part * ranks);
  }
  if (ranks > 1)
    k.gather = table.index_of(
        Collective{name + ".gather", CollectiveKind::all_gather, group, low, Bytes(part * ranks)});
  if (elements == 0) return k;
  // FSDP1 divides by about sqrt(N) before and after; FSDP2 lets NCCL average, but not in fp16.
  if (ranks > 1 && (fsdp1() || wide == Dtype::fp16)) {
    k.divide = table.pass(name + ".divide", pointwise, wide, 2 * r * full);
    k.shard_divide = table.pass(name + ".shard_divide", pointwise, wide, 2 * r * shard);
  }
  if (!fsdp1()) {
    k.reduce_copy = table.pass(name + ".chunk_cat", copy, wide, (g + r) * full);
  } else {
    k.flat_gradient = table.pass(name + ".flat_gradient", copy, low, 2 * g * full);
    if (g != r) k.reduce_copy = table.pass(name + ".reduce_cast", pointwise, wide, (g + r) * full);
  }
  if (ranks > 1)
    k.reduce = table.index_of(
        Collective{name + ".reduce", CollectiveKind::reduce_scatter, group, wide, Bytes(r * full)});
  if (in_.plan.shard_replicas() > 1)  // the reduced shard, in the reduce dtype
    k.sum_replicas = table.index_of(Collective{name + ".sum_replicas", CollectiveKind::all_reduce,
                                               GroupKind::replica, wide, Bytes(r * shard)});
  if (const std::int64_t kept = in_.precision.masters ? 4 : e; r != kept)
    k.shard_cast = table.pass(name + ".shard_cast", pointwise, wide, (r + kept) * shard);
  if (in_.plan.reduce == ReduceWhen::each && in_.batch.micro_batches > 1)
    k.shard_sum = table.pass(name + ".shard_sum", pointwise, Dtype::fp32, 12 * shard);
  return k;
}

/// Experts that are exchanged have shards on fewer ranks: units of their own inside a layer's
/// (torchtitan wraps them on a mesh of their own), gathered and reduced after the rest of it.
ShardedUnits::Kernels ShardedUnits::make_unit(const std::string& name, const AlikeLayers& unit,
                                              KernelTable& table) const {
  const ParameterTensors& tensors = unit.tensors;
  const bool apart = in_.plan.expert_copies() != in_.plan.copies();
  const AlikeLayers rest = apart ? part_of(unit, false) : unit;
  const AlikeLayers experts = part_of(unit, true);
  Kernels k = make_kernels(name, rest.tensors, gathered_bytes_of(in_.precision, rest),
                           in_.plan.shards(), shard_group(in_.plan), table);
  if (apart && !experts.tensors.empty())
    k.experts.push_back(make_kernels(name + ".experts", experts.tensors,
                                     gathered_bytes_of(in_.precision, experts),
                                     in_.plan.expert_copies(), GroupKind::expert_data, table));
  if (in_.software.data.gather_each_tensor) make_tensor_gathers(k, name, tensors, table);
  make_gradient_kernels(k, name, tensors, table);
  return k;
}

/// DeepSpeed 0.4 (_allgather_param() of zero/partition_parameters.py in samyam/DeepSpeed at
/// 67f957a4, read 2026-11): a cleared buffer for the whole tensor, this rank's 16-bit slice copied
/// into it, an AllGather for each tensor.
void ShardedUnits::make_tensor_gathers(Kernels& k, const std::string& name,
                                       const ParameterTensors& tensors, KernelTable& table) const {
  const std::int64_t ranks = in_.plan.shards();
  const Dtype low = in_.precision.compute;
  if (ranks == 1) return;
  for (const ParameterTensor& tensor : tensors) {
    const std::int64_t slice =
        kept_bytes(tensor, ceil_div(tensor.elements, ranks), bytes_per_element(low));
    k.tensor_gathers.push_back(
        {table.pass(name + ".clear", pointwise, low, slice * ranks),
         table.pass(name + ".copy_in", copy, low, 2 * slice),
         table.index_of(Collective{name + ".gather", CollectiveKind::all_gather,
                                   shard_group(in_.plan), low, Bytes(slice * ranks)})});
  }
}

/// Gradients of several micro-batches wait unsharded in the reduce dtype of r bytes: the first is
/// widened (read 2, write r), later ones are added (read 2 + r, write r).
void ShardedUnits::make_gradient_kernels(Kernels& k, const std::string& name,
                                         const ParameterTensors& tensors,
                                         KernelTable& table) const {
  k.first_gradient.resize(tensors.size());
  k.later_gradient.resize(tensors.size());
  if (!accumulates()) return;
  const Dtype wide = in_.precision.gradient_reduce;
  const std::int64_t e = bytes_per_element(in_.precision.compute), r = bytes_per_element(wide);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].frozen) continue;
    const std::string prefix = name + "." + tensors[i].name;
    const std::int64_t n = tensors[i].elements;
    if (r != e) k.first_gradient[i] = table.pass(prefix + ".widen", pointwise, wide, (e + r) * n);
    k.later_gradient[i] = table.pass(prefix + ".accumulate", pointwise, wide, (e + 2 * r) * n);
  }
}

/// The last step's optimizer, on the compute lane, must have written the shards.
void ShardedUnits::start_forward(bool first) {
  if (!first) return;
  const Event ready = calls_.record(compute);
  calls_.wait(copy_lane, ready);
  calls_.wait(data_lane, ready);
}

void ShardedUnits::before_forward(std::size_t unit) {
  calls_.host_work(unit_call);
  if (states_[unit].unsharded) return quantize_for_forward(unit);
  start_gather(unit);
  finish_gather(unit, true);
  const std::size_t depth = units_ahead(true);
  const std::size_t first = is_root(unit) ? chunk_.begin : unit + 1;
  for (std::size_t next = first; next < chunk_.end && next < first + depth; ++next)
    start_gather(next);
  quantize_for_forward(unit);
}

void ShardedUnits::quantize_for_forward(std::size_t unit) {
  if (const WeightCasts* casts = casts_of(unit))
    for (const std::uint32_t kernel : casts->forward) calls_.forward_kernel(compute, kernel);
}

void ShardedUnits::quantize_for_backward(std::size_t unit) {
  if (const WeightCasts* casts = casts_of(unit))
    for (const std::uint32_t kernel : casts->backward) calls_.kernel(compute, kernel);
}

void ShardedUnits::after_forward(std::size_t unit) {
  if (in_.plan.data == DataParallel::zero3 && !is_root(unit)) reshard(unit);
}

void ShardedUnits::start_backward(bool first, bool last) {
  first_backward_ = first;
  reduces_ = last || in_.plan.reduce == ReduceWhen::each;
}

/// The gathers of the next units are issued before the kernels of this one (PRE). The root comes
/// first in backward (the head), then the layers from the last.
void ShardedUnits::before_backward(std::size_t unit) {
  calls_.host_work(unit_call);
  if (!states_[unit].unsharded) {
    start_gather(unit);
    finish_gather(unit, false);
  }
  const std::size_t depth = units_ahead(false);
  const std::size_t from = is_root(unit) ? chunk_.end : unit;
  for (std::size_t i = 1; i <= depth && chunk_.begin + i <= from; ++i) start_gather(from - i);
  hold_gradients(unit);
  quantize_for_backward(unit);
}

/// Our trainer computes the gradients of layers in two buffers by turns: compute waits until those
/// of the layer before the last are copied.
void ShardedUnits::hold_gradients(std::size_t unit) {
  if (!in_.software.own() || is_root(unit) || copied_gradients_.size() < 2) return;
  calls_.wait(compute, copied_gradients_.front());
  copied_gradients_.pop_front();
}

void ShardedUnits::gradient(std::size_t unit, std::size_t tensor) {
  run(compute, first_backward_ ? of(unit).first_gradient[tensor] : of(unit).later_gradient[tensor]);
}

/// How many units beyond the one that runs are gathered.
std::size_t ShardedUnits::units_ahead(bool forward) const {
  if (in_.software.data.gather_each_tensor) return 0;
  if (in_.software.data.explicit_prefetch) return static_cast<std::size_t>(in_.plan.prefetch);
  return forward ? 0 : 1;
}

/// The host waits until the device is empty before each (torch.cuda.synchronize() between clearing
/// and copying), so nothing runs beside a gather. Its prefetch, of 5e7 elements in steps after the
/// first, is left out: what it issues waits for the same. Recompute finds a layer still gathered
/// (max_reuse_distance).
void ShardedUnits::gather_tensors(std::size_t unit) {
  State& state = states_[unit];
  take_from_host(unit, compute);
  for (const auto& tensor : of(unit).tensor_gathers) {
    calls_.kernel(compute, tensor.clear);
    calls_.host_wait(calls_.record(compute));
    if (state.gathered) calls_.host_wait(*state.gathered);
    calls_.kernel(compute, tensor.copy);
    calls_.after(data_lane, compute);
    calls_.join(data_lane, shard_group(in_.plan), tensor.gather);
    state.gathered = calls_.record(data_lane);
  }
  if (!state.gathered) state.gathered = calls_.record(compute);  // one rank has all
}

/// A shard that lies in host memory comes before it is cast and gathered.
void ShardedUnits::take_from_host(std::size_t unit, Lane lane) {
  if (in_.plan.offload.parameters == 0.0) return;
  each_part(unit, [&](const Kernels& k) { run(from_host_lane, k.from_host); });
  calls_.after(lane, from_host_lane);
}

void ShardedUnits::start_gather(std::size_t unit) {
  State& state = states_[unit];
  if (state.unsharded || state.gathered) return;
  if (in_.software.data.gather_each_tensor) return gather_tensors(unit);
  if (fsdp1() && in_.plan.data == DataParallel::zero3) limit_gathers();
  bool gathers = false;
  take_from_host(unit, copy_lane);
  each_part(unit, [&](const Kernels& k) {
    run(copy_lane, k.cast);
    run(copy_lane, k.copy_in);
    gathers = gathers || k.gather;
  });
  state.gathered = calls_.record(copy_lane);
  if (!gathers) return;
  calls_.wait(data_lane, *state.gathered);
  each_part(unit, [&](const Kernels& k) {
    if (k.gather) calls_.join(data_lane, k.group, *k.gather);
  });
  state.gathered = calls_.record(data_lane);
}

/// FSDP2 in forward: the gathers issued from here on wait for the copy-out of the unit before
/// (their buffer is its), in backward for this unit's.
void ShardedUnits::finish_gather(std::size_t unit, bool forward) {
  State& state = states_[unit];
  const auto hold_gathers = [&] {
    if (!copied_out_) return;
    calls_.wait(copy_lane, *copied_out_);
    calls_.wait(data_lane, *copied_out_);
  };
  if (forward && !fsdp1()) hold_gathers();
  calls_.wait(compute, *state.gathered);
  state.gathered.reset();
  state.unsharded = true;
  if (fsdp1()) return;
  each_part(unit, [&](const Kernels& k) { run(compute, k.copy_out); });
  copied_out_ = calls_.record(compute);
  if (!forward) {
    hold_gathers();
    copied_out_.reset();
  }
}

/// FSDP1: with two units freed, the host waits for the older one (_limiter_utils.py): two gathers
/// in flight at most.
void ShardedUnits::limit_gathers() {
  if (freed_.size() < 2) return;
  calls_.host_wait(freed_.front());
  freed_.pop_front();
}

void ShardedUnits::reshard(std::size_t unit) {
  states_[unit].unsharded = false;
  const bool limited = fsdp1() && !in_.software.data.gather_each_tensor;
  if (limited && in_.plan.data == DataParallel::zero3) freed_.push_back(calls_.record(compute));
}

/// The copy into the reduction's buffer. It waits for the reduction before it, whose buffer it
/// takes: on the copy lane by itself, on the compute lane as back-pressure on compute.
void ShardedUnits::reduce_copy(std::size_t unit) {
  each_part(unit, [&](const Kernels& k) { run(compute, k.flat_gradient); });
  const bool on_compute = !fsdp1() && in_.software.data.reduce_copy_compute;
  const Lane lane = on_compute ? compute : copy_lane;
  if (!on_compute) calls_.after(copy_lane, compute);
  if (reduced_ && !fsdp1()) calls_.wait(lane, *reduced_);
  each_part(unit, [&](const Kernels& k) {
    run(lane, k.reduce_copy);
    run(lane, k.divide);
  });
  const Event copied = calls_.after(data_lane, lane);
  const bool own = in_.software.own();
  if (own && !is_root(unit) && !accumulates()) copied_gradients_.push_back(copied);
}

void ShardedUnits::release(std::size_t unit) {
  const bool keeps = in_.plan.data == DataParallel::zero2 && in_.plan.reduce == ReduceWhen::last;
  if (!keeps && !is_root(unit)) reshard(unit);
}

void ShardedUnits::reduce_gradients(std::size_t unit) {
  if (!reduces_) return;
  reduce_copy(unit);
  reduce(unit);
}

/// FSDP1 sums over the replicas in the stream of its reductions, so the next one waits; FSDP2 in a
/// stream of its own (torch fsdp).
void ShardedUnits::reduce(std::size_t unit) {
  const Kernels& k = of(unit);
  if (k.sum_replicas && fsdp1() && summed_) calls_.wait(data_lane, *summed_);
  each_part(unit, [&](const Kernels& part) {
    if (part.reduce) calls_.join(data_lane, part.group, *part.reduce);
  });
  const Lane lane = k.sum_replicas ? replica_lane : data_lane;
  if (k.sum_replicas) {
    reduced_ = calls_.after(replica_lane, data_lane);
    calls_.join(replica_lane, GroupKind::replica, *k.sum_replicas);
  }
  each_part(unit, [&](const Kernels& part) {
    run(lane, part.shard_divide);
    run(lane, part.shard_cast);
    if (!first_backward_) run(lane, part.shard_sum);
  });
  summed_ = calls_.record(lane);
  if (!k.sum_replicas) reduced_ = summed_;
}

void ShardedUnits::finish_backward() {
  const bool keeps = in_.plan.data == DataParallel::zero2 && in_.plan.reduce == ReduceWhen::last;
  if (!keeps && has_root_) reshard(0);
  if (summed_) calls_.wait(compute, *summed_);
}

void ShardedUnits::visit(WriterState& state) {
  for (State& unit : states_) {
    state.value(unit.unsharded ? 1 : 0);
    state.event(unit.gathered);
  }
  for (auto* event : {&copied_out_, &reduced_, &summed_}) state.event(*event);
  for (auto* events : {&freed_, &copied_gradients_}) state.all(*events);
}

}  // namespace stepcast::workloads
