// ddp and zero1 (and zero2 where software keeps parameters replicated): gradients are reduced in
// buckets, in the order in which backward completes them; zero1 gathers the parameters after the
// optimizer (torch DDP, arXiv 2006.15704; Megatron-LM).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/pieces/piece.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/calls.hpp"
#include "workloads/step/weight_casts.hpp"

namespace stepcast::workloads {

/// A bucket is reduced when its gradients have at least so many bytes; the first of a pass earlier.
std::int64_t bucket_limit(const Software&, const ParallelPlan&, bool first);

/// Whether our trainer reduces this tensor in a bucket of its own: where tied embeddings lie on two
/// stages and gradients are scattered, both stages have to cut them into the same shards before
/// they sum them (as Megatron core param_and_grad_buffer.py does; recalled, 2026).
bool in_own_bucket(const StepInputs&, const ParameterTensor&);

class GradientBuckets {
 public:
  GradientBuckets(const StepInputs&, KernelTable&, Calls&, const StageParameters&);

  void start_forward(bool first);
  void before_forward(std::size_t unit);
  void after_forward(std::size_t) {}
  void start_backward(bool first, bool last);
  void before_backward(std::size_t unit);
  void gradient(std::size_t unit, std::size_t tensor);
  void after_backward(std::size_t) {}
  void release(std::size_t) {}
  void reduce_gradients(std::size_t) {}
  /// Of each micro-batch, when all its gradients are there.
  void after_micro_batch();
  void finish_backward();
  /// zero1: every rank has updated its shard; all gather all of it, now or under the next forward.
  void after_optimizer();

  bool has_root() const { return has_root_; }
  void visit(WriterState& state);

 private:
  struct TensorKernels {
    std::int64_t elements = 0;
    bool expert = false;
    std::optional<std::uint32_t> widen, accumulate;
  };
  /// Gradients that the same ranks reduce, in buckets of their own on a communicator of their own.
  struct Pool {
    GroupKind group;
    Lane lane;
    std::int64_t copies, shards;
    std::int64_t all = 0;    // elements of the stage
    std::int64_t bytes = 0;  // in which they are gathered
    std::int64_t root_bytes = 0;
    std::vector<std::int64_t> layer_bytes{};  // of a layer, by kind
    std::int64_t waiting = 0;                 // elements of the bucket that fills
    bool first = true;                        // of a pass
    std::optional<Event> reduced{};
    std::vector<std::int64_t> closed{};   // buckets that backward does not reduce
    std::vector<std::int64_t> buckets{};  // our trainer: of this step, their elements
  };

  GradientBuckets(const StepInputs&, KernelTable&, Calls&, const StageParameters& whole,
                  const StageParameters& trained);
  std::vector<TensorKernels> tensor_kernels(const std::string& name, const ParameterTensors&,
                                            KernelTable&) const;
  bool is_root(std::size_t unit) const { return has_root_ && unit == 0; }
  std::size_t kind_of(std::size_t unit) const { return kind_of_[unit - (has_root_ ? 1 : 0)]; }
  const std::vector<TensorKernels>& tensors_of(std::size_t unit) const {
    return is_root(unit) ? root_ : layers_[kind_of(unit)];
  }
  bool megatron() const { return in_.software.fused(); }
  bool own() const { return in_.software.own(); }
  bool gathers() const;
  bool gathers_ahead() const {
    return gathers() && in_.software.data.gather_overlap && !in_.software.data.owners();
  }
  void each_owner(Collective whole);
  bool sums_shards() const;
  std::int64_t bucket() const;
  std::int64_t bytes_of_bucket() const;
  static bool gathers(const Pool& pool) { return pool.shards > 1 && pool.all > 0; }
  void quantize_weights(std::size_t unit);
  void gather(const Pool& pool, std::int64_t bytes);
  void gather_buckets(const Pool& pool, std::int64_t elements, std::int64_t bytes);
  void gather_for_forward();
  void gather_updated(const Pool& pool);
  void close_bucket(Pool& pool);
  void reduce_bucket(Pool& pool);
  void sum_replicas(std::int64_t bytes);

  const StepInputs in_;
  KernelTable& table_;
  Calls& calls_;
  bool has_root_;
  std::int64_t all_elements_, all_tensors_;
  std::vector<std::uint8_t> kind_of_;  // of each layer
  Dtype gradient_dtype_, reduce_dtype_;
  std::vector<std::uint32_t> layer_casts_;  // by kind; empty: none
  std::vector<WeightCasts> weight_casts_;   // by kind; empty: no recipe
  std::vector<bool> quantized_;             // of each layer, in this step
  std::vector<TensorKernels> root_;
  std::vector<std::vector<TensorKernels>> layers_;  // by kind
  std::array<Pool, 2> pools_;                       // dense, experts
  bool first_backward_ = true, reduces_ = true;
  // By unit: parameters the step has not used yet, when all of them are there.
  std::vector<std::vector<Event>> gathered_;
  std::vector<std::uint32_t> copies_back_;
  std::vector<bool> in_own_bucket_;  // the root's tensors
};

}  // namespace stepcast::workloads
