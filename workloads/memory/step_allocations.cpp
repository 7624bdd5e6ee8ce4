#include "workloads/memory/step_allocations.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

#include "workloads/memory/activation_memory.hpp"
#include "workloads/memory/rank.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/step/weight_casts.hpp"

namespace stepcast::workloads {
namespace {

using Tensors = std::vector<std::uint32_t>;

class AllocationWriter {
 public:
  AllocationWriter(const StepInputs& in, std::int64_t stage)
      : r_(in, stage), head_(in), software_(in.software) {
    for (const AlikeLayers& alike : r_.parameters.kinds) kept_.emplace_back(in, alike.kind);
  }

  StepAllocations take() {
    states();
    for (std::int64_t step = 0; step < 2; ++step) {
      begin_step();
      for (const Turn& turn : turns_of_stage(shape(), r_.stage)) {
        out_.turns.push_back({out_.order.size(), step, turn});
        write(turn);
      }
      out_.turns.push_back({out_.order.size(), step, std::nullopt});
      update(step == 0);
    }
    return std::move(out_);
  }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // micro-batch, chunk

  /// 1F1B repeats itself once the pipeline is full; two rounds of it show all that there is.
  PipelineShape shape() const {
    PipelineShape s = r_.schedule;
    if (s.schedule == Schedule::one_f_one_b && s.micro_batches % s.stages == 0)
      s.micro_batches = std::min(s.micro_batches, 2 * s.stages);
    else if (s.schedule == Schedule::one_f_one_b && s.chunks == 1)
      s.micro_batches = std::min(s.micro_batches, s.stages + 2);
    return s;
  }

  std::uint32_t add(TensorKind kind, std::int64_t bytes) {
    const std::uint32_t id = out_.tensors++;
    out_.order.push_back({id, kind, bytes});
    return id;
  }
  void add_to(Tensors& tensors, TensorKind kind, std::int64_t bytes) {
    if (bytes > 0) tensors.push_back(add(kind, bytes));
  }
  void add_all(Tensors& tensors, TensorKind kind, const std::vector<std::int64_t>& bytes) {
    for (const std::int64_t b : bytes) add_to(tensors, kind, b);
  }
  void free(Tensors& tensors) {
    for (const std::uint32_t id : tensors) out_.order.push_back({id, {}, 0});
    tensors.clear();
  }
  void brief(TensorKind kind, const std::vector<std::int64_t>& bytes) {
    Tensors tensors;
    add_all(tensors, kind, bytes);
    free(tensors);
  }

  /// `bytes_of` each tensor of the stage, or of each unit where they are flat.
  template <class BytesOf>
  void of_parameters(Tensors& tensors, TensorKind kind, BytesOf bytes_of) {
    const auto unit = [&](const ParameterTensors& parameters) {
      if (software_.data.fsdp1() && r_.sharded())
        return add_to(tensors, kind, bytes_of(elements_of(parameters), false));
      for (const ParameterTensor& p : parameters)
        add_to(tensors, kind, bytes_of(p.elements, p.expert));
    };
    for (std::size_t i = 0; i < r_.parameters.kind_of.size(); ++i) unit(r_.parameters.layer(i));
    unit(r_.parameters.root);
  }
  std::int64_t of_shard(std::int64_t elements, bool expert) const {
    const ParallelPlan& plan = r_.in.plan;
    const bool whole = plan.data == DataParallel::ddp;
    return whole ? elements : ceil_div(elements, expert ? plan.expert_copies() : plan.shards());
  }
  bool masters() const { return !r_.sharded() && !software_.data.autocast && r_.low < 4; }

  /// Weights, their masters, gradients that are never given back, buckets.
  void states() {
    Tensors forever;
    const std::int64_t each = r_.sharded() || software_.data.autocast ? 4 : r_.low;
    if (r_.in.precision.recipe != Recipe::none && keeps_weight_copies(r_.in))
      quantized_weights(forever);
    else
      of_parameters(forever, TensorKind::parameters, [&](std::int64_t n, bool expert) {
        return each * (r_.sharded() ? of_shard(n, expert) : n);
      });
    if (masters())
      of_parameters(forever, TensorKind::optimizer,
                    [&](std::int64_t n, bool expert) { return 4 * of_shard(n, expert); });
    if (!r_.sharded()) {
      add_to(forever, TensorKind::gradients, resident_gradients(r_));
      buckets(forever);
    }
  }

  /// Layer by layer with their copies, then the root's.
  void quantized_weights(Tensors& forever) {
    for (const std::uint8_t kind : r_.parameters.kind_of)
      add_to(forever, TensorKind::parameters, resident_weights(r_, r_.parameters.kinds[kind]));
    for (const ParameterTensor& p : r_.parameters.root)
      add_to(forever, TensorKind::parameters, r_.low * p.elements);
  }

  void buckets(Tensors& forever) {
    std::int64_t left = bucket_bytes(r_);
    const std::int64_t most = std::max<std::int64_t>(1, software_.data.bucket_bytes);
    for (; left > 0; left -= most) add_to(forever, TensorKind::communication, std::min(left, most));
  }

  void begin_step() {
    if (software_.data.autocast && !r_.sharded())
      of_parameters(of_step_, TensorKind::gathered,
                    [&](std::int64_t n, bool) { return r_.low * n; });
    if (!r_.sharded()) return;
    add_to(of_step_, TensorKind::gathered, r_.low * r_.root);
    if (!r_.zero3())
      for (std::size_t i = 0; i < r_.parameters.kind_of.size(); ++i)
        add_to(of_step_, TensorKind::gathered,
               gathered_bytes_of(r_.in.precision, r_.parameters.kinds[r_.parameters.kind_of[i]]));
    if (r_.accumulates())
      of_parameters(of_step_, TensorKind::gradients,
                    [&](std::int64_t n, bool) { return r_.wide * n; });
  }

  /// zero3: the unit in use and those gathered ahead; what falls out is freed.
  void gather() {
    if (!r_.zero3()) return;
    const std::int64_t most = std::min(r_.parameters.layers, 1 + r_.in.plan.prefetch);
    while (static_cast<std::int64_t>(gathered_.size()) >= most) {
      out_.order.push_back({gathered_.front(), {}, 0});
      gathered_.pop_front();
    }
    const std::int64_t layer = gathered_layer(r_);
    gathered_.push_back(add(TensorKind::gathered, layer));
    if (!software_.data.fsdp1()) brief(TensorKind::gathered, {layer});
  }
  void end_gathers() {
    for (const std::uint32_t id : gathered_) out_.order.push_back({id, {}, 0});
    gathered_.clear();
  }

  bool recomputed(std::int64_t layer) const {
    return r_.in.plan.recompute == Recompute::full && layer % r_.in.plan.recompute_every == 0;
  }
  bool core_again() const {
    return r_.in.plan.recompute == Recompute::selective ||
           r_.in.plan.recompute_modules.has(LayerModule::attention_core);
  }
  bool last_part(const Turn& turn) const { return r_.last_part(turn.chunk); }
  std::int64_t layers_of(const Turn& turn) const {
    return r_.parameters.chunk_layers[static_cast<std::size_t>(turn.chunk)];
  }
  /// Of the stage, the `i`-th layer of a turn's chunk.
  std::size_t layer_of(const Turn& turn, std::int64_t i) const {
    const auto chunk = r_.parameters.chunk_layers.begin();
    return static_cast<std::size_t>(std::accumulate(chunk, chunk + turn.chunk, i));
  }
  const ActivationMemory& kept_of(std::size_t layer) const {
    return kept_[r_.parameters.kind_of[layer]];
  }

  void write(const Turn& turn) {
    switch (turn.pass) {
      case Pass::forward:
        return forward(turn);
      case Pass::backward:
        return backward(turn);
      case Pass::input_gradient:
        return input_gradients(turn);
      case Pass::weight_gradient:
        return weight_gradients(turn);
    }
  }

  void forward(const Turn& turn) {
    std::vector<Tensors>& layers = layers_[{turn.micro_batch, turn.chunk}];
    Tensors embedding;
    if (r_.first_part(turn.chunk))
      add_to(embedding, TensorKind::activations, r_.sizes.local_bytes());
    layers.push_back(embedding);
    for (std::int64_t i = 0; i < layers_of(turn); ++i) {
      gather();
      Tensors kept;
      if (recomputed(i)) {
        add_to(kept, TensorKind::activations, r_.sizes.local_bytes());
      } else {
        const ActivationMemory& of_layer = kept_of(layer_of(turn, i));
        add_all(kept, TensorKind::activations, of_layer.layer_tensors());
        if (!core_again()) add_to(kept, TensorKind::activations, of_layer.scores());
      }
      layers.push_back(std::move(kept));
      brief(TensorKind::work, kept_of(layer_of(turn, i)).forward_work_tensors());
    }
    end_gathers();
    if (!last_part(turn)) return;
    Tensors& head = heads_[{turn.micro_batch, turn.chunk}];
    add_all(head, TensorKind::logits, head_.head_tensors());
    brief(TensorKind::logits, {head_.loss_work()});
  }

  void backward(const Turn& turn) {
    if (last_part(turn)) head_backward(turn);
    std::vector<Tensors>& layers = layers_[{turn.micro_batch, turn.chunk}];
    for (std::int64_t i = layers_of(turn) - 1; i >= 0; --i) {
      gather();
      const std::size_t layer = layer_of(turn, i);
      const ActivationMemory& of_layer = kept_of(layer);
      Tensors brief_ones;
      if (recomputed(i)) add_all(brief_ones, TensorKind::activations, of_layer.layer_tensors());
      if (recomputed(i) || core_again())
        add_to(brief_ones, TensorKind::activations, of_layer.scores());
      add_all(brief_ones, TensorKind::work, of_layer.work_tensors());
      layer_gradients(layer, gradients_wait() ? gradients_ : brief_ones);
      free(brief_ones);
      free(layers.back());
      layers.pop_back();
      reduce_unit(layer);
    }
    end_chunk(layers);
  }

  void end_chunk(std::vector<Tensors>& layers) {
    free(layers.back());  // the embedding's output
    layers.pop_back();
    end_gathers();
    free(reduced_);
    if (!r_.sharded()) free(gradients_);
  }

  /// What products read for their weight gradients stays with the layer until then.
  void input_gradients(const Turn& turn) {
    if (last_part(turn)) brief(TensorKind::logits, {head_.loss_work()});
    std::vector<Tensors>& layers = layers_[{turn.micro_batch, turn.chunk}];
    for (std::int64_t i = layers_of(turn) - 1; i >= 0; --i) {
      gather();
      const ActivationMemory& of_layer = kept_of(layer_of(turn, i));
      Tensors& kept = layers[static_cast<std::size_t>(i + 1)];
      Tensors brief_ones;
      if (recomputed(i)) add_all(kept, TensorKind::activations, of_layer.layer_tensors());
      if (recomputed(i) || r_.in.plan.recompute == Recompute::selective)
        add_to(brief_ones, TensorKind::activations, of_layer.scores());
      add_to(kept, TensorKind::activations, of_layer.output_gradients());
      add_all(brief_ones, TensorKind::work, of_layer.work_tensors());
      free(brief_ones);
    }
    end_gathers();
  }

  void weight_gradients(const Turn& turn) {
    if (last_part(turn)) head_gradients(turn);
    std::vector<Tensors>& layers = layers_[{turn.micro_batch, turn.chunk}];
    for (std::int64_t i = layers_of(turn) - 1; i >= 0; --i) {
      const std::size_t layer = layer_of(turn, i);
      Tensors brief_ones;
      layer_gradients(layer, gradients_wait() ? gradients_ : brief_ones);
      free(brief_ones);
      free(layers.back());
      layers.pop_back();
      reduce_unit(layer);
    }
    end_chunk(layers);
  }

  void head_backward(const Turn& turn) {
    brief(TensorKind::logits, {head_.loss_work()});
    head_gradients(turn);
  }

  void head_gradients(const Turn& turn) {
    Tensors& head = heads_[{turn.micro_batch, turn.chunk}];
    Tensors brief_ones;
    if (narrow_gradients())
      add_to(gradients_wait() ? gradients_ : brief_ones, TensorKind::gradients,
             r_.low * r_.sizes.vocab * r_.sizes.hidden);
    free(brief_ones);
    free(head);
  }

  /// 16-bit gradients as backward makes them; none where products add to those that stay.
  bool narrow_gradients() const {
    if (r_.sharded()) return !r_.accumulates();
    return software_.eager() && !software_.data.autocast;
  }
  /// FSDP reduces them by unit; sums in a wider type take them when a backward is over; autograd
  /// adds the others to what stays at once.
  bool gradients_wait() const {
    return r_.sharded() || bytes_per_element(r_.in.gradient_dtype()) > r_.low;
  }
  void layer_gradients(std::size_t layer, Tensors& into) {
    if (!narrow_gradients()) return;
    for (const ParameterTensor& p : r_.parameters.layer(layer))
      add_to(into, TensorKind::gradients, r_.low * p.elements);
  }

  /// A unit's shard of gradients is made by its first reduction and freed after the update
  /// (zero_grad sets to none; torch's default from 2.0 on; recalled, 2026).
  void shard_gradients(const ParameterTensors& unit) {
    for (const ParameterTensor& p : unit)
      add_to(shards_, TensorKind::gradients, 4 * of_shard(p.elements, p.expert));
  }

  /// FSDP: the input of a unit's reduction lives until the next one's.
  void reduce_unit(std::size_t layer) {
    if (!r_.sharded()) return;
    const std::int64_t unit = elements_of(r_.parameters.layer(layer));
    free(reduced_);
    add_to(reduced_, TensorKind::communication, r_.wide * unit);
    if (software_.data.fsdp1()) add_to(reduced_, TensorKind::communication, r_.low * unit);
    free(gradients_);
    if (r_.accumulates() || reduced_layers_ == r_.parameters.layers) return;
    shard_gradients(r_.parameters.layer(layer));
    ++reduced_layers_;
  }
  /// The root's are made last; of gradients that have waited, all at once.
  void remaining_shards() {
    if (!r_.sharded()) return;
    for (; reduced_layers_ < r_.parameters.layers; ++reduced_layers_)
      shard_gradients(r_.parameters.layer(static_cast<std::size_t>(reduced_layers_)));
    shard_gradients(r_.parameters.root);
    reduced_layers_ = 0;
  }

  /// Moments are made by the first update. foreach AdamW keeps the roots of all second moments.
  void update(bool first) {
    remaining_shards();
    free(of_step_);
    Tensors forever, brief_ones;
    if (r_.deepspeed()) add_to(brief_ones, TensorKind::gradients, update_gradients(r_));
    if (first)
      for (int moment = 0; moment < 2; ++moment)
        of_parameters(forever, TensorKind::optimizer, [&](std::int64_t n, bool expert) {
          return moment_bytes(r_) * of_shard(n, expert);
        });
    if (software_.optimizer.kernel == OptimizerKernel::foreach)
      of_parameters(brief_ones, TensorKind::optimizer,
                    [&](std::int64_t n, bool expert) { return 4 * of_shard(n, expert); });
    free(brief_ones);
    free(shards_);
  }

  MemoryRank r_;
  std::vector<ActivationMemory> kept_;  // by kind of layer
  ActivationMemory head_;
  const Software& software_;
  StepAllocations out_;
  Tensors of_step_, gradients_, reduced_, shards_;
  std::int64_t reduced_layers_ = 0;
  std::deque<std::uint32_t> gathered_;
  std::map<Key, std::vector<Tensors>> layers_;
  std::map<Key, Tensors> heads_;
};

}  // namespace

StepAllocations step_allocations(const StepInputs& in, std::int64_t stage) {
  return AllocationWriter(in, stage).take();
}

}  // namespace stepcast::workloads
