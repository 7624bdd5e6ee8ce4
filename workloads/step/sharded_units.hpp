// FSDP: parameters sharded in units (each decoder layer, and the root with embedding, final norm
// and head), gathered before use and gradients reduce-scattered after (FSDP: arXiv 2304.11277).
//
//   copy lane      cast, copy-in (k+1)                    chunk_cat (k)
//   data lane            AllGather (k+1)                        ReduceScatter (k)
//   compute lane   copy-out (k) forward (k) ...   backward (k)
//
// FSDP2 copies shards in and units out; FSDP1 gathers into views and joins gradients flat. hsdp
// (shard_degree): all this inside a shard group, then shards are summed over the replicas on a lane
// of their own.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "workloads/pieces/piece.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/calls.hpp"
#include "workloads/step/weight_casts.hpp"

namespace stepcast::workloads {

/// Units [begin, end) of one model chunk, without the root.
struct UnitRange {
  std::size_t begin = 0, end = 0;
};

/// Units of a stage in forward order: the root first (if the stage has one), then the layers.
class ShardedUnits {
 public:
  ShardedUnits(const StepInputs&, KernelTable&, Calls&, const StageParameters&);

  /// The chunk whose turn it is: nothing is gathered ahead beyond it.
  void enter(UnitRange chunk) { chunk_ = chunk; }
  /// `first` and `last` tell the step's first forward, and the first and the last backward of the
  /// chunk, from the others.
  void start_forward(bool first);
  void before_forward(std::size_t unit);
  void after_forward(std::size_t unit);
  void start_backward(bool first, bool last);
  void before_backward(std::size_t unit);
  void gradient(std::size_t unit, std::size_t tensor);
  void after_backward(std::size_t unit) { release(unit), reduce_gradients(unit); }
  /// Its input gradients are computed: the parameters are needed no more.
  void release(std::size_t unit);
  void reduce_gradients(std::size_t unit);
  /// Compute waits for the last reduction of the pass.
  void after_micro_batch() {}
  void finish_backward();
  void after_optimizer() {}

  bool has_root() const { return has_root_; }
  void visit(WriterState& state);

 private:
  struct Kernels {  // of one kind of unit; absent: the software does not need it
    GroupKind group{};
    std::optional<std::uint32_t> from_host, cast, copy_in, gather, copy_out;
    std::optional<std::uint32_t> flat_gradient, reduce_copy, divide, reduce, sum_replicas,
        shard_divide, shard_cast, shard_sum;
    std::vector<std::optional<std::uint32_t>> first_gradient, later_gradient;  // by tensor
    struct TensorGather {
      std::uint32_t clear, copy, gather;
    };
    std::vector<TensorGather> tensor_gathers{};  // DeepSpeed 0.4
    std::vector<Kernels> experts{};              // of them, where other ranks have their shards
  };
  struct State {
    bool unsharded = false;
    std::optional<Event> gathered;
  };

  Kernels make_unit(const std::string& name, const AlikeLayers&, KernelTable&) const;
  Kernels make_kernels(const std::string& name, const ParameterTensors&, std::int64_t low_bytes,
                       std::int64_t ranks, GroupKind, KernelTable&) const;
  const WeightCasts* casts_of(std::size_t unit) const {
    return casts_.empty() || is_root(unit) ? nullptr
                                           : &casts_[kind_of_[unit - (has_root_ ? 1 : 0)]];
  }
  void quantize_for_forward(std::size_t unit);
  void quantize_for_backward(std::size_t unit);
  void make_tensor_gathers(Kernels&, const std::string& name, const ParameterTensors&,
                           KernelTable&) const;
  void make_gradient_kernels(Kernels&, const std::string& name, const ParameterTensors&,
                             KernelTable&) const;
  const Kernels& of(std::size_t unit) const {
    return is_root(unit) ? root_ : layers_[kind_of_[unit - (has_root_ ? 1 : 0)]];
  }
  /// Of all its parameters, or of the dense ones and then of the experts.
  template <class F>
  void each_part(std::size_t unit, F&& f) const {
    f(of(unit));
    for (const Kernels& experts : of(unit).experts) f(experts);
  }
  bool is_root(std::size_t unit) const { return has_root_ && unit == 0; }
  bool fsdp1() const { return in_.software.data.fsdp1(); }
  void take_from_host(std::size_t unit, Lane lane);
  /// Of an element in host memory: FSDP's fp32 shard, DeepSpeed's in 16 bits.
  std::int64_t host_bytes() const {
    const bool fsdp = in_.software.data.flat_parameters != FlatParameters::buckets;
    return fsdp ? 4 : bytes_per_element(in_.precision.compute);
  }
  void start_gather(std::size_t unit);
  void gather_tensors(std::size_t unit);
  std::size_t units_ahead(bool forward) const;
  void finish_gather(std::size_t unit, bool forward);
  void limit_gathers();
  void hold_gradients(std::size_t unit);
  bool accumulates() const {
    return in_.batch.micro_batches > 1 && in_.plan.reduce == ReduceWhen::last;
  }
  void reshard(std::size_t unit);
  void reduce(std::size_t unit);
  void reduce_copy(std::size_t unit);
  void run(Lane lane, const std::optional<std::uint32_t>& kernel) {
    if (kernel) calls_.kernel(lane, *kernel);
  }

  const StepInputs in_;
  Calls& calls_;
  bool has_root_;
  std::size_t num_units_;
  UnitRange chunk_;
  Kernels root_;
  std::vector<Kernels> layers_;        // by kind
  std::vector<WeightCasts> casts_;     // by kind; empty: no recipe
  std::vector<std::uint8_t> kind_of_;  // of each layer
  std::vector<State> states_;
  bool first_backward_ = true, reduces_ = true;
  std::optional<Event> copied_out_;     // of the unit gathered before
  std::optional<Event> reduced_;        // of the unit reduced before: its buffer is free
  std::optional<Event> summed_;         // its shard is complete
  std::deque<Event> freed_;             // FSDP1's limiter: units resharded, oldest first
  std::deque<Event> copied_gradients_;  // our trainer: of layers, oldest first
};

}  // namespace stepcast::workloads
