#include "workloads/memory/step_allocations.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "workloads/memory/layer_tensors.hpp"
#include "workloads/memory/rank.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/step/weight_casts.hpp"

namespace stepcast::workloads {
namespace {

using Tensors = std::vector<std::uint32_t>;

class AllocationWriter {
 public:
  AllocationWriter(const StepInputs& in, std::int64_t stage)
      : r_(in, stage), gathered_layer_(gathered_layer(r_)), software_(in.software) {
    for (const AlikeLayers& alike : r_.parameters.kinds) tensors_.emplace_back(in, alike.kind);
    const ActivationMemory head(in);
    head_ = head.head_tensors();
    loss_work_ = head.loss_work();
  }

  StepAllocations take() {
    states();
    for (std::int64_t step = 0; step < 2; ++step) {
      begin_step();
      const std::vector<Turn> turns = turns_of_stage(shape(), r_.stage);
      for (std::size_t i = 0; i < turns.size(); ++i) {
        out_.turns.push_back({out_.order.size(), step, turns[i]});
        if (turns[i].paired)
          pair(turns[i], turns[i + 1]);
        else if (i == 0 || !turns[i - 1].paired)
          write(turns[i]);
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
    bytes_.push_back(bytes);
    in_use_ += bytes;
    out_.most_in_use = std::max(out_.most_in_use, in_use_);
    return id;
  }
  void add_to(Tensors& tensors, TensorKind kind, std::int64_t bytes) {
    if (bytes > 0) tensors.push_back(add(kind, bytes));
  }
  void add_all(Tensors& tensors, TensorKind kind, std::span<const std::int64_t> bytes) {
    for (const std::int64_t b : bytes) add_to(tensors, kind, b);
  }
  void free(Tensors& tensors) {
    for (const std::uint32_t id : tensors) free(id);
    tensors.clear();
  }
  void free(std::uint32_t id) {
    out_.order.push_back({id, {}, 0});
    in_use_ -= bytes_[id];
  }
  void brief(TensorKind kind, std::span<const std::int64_t> bytes) {
    add_all(brief_, kind, bytes);
    free(brief_);
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
  /// Of them those with optimizer states on the GPU.
  std::int64_t updated(std::int64_t elements, bool expert) const {
    const std::int64_t all = of_shard(elements, expert);
    return all - offloaded_states(r_, all);
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
                    [&](std::int64_t n, bool expert) { return 4 * updated(n, expert); });
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
      free(gathered_.front());
      gathered_.pop_front();
    }
    gathered_.push_back(add(TensorKind::gathered, gathered_layer_));
    if (!software_.data.fsdp1()) brief(TensorKind::gathered, {&gathered_layer_, 1});
  }
  void end_gathers() {
    for (const std::uint32_t id : gathered_) free(id);
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
  const LayerTensors& tensors_of(std::size_t layer) const {
    return tensors_[r_.parameters.kind_of[layer]];
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
    begin_forward(turn);
    for (std::int64_t i = 0; i < layers_of(turn); ++i) forward_layer(turn, i);
    end_forward(turn);
  }

  /// A layer of each by turns.
  void pair(const Turn& ahead, const Turn& back) {
    begin_forward(ahead);
    if (last_part(back)) head_backward(back);
    std::int64_t next = 0, last = layers_of(back);
    while (next < layers_of(ahead) || last > 0) {
      if (next < layers_of(ahead)) forward_layer(ahead, next++);
      if (last > 0) backward_layer(back, --last);
    }
    end_forward(ahead);
    end_chunk(layers_[{back.micro_batch, back.chunk}]);
  }

  void begin_forward(const Turn& turn) {
    Tensors embedding;
    if (r_.first_part(turn.chunk))
      add_to(embedding, TensorKind::activations, r_.sizes.local_bytes());
    layers_[{turn.micro_batch, turn.chunk}].push_back(embedding);
  }

  void forward_layer(const Turn& turn, std::int64_t i) {
    gather();
    if (leaving_.size() > 1) leave();
    const LayerTensors& of_layer = tensors_of(layer_of(turn, i));
    Tensors kept;
    if (recomputed(i)) {
      add_to(kept, TensorKind::activations, r_.sizes.local_bytes());
    } else {
      kept.reserve(of_layer.kept.size() + 1);
      add_all(kept, TensorKind::activations, of_layer.kept);
      if (!core_again()) add_to(kept, TensorKind::activations, of_layer.scores);
    }
    layers_[{turn.micro_batch, turn.chunk}].push_back(std::move(kept));
    if (away(turn, i) > 0) leaving_.push_back({{turn.micro_batch, turn.chunk}, i + 1});
    brief(TensorKind::work, of_layer.forward_work);
  }

  void end_forward(const Turn& turn) {
    end_gathers();
    if (!last_part(turn)) return;
    Tensors& head = heads_[{turn.micro_batch, turn.chunk}];
    add_all(head, TensorKind::logits, head_);
    brief(TensorKind::logits, {&loss_work_, 1});
  }

  /// Bytes of a part's i-th layer that go to the host; the last stays.
  std::int64_t away(const Turn& turn, std::int64_t i) const {
    if (i + 1 == layers_of(turn)) return 0;
    return tensors_of(layer_of(turn, i)).memory.offloaded_bytes(i);
  }
  /// What has gone out first: of tensors that lie on both sides what stays is made anew.
  void leave() {
    const auto [key, place] = leaving_.front();
    leaving_.pop_front();
    Tensors& kept = layers_[key][static_cast<std::size_t>(place)];
    std::int64_t bytes = 0;
    for (const std::uint32_t tensor : kept) bytes += bytes_[tensor];
    free(kept);
    const double stays = 1.0 - r_.in.plan.offload.activations;
    add_to(kept, TensorKind::activations,
           static_cast<std::int64_t>(stays * static_cast<double>(bytes)));
  }

  void backward(const Turn& turn) {
    if (last_part(turn)) head_backward(turn);
    while (!leaving_.empty()) leave();
    for (std::int64_t i = layers_of(turn); i-- > 0;) backward_layer(turn, i);
    end_chunk(layers_[{turn.micro_batch, turn.chunk}]);
  }

  void backward_layer(const Turn& turn, std::int64_t i) {
    std::vector<Tensors>& layers = layers_[{turn.micro_batch, turn.chunk}];
    gather();
    if (i > 0 && away(turn, i - 1) > 0)
      add_to(layers[static_cast<std::size_t>(i)], TensorKind::activations, away(turn, i - 1));
    const std::size_t layer = layer_of(turn, i);
    const LayerTensors& of_layer = tensors_of(layer);
    if (recomputed(i)) add_all(brief_, TensorKind::activations, of_layer.kept);
    if (recomputed(i) || core_again()) add_to(brief_, TensorKind::activations, of_layer.scores);
    add_all(brief_, TensorKind::work, of_layer.backward_work);
    if (r_.in.plan.expert.delay_wgrad)
      add_to(brief_, TensorKind::activations, of_layer.output_gradients);
    layer_gradients(layer, gradients_wait() ? gradients_ : brief_);
    free(brief_);
    free(layers.back());
    layers.pop_back();
    reduce_unit(layer);
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
    if (last_part(turn)) brief(TensorKind::logits, {&loss_work_, 1});
    std::vector<Tensors>& layers = layers_[{turn.micro_batch, turn.chunk}];
    for (std::int64_t i = layers_of(turn) - 1; i >= 0; --i) {
      gather();
      const LayerTensors& of_layer = tensors_of(layer_of(turn, i));
      Tensors& kept = layers[static_cast<std::size_t>(i + 1)];
      if (recomputed(i)) add_all(kept, TensorKind::activations, of_layer.kept);
      if (recomputed(i) || r_.in.plan.recompute == Recompute::selective)
        add_to(brief_, TensorKind::activations, of_layer.scores);
      add_to(kept, TensorKind::activations, of_layer.output_gradients);
      add_all(brief_, TensorKind::work, of_layer.backward_work);
      free(brief_);
    }
    end_gathers();
  }

  void weight_gradients(const Turn& turn) {
    if (last_part(turn)) head_gradients(turn);
    std::vector<Tensors>& layers = layers_[{turn.micro_batch, turn.chunk}];
    for (std::int64_t i = layers_of(turn) - 1; i >= 0; --i) {
      const std::size_t layer = layer_of(turn, i);
      layer_gradients(layer, gradients_wait() ? gradients_ : brief_);
      free(brief_);
      free(layers.back());
      layers.pop_back();
      reduce_unit(layer);
    }
    end_chunk(layers);
  }

  void head_backward(const Turn& turn) {
    brief(TensorKind::logits, {&loss_work_, 1});
    head_gradients(turn);
  }

  void head_gradients(const Turn& turn) {
    Tensors& head = heads_[{turn.micro_batch, turn.chunk}];
    if (narrow_gradients())
      add_to(gradients_wait() ? gradients_ : brief_, TensorKind::gradients,
             r_.low * r_.sizes.vocab * r_.sizes.hidden);
    free(brief_);
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
    Tensors forever;
    if (r_.deepspeed()) add_to(brief_, TensorKind::gradients, update_gradients(r_));
    if (first)
      for (int moment = 0; moment < 2; ++moment)
        of_parameters(forever, TensorKind::optimizer, [&](std::int64_t n, bool expert) {
          return moment_bytes(r_) * updated(n, expert);
        });
    if (software_.optimizer.kernel == OptimizerKernel::foreach)
      of_parameters(brief_, TensorKind::optimizer,
                    [&](std::int64_t n, bool expert) { return 4 * updated(n, expert); });
    free(brief_);
    free(shards_);
  }

  MemoryRank r_;
  std::vector<LayerTensors> tensors_;  // by kind of layer
  std::vector<std::int64_t> head_;
  std::int64_t loss_work_ = 0, gathered_layer_;
  const Software& software_;
  StepAllocations out_;
  std::vector<std::int64_t> bytes_;  // by tensor
  std::int64_t in_use_ = 0;
  Tensors of_step_, gradients_, reduced_, shards_;
  Tensors brief_;  // freed in the function that makes them
  std::int64_t reduced_layers_ = 0;
  std::deque<std::uint32_t> gathered_;
  std::map<Key, std::vector<Tensors>> layers_;
  std::map<Key, Tensors> heads_;
  std::deque<std::pair<Key, std::int64_t>> leaving_;  // layers under way to the host
};

}  // namespace

StepAllocations step_allocations(const StepInputs& in, std::int64_t stage) {
  return AllocationWriter(in, stage).take();
}

}  // namespace stepcast::workloads
