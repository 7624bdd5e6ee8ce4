// Tensors that a rank keeps from step to step: weights, masters, moments, gradients that stay; and
// the shards of gradients that an update reads. Knows no activations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/arithmetic.hpp"
#include "workloads/memory/optimizer_states.hpp"
#include "workloads/memory/rank.hpp"
#include "workloads/memory/step_allocations.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/step/weight_casts.hpp"

namespace stepcast::workloads {

/// Tells a sink (allocation_sinks.hpp) of them.
template <class Sink>
class StateTensors {
 public:
  using Tensors = typename Sink::Tensors;

  StateTensors(const MemoryRank& rank, Sink& sink)
      : r_(rank), out_(sink), software_(rank.in.software) {}

  /// All but the moments.
  void write() {
    weights();
    Tensors forever{};
    if (!r_.sharded() && !r_.makes_gradients() && !r_.in.plan.optimizer_in_backward)
      add(forever, TensorKind::gradients, resident_gradients(r_));
    // DeepSpeed's stage 3 copies gradients into a bucket as well (stage3.py, read 2026-11).
    if (r_.sharded() && !(r_.splits_root() && r_.deepspeed())) return;
    buckets(forever);
  }

  void moments() {
    Tensors forever{};
    // Kind by kind of them: the first of all parameters, then the second.
    for (std::size_t i = 0; i < most_states(r_.in.plan.optimizer); ++i)
      of_parameters(forever, TensorKind::optimizer,
                    [&](const ParameterTensor& p) { return kept_states(r_, p, updated(p))[i]; });
  }

  /// What the update of the parameter has at once that needs most, or of all where they have it
  /// together: foreach AdamW keeps the roots of all second moments.
  void update_work(Tensors& brief) {
    if (software_.optimizer.kernel == OptimizerKernel::foreach &&
        r_.in.plan.optimizer == Optimizer::adam)
      return of_parameters(brief, TensorKind::optimizer,
                           [&](const ParameterTensor& p) { return shard_bytes(r_) * updated(p); });
    std::vector<std::int64_t> most;
    const auto sum = [](const std::vector<std::int64_t>& bytes) {
      return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    };
    Tensors none{};
    of_parameters(none, TensorKind::optimizer, [&](const ParameterTensor& p) {
      std::vector<std::int64_t> work = workloads::update_work(r_, p, updated(p));
      if (sum(work) > sum(most)) most = std::move(work);
      return std::int64_t{0};
    });
    for (const std::int64_t bytes : most) add(brief, TensorKind::optimizer, bytes);
  }

  /// `bytes_of` each trained tensor of the stage, or of those of each unit where they are flat.
  template <class BytesOf>
  void of_parameters(Tensors& tensors, TensorKind kind, BytesOf bytes_of) {
    const auto unit = [&](const ParameterTensors& parameters) {
      if (software_.data.fsdp1() && r_.sharded())
        return add(tensors, kind, bytes_of(ParameterTensor{"", elements_of(parameters)}));
      for (const ParameterTensor& p : parameters) add(tensors, kind, bytes_of(p));
    };
    for (std::size_t i = 0; i < r_.trained().kind_of.size(); ++i) unit(r_.trained().layer(i));
    unit(r_.trained().root);
  }
  /// Of so many elements those of the shard with optimizer states on the GPU.
  std::int64_t updated(const ParameterTensor& p) const {
    const std::int64_t all = of_shard(p.elements, p.expert);
    return all - offloaded_states(r_, all);
  }

  /// FSDP: a unit's shard of gradients is made by its first reduction and freed after the update
  /// (zero_grad sets to none; torch's default from 2.0 on; recalled, 2026).
  void reduce_layer(std::size_t layer) {
    if (all_layers_reduced()) return;
    shard_gradients(r_.trained().layer(layer));
    ++reduced_layers_;
  }
  bool all_layers_reduced() const { return reduced_layers_ == r_.parameters.layers; }
  /// The root's are made last; of gradients that have waited, all at once.
  void reduce_rest() {
    if (!r_.sharded()) return;
    for (; reduced_layers_ < r_.parameters.layers; ++reduced_layers_)
      shard_gradients(r_.trained().layer(static_cast<std::size_t>(reduced_layers_)));
    shard_gradients(r_.trained().root);
  }
  void end_step() {
    out_.free(shards_);
    reduced_layers_ = 0;
  }

 private:
  void add(Tensors& tensors, TensorKind kind, std::int64_t bytes, Stream stream = {}) {
    if (bytes > 0) out_.add(tensors, kind, bytes, stream);
  }
  std::int64_t of_shard(std::int64_t elements, bool expert) const {
    const ParallelPlan& plan = r_.in.plan;
    const bool whole = plan.data == DataParallel::ddp;
    return whole ? elements : ceil_div(elements, expert ? plan.expert_copies() : plan.shards());
  }
  /// Of a shard of so many elements. Those whose states the host has are in 16 bits (DeepSpeed's
  /// stage 3), or there as well.
  std::int64_t kept_shard(std::int64_t elements) const {
    const std::int64_t away = offloaded_states(r_, elements);
    const OffloadPlan& offload = r_.in.plan.offload;
    const double here = away > 0 ? 1.0 - offload.parameters / offload.optimizer : 0.0;
    return shard_bytes(r_) * (elements - away) +
           static_cast<std::int64_t>(here * static_cast<double>(r_.low * away));
  }
  bool masters() const {
    return !r_.sharded() && !software_.data.autocast && r_.low < 4 && r_.in.precision.masters;
  }

  /// With their masters.
  void weights() {
    Tensors forever{};
    const std::int64_t each = r_.sharded() || software_.data.autocast ? 4 : r_.low;
    if (r_.in.precision.recipe != Recipe::none && keeps_weight_copies(r_.in))
      quantized_weights(forever);
    else
      of_parameters(forever, TensorKind::parameters, [&](const ParameterTensor& p) {
        return r_.sharded() ? kept_shard(of_shard(p.elements, p.expert)) : each * p.elements;
      });
    frozen_weights(forever);
    if (masters())
      of_parameters(forever, TensorKind::optimizer,
                    [&](const ParameterTensor& p) { return master_bytes(r_) * updated(p); });
  }

  /// In their own type, which shards keep as well: flat parameters of theirs are of one unit.
  void frozen_weights(Tensors& forever) {
    const auto unit = [&](const ParameterTensors& parameters) {
      std::int64_t flat = 0;
      for (const ParameterTensor& p : parameters) {
        if (!p.frozen) continue;
        const std::int64_t n = r_.sharded() ? of_shard(p.elements, p.expert) : p.elements;
        const double here = 1.0 - r_.in.plan.offload.parameters;
        const auto bytes =
            static_cast<std::int64_t>(here * static_cast<double>(kept_bytes(p, n, r_.low)));
        if (software_.data.fsdp1() && r_.sharded())
          flat += bytes;
        else
          add(forever, TensorKind::parameters, bytes);
      }
      add(forever, TensorKind::parameters, flat);
    };
    for (std::size_t i = 0; i < r_.parameters.kind_of.size(); ++i) unit(r_.parameters.layer(i));
    unit(r_.parameters.root);
  }

  /// Layer by layer with their copies, then the root's.
  void quantized_weights(Tensors& forever) {
    for (const std::uint8_t kind : r_.parameters.kind_of)
      add(forever, TensorKind::parameters, resident_weights(r_, r_.parameters.kinds[kind]));
    for (const ParameterTensor& p : r_.parameters.root)
      add(forever, TensorKind::parameters, r_.low * p.elements);
  }

  void buckets(Tensors& forever) {
    std::int64_t left = bucket_bytes(r_);
    const std::int64_t most = std::max<std::int64_t>(1, software_.data.bucket_bytes);
    for (; left > 0; left -= most) add(forever, TensorKind::communication, std::min(left, most));
  }

  void shard_gradients(const ParameterTensors& unit) {
    for (const ParameterTensor& p : unit)
      add(shards_, TensorKind::gradients, shard_bytes(r_) * updated(p),
          r_.own_streams() ? Stream::reduce : Stream::compute);
    if (r_.in.plan.optimizer_in_backward) out_.free(shards_);
  }

  const MemoryRank& r_;
  Sink& out_;
  const Software& software_;
  Tensors shards_{};
  std::int64_t reduced_layers_ = 0;
};

}  // namespace stepcast::workloads
