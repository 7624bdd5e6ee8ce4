#include "workloads/memory/step_allocations.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "workloads/memory/allocation_sinks.hpp"
#include "workloads/memory/layer_tensors.hpp"
#include "workloads/memory/rank.hpp"
#include "workloads/memory/state_tensors.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/plan/low_precision.hpp"

namespace stepcast::workloads {
namespace {

/// Tells a sink of every tensor of a stage's step, in order.
template <class Sink>
class AllocationWriter {
 public:
  AllocationWriter(const MemoryRank& rank, Sink& sink)
      : r_(rank),
        out_(sink),
        states_(rank, sink),
        gathered_layer_(gathered_layer(rank)),
        software_(rank.in.software) {
    for (const AlikeLayers& alike : r_.parameters.kinds)
      tensors_.emplace_back(r_.in, alike.kind, r_.low, alike.tensors);
    const ActivationMemory head(r_.in);
    std::vector<std::int64_t> kept = head.head_tensors();
    logits_ = TensorSizes({kept.back()});
    kept.pop_back();
    head_ = TensorSizes(std::move(kept));
    logits_before_copy_ = head.logits_before_copy();
    loss_forward_ = TensorSizes(head.loss_forward_tensors());
    loss_work_ = TensorSizes(head.loss_work_tensors());
  }

  /// What stays from step to step; without the moments, which the first update makes.
  void states() { states_.write(); }
  void moments() { states_.moments(); }

  /// `before_moments`: the first step, whose update makes them.
  void step(std::int64_t index, bool before_moments) {
    begin_step();
    const std::vector<Turn> turns = turns_of_stage(told_shape(r_), r_.stage);
    alike_ = Sink::counts && r_.in.plan.offload.activations == 0 &&
             std::ranges::none_of(turns, [](const Turn& turn) {
               return turn.paired || turn.pass == Pass::input_gradient;
             });
    for (std::size_t i = 0; i < turns.size(); ++i) {
      out_.turn(index, turns[i]);
      if (turns[i].paired)
        pair(turns[i], turns[i + 1]);
      else if (i == 0 || !turns[i - 1].paired)
        alike_ ? write_or_repeat(turns[i]) : write(turns[i]);
    }
    out_.turn(index, std::nullopt);
    update(before_moments);
  }

 private:
  using Tensors = typename Sink::Tensors;
  using Key = std::pair<std::int64_t, std::int64_t>;  // micro-batch, chunk
  /// Of a layer, by halves, or of the embedding.
  struct Kept {
    Tensors attention{}, mlp{};
  };

  void add_to(Tensors& tensors, TensorKind kind, std::int64_t bytes, Stream stream = {}) {
    if (bytes > 0) out_.add(tensors, kind, bytes, stream);
  }
  void add_all(Tensors& tensors, TensorKind kind, const TensorSizes& sizes) {
    out_.add_all(tensors, kind, sizes);
  }
  void free(Tensors& tensors) { out_.free(tensors); }
  void free(Kept& kept) {
    free(kept.attention);
    free(kept.mlp);
  }
  void brief(TensorKind kind, std::int64_t bytes, Stream stream = {}) {
    add_to(brief_, kind, bytes, stream);
    free(brief_);
  }

  /// FSDP2 copies what it has gathered out of the buffer of its stream; FSDP1 uses it there.
  bool copies_out() const { return software_.data.flat_parameters == FlatParameters::fsdp2; }
  Stream gather_stream() const { return r_.own_streams() ? Stream::gather : Stream::compute; }
  /// On which the inputs of reductions are made: FSDP2's from torch 2.5 on with the layers.
  Stream reduce_stream() const {
    const bool compute = copies_out() && software_.data.reduce_copy_compute;
    return r_.own_streams() && !compute ? Stream::reduce : Stream::compute;
  }
  /// Of a unit that stays for the step.
  void gather_for_step(std::int64_t bytes) {
    const bool copied = r_.own_streams() && copies_out();
    if (copied) add_to(brief_, TensorKind::gathered, bytes, Stream::gather);
    add_to(of_step_, TensorKind::gathered, bytes, copied ? Stream::compute : gather_stream());
    free(brief_);
  }

  void begin_step() {
    static_buffers();
    if (software_.data.autocast && !r_.sharded())
      states_.of_parameters(of_step_, TensorKind::gathered,
                            [&](const ParameterTensor& p) { return r_.low * p.elements; });
    if (!r_.sharded()) return;
    if (!r_.splits_root())
      gather_for_step(r_.low * r_.root - (r_.embedding_apart() ? words_bytes() : 0));
    if (!r_.zero3())
      for (std::size_t i = 0; i < r_.parameters.kind_of.size(); ++i)
        gather_for_step(
            gathered_bytes_of(r_.in.precision, r_.parameters.kinds[r_.parameters.kind_of[i]]));
    if (r_.accumulates())
      states_.of_parameters(of_step_, TensorKind::gradients,
                            [&](const ParameterTensor& p) { return r_.wide * p.elements; });
  }

  /// Where a static graph has room for more micro-batches than are ever in flight.
  void static_buffers() {
    if (r_.buffers() == 0) return;
    const std::vector<std::int64_t> each(r_.parameters.chunk_layers.size(), 1);
    const std::int64_t parts = static_cast<std::int64_t>(each.size());
    const std::int64_t idle = r_.buffers() - peak_in_flight(r_.schedule, r_.stage, each) / parts;
    for (std::int64_t chunk = 0; chunk < parts; ++chunk) {
      const Turn turn{.chunk = chunk};
      for (std::int64_t i = 0; i < layers_of(turn); ++i) {
        const LayerTensors& layer = tensors_of(layer_of(turn, i));
        const std::int64_t kept =
            recomputed(i) ? r_.sizes.local_bytes()
                          : layer.attention.sum + layer.mlp.sum + (core_again() ? 0 : layer.scores);
        add_to(of_step_, TensorKind::activations, std::max<std::int64_t>(0, idle) * kept);
      }
    }
  }

  /// zero3: the unit in use and those gathered ahead; what falls out is freed.
  void gather() {
    if (!r_.zero3()) return;
    gather(gathered_layer_);
    if (!copies_out()) return;
    if (copied_out_) return brief(TensorKind::gathered, gathered_layer_, gather_stream());
    // What has been gathered ahead is copied, with both alive.
    add_to(brief_, TensorKind::gathered, gathered_layer_);
    free(gathered_.front());
    gathered_.front() = std::exchange(brief_, Tensors{});
    copied_out_ = true;
  }
  void gather(std::int64_t bytes) {
    const std::int64_t most = std::min(r_.parameters.layers, 1 + r_.in.plan.prefetch);
    while (static_cast<std::int64_t>(gathered_.size()) >= most) {
      free(gathered_.front());
      gathered_.pop_front();
      copied_out_ = false;
    }
    add_to(gathered_.emplace_back(), TensorKind::gathered, bytes, gather_stream());
  }
  /// Head, or embedding.
  void gather_words() {
    if (r_.splits_root()) gather(words_bytes());
  }
  void gather_embedding() { r_.embedding_apart() ? gather(words_bytes()) : gather_words(); }
  std::int64_t words_bytes() const { return r_.low * r_.sizes.vocab * r_.sizes.hidden; }
  void end_gathers() {
    for (Tensors& unit : gathered_) free(unit);
    gathered_.clear();
    copied_out_ = false;
  }

  bool recomputed(std::int64_t layer) const {
    return r_.in.plan.recompute == Recompute::full && layer % r_.in.plan.recompute_every == 0;
  }
  bool core_again() const { return r_.in.core_again(); }
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

  /// A turn does the same for each micro-batch, which a tally knows from the first; a backward from
  /// the first that finds the shards of gradients made.
  void write_or_repeat(const Turn& turn) {
    if constexpr (Sink::counts) {
      const auto chunk = static_cast<std::size_t>(turn.chunk);
      const bool forward = turn.pass == Pass::forward;
      known_.resize(r_.parameters.chunk_layers.size());
      Known& known = known_[chunk];
      std::optional<typename Sink::Effect>& effect = forward ? known.forward : known.backward;
      if (effect) return out_.repeat(*effect);
      const bool settled =
          forward || !r_.sharded() || r_.accumulates() || states_.all_layers_reduced();
      const Key key{turn.micro_batch, turn.chunk};
      if (!forward) layers_[key] = known.layers, heads_[key] = known.head;
      out_.begin_effect();
      write(turn);
      const typename Sink::Effect written = out_.end_effect();
      if (settled) effect = written;
      if (forward) known.layers = layers_[key], known.head = heads_[key];
    }
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
    end_chunk(back);
  }

  void begin_forward(const Turn& turn) {
    Kept embedding;
    if (r_.first_part(turn.chunk)) {
      gather_embedding();
      add_to(embedding.attention, TensorKind::activations, r_.sizes.local_bytes());
    }
    layers_[{turn.micro_batch, turn.chunk}].push_back(embedding);
  }

  void forward_layer(const Turn& turn, std::int64_t i) {
    gather();
    if (leaving_.size() > 1) leave();
    const LayerTensors& of_layer = tensors_of(layer_of(turn, i));
    Kept kept;
    if (recomputed(i)) {
      forward_without_graph(of_layer, kept);
    } else {
      add_all(kept.attention, TensorKind::activations, of_layer.attention);
      add_all(kept.mlp, TensorKind::activations, of_layer.mlp);
      if (!core_again()) add_to(kept.attention, TensorKind::activations, of_layer.scores);
    }
    layers_[{turn.micro_batch, turn.chunk}].push_back(std::move(kept));
    if (away(turn, i) > 0) leaving_.push_back({{turn.micro_batch, turn.chunk}, i + 1});
    add_all(brief_, TensorKind::work, of_layer.forward_work);
    free(brief_);
  }

  /// Of a layer that runs again in backward: each half's tensors are there until the half is over,
  /// since names of its function hold them, and only then its output, which the next layer keeps.
  /// Where outputs lie among what was freed decides what the halves of later layers find
  /// (CheckpointFunction of torch/utils/checkpoint.py, whose copies were read 2026-11).
  void forward_without_graph(const LayerTensors& of_layer, Kept& kept) {
    add_all(brief_, TensorKind::work, of_layer.attention_alone);
    add_to(brief_, TensorKind::work, of_layer.scores);
    Tensors between{}, mlp{};
    add_to(between, TensorKind::work, r_.sizes.local_bytes());
    free(brief_);
    add_all(mlp, TensorKind::work, of_layer.mlp_alone);
    add_to(kept.attention, TensorKind::activations, r_.sizes.local_bytes());
    free(mlp);
    free(between);
  }

  void end_forward(const Turn& turn) {
    end_gathers();
    if (!last_part(turn)) return;
    gather_words();
    Tensors& head = heads_[{turn.micro_batch, turn.chunk}];
    add_all(head, TensorKind::logits, head_);
    Tensors before{};
    add_to(before, TensorKind::logits, logits_before_copy_);
    add_all(brief_, TensorKind::logits, loss_forward_);
    free(before);
    add_all(head, TensorKind::logits, logits_);
    free(brief_);
    if (loss_forward_.sum == 0) loss_peak();
    end_gathers();
  }
  /// Of kernels that do in forward what they do in backward, of both.
  void loss_peak() {
    add_all(brief_, TensorKind::logits, loss_work_);
    free(brief_);
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
    Kept& kept = layers_[key][static_cast<std::size_t>(place)];
    const std::int64_t bytes = out_.bytes(kept.attention) + out_.bytes(kept.mlp);
    free(kept);
    const double stays = 1.0 - r_.in.plan.offload.activations;
    add_to(kept.attention, TensorKind::activations,
           static_cast<std::int64_t>(stays * static_cast<double>(bytes)));
  }

  void backward(const Turn& turn) {
    if (last_part(turn)) head_backward(turn);
    while (!leaving_.empty()) leave();
    for (std::int64_t i = layers_of(turn); i-- > 0;) backward_layer(turn, i);
    end_chunk(turn);
  }

  void backward_layer(const Turn& turn, std::int64_t i) {
    std::vector<Kept>& layers = layers_[{turn.micro_batch, turn.chunk}];
    gather();
    if (i > 0 && away(turn, i - 1) > 0)
      add_to(layers[static_cast<std::size_t>(i)].attention, TensorKind::activations,
             away(turn, i - 1));
    const std::size_t layer = layer_of(turn, i);
    const LayerTensors& of_layer = tensors_of(layer);
    Tensors& gradients = gradients_wait() ? gradients_ : brief_;
    if (recomputed(i)) add_all(brief_, TensorKind::activations, of_layer.attention);
    add_all(brief_, TensorKind::activations, of_layer.again);
    if (recomputed(i) || core_again()) add_to(brief_, TensorKind::activations, of_layer.scores);
    if (r_.in.plan.expert.delay_wgrad)
      add_to(brief_, TensorKind::activations, of_layer.output_gradients);
    Tensors mlp{};
    if (recomputed(i)) add_all(mlp, TensorKind::activations, of_layer.mlp);
    add_all(mlp, TensorKind::work, of_layer.mlp_work);
    layer_gradients(of_layer.last_gradient, r_.splits_root() ? mlp : gradients);
    if (of_layer.fullest_in_attention()) {
      free(mlp);
      free(layers.back().mlp);
      add_all(mlp, TensorKind::work, of_layer.attention_work);
    }
    add_to(mlp, TensorKind::communication, context_bytes(r_));
    free(mlp);
    layer_gradients(of_layer.gradients, gradients);
    free(brief_);
    if (recomputed(i) && holds_inputs()) {
      add_to(layers.back().mlp, TensorKind::activations, r_.sizes.local_bytes());
      held_.push_back(std::exchange(layers.back(), Kept{}));
    }
    free(layers.back());
    layers.pop_back();
    reduce_unit(layer);
  }
  /// FSDP1 learns from a hook on the input of a unit of frozen weights that its backward is over.
  /// Of a nested backward the input is a leaf, which the hook's handle keeps with its gradient
  /// until the last one (torch/distributed/fsdp/_runtime_utils.py, read 2026-11).
  bool holds_inputs() const {
    return software_.reentrant_recompute && software_.data.fsdp1() && r_.sharded() &&
           adapted(r_.in.shape);
  }

  void end_chunk(const Turn& turn) {
    std::vector<Kept>& layers = layers_[{turn.micro_batch, turn.chunk}];
    if (r_.first_part(turn.chunk)) gather_embedding(), words_gradients();
    free(brief_);
    free(layers.back());  // the embedding's output
    layers.pop_back();
    for (Kept& held : held_) free(held);
    held_.clear();
    end_gathers();
    free(reduced_);
    reduce_root();
    if (!r_.sharded()) free(gradients_);
  }
  /// FSDP's root unit has head and embedding: the head's gradients wait for the embedding's, and
  /// both are reduced when a backward ends (torch/distributed/fsdp, read 2026-11).
  void reduce_root() {
    const bool both = !(r_.splits_root() && r_.in.shape.tied_embeddings);  // or their sum
    add_to(brief_, TensorKind::communication,
           r_.wide * out_.bytes(root_gradients_) / (both ? r_.low : 2 * r_.low), reduce_stream());
    free(brief_);
    free(root_gradients_);
  }

  /// What products read for their weight gradients stays with the layer until then.
  void input_gradients(const Turn& turn) {
    if (last_part(turn)) loss_peak();
    std::vector<Kept>& layers = layers_[{turn.micro_batch, turn.chunk}];
    for (std::int64_t i = layers_of(turn) - 1; i >= 0; --i) {
      gather();
      const LayerTensors& of_layer = tensors_of(layer_of(turn, i));
      Tensors& kept = layers[static_cast<std::size_t>(i + 1)].attention;
      if (recomputed(i)) {
        add_all(kept, TensorKind::activations, of_layer.attention);
        add_all(kept, TensorKind::activations, of_layer.mlp);
      }
      add_all(kept, TensorKind::activations, of_layer.again);
      if (recomputed(i) || core_again()) add_to(brief_, TensorKind::activations, of_layer.scores);
      add_to(kept, TensorKind::activations, of_layer.output_gradients);
      add_all(brief_, TensorKind::work, of_layer.mlp_work);
      add_to(brief_, TensorKind::communication, context_bytes(r_));
      free(brief_);
    }
    end_gathers();
  }

  void weight_gradients(const Turn& turn) {
    if (last_part(turn)) head_gradients(turn);
    std::vector<Kept>& layers = layers_[{turn.micro_batch, turn.chunk}];
    for (std::int64_t i = layers_of(turn) - 1; i >= 0; --i) {
      const std::size_t layer = layer_of(turn, i);
      Tensors& gradients = gradients_wait() ? gradients_ : brief_;
      layer_gradients(tensors_of(layer).last_gradient, gradients);
      layer_gradients(tensors_of(layer).gradients, gradients);
      free(brief_);
      free(layers.back());
      layers.pop_back();
      reduce_unit(layer);
    }
    end_chunk(turn);
  }

  void head_backward(const Turn& turn) {
    loss_peak();
    head_gradients(turn);
  }

  void head_gradients(const Turn& turn) {
    Tensors& head = heads_[{turn.micro_batch, turn.chunk}];
    gather_words();
    words_gradients();
    free(brief_);
    free(head);
    const bool apart = r_.splits_root() || r_.embedding_apart();
    if (apart && !r_.in.shape.tied_embeddings) reduce_root();
  }
  /// Of the head's weights, or of the embedding's.
  void words_gradients() {
    if (adapted(r_.in.shape)) return;
    // Of tied words the second is added to the first.
    if (r_.makes_gradients() && !(r_.in.shape.tied_embeddings && made_words_))
      return made_words_ = true, make_gradient(words_bytes());
    if (!narrow_gradients()) return;
    Tensors& into = r_.sharded() ? root_gradients_ : gradients_wait() ? gradients_ : brief_;
    add_to(into, TensorKind::gradients, words_bytes());
  }

  /// That stays until the update; `bytes` in the compute type.
  void make_gradient(std::int64_t bytes) {
    add_to(made_, TensorKind::gradients,
           bytes / r_.low * bytes_per_element(r_.in.gradient_dtype()));
  }

  /// 16-bit gradients as backward makes them; none where products add to those that stay.
  bool narrow_gradients() const {
    if (r_.sharded()) return !r_.accumulates();
    if (sums_in_fp32(r_)) return true;
    return software_.eager() && !software_.data.autocast;
  }
  /// FSDP reduces gradients by unit. Sums in a wider type take whole gradients when a backward is
  /// over. Others, DeepSpeed's stage 3 too, go to a bucket or to their sum layer by layer.
  bool gradients_wait() const {
    if (r_.sharded()) return !r_.splits_root();
    return !r_.partitions() && bytes_per_element(r_.in.gradient_dtype()) > r_.low;
  }
  void layer_gradients(const TensorSizes& sizes, Tensors& into) {
    if (r_.makes_gradients()) {
      for (const std::int64_t bytes : sizes.each) make_gradient(bytes);
      return;
    }
    if (!narrow_gradients() || sizes.each.empty()) return;
    if (!r_.splits_root()) return add_all(into, TensorKind::gradients, sizes);
    add_to(into, TensorKind::gradients, std::ranges::max(sizes.each));  // each goes to the bucket
  }

  /// The input of a reduction lives until the next one's.
  void reduce_unit(std::size_t layer) {
    if (!r_.sharded()) return;
    const std::int64_t unit = reduced_together(r_, r_.trained().layer(layer));
    free(reduced_);
    add_to(reduced_, TensorKind::communication, r_.wide * unit, reduce_stream());
    if (software_.data.fsdp1())
      add_to(reduced_, TensorKind::communication, r_.low * unit, reduce_stream());
    free(gradients_);
    if (!r_.accumulates()) states_.reduce_layer(layer);
  }
  void update(bool makes_moments) {
    states_.reduce_rest();
    free(of_step_);
    if (r_.deepspeed()) add_to(brief_, TensorKind::gradients, update_gradients(r_));
    if (makes_moments) states_.moments();
    states_.update_work(brief_);
    free(brief_);
    free(made_);
    made_words_ = false;
    states_.end_step();
  }

  const MemoryRank& r_;
  Sink& out_;
  StateTensors<Sink> states_;
  std::vector<LayerTensors> tensors_;  // by kind of layer
  TensorSizes head_, logits_, loss_forward_, loss_work_;
  std::int64_t logits_before_copy_ = 0;
  std::int64_t gathered_layer_;
  const Software& software_;
  Tensors of_step_{}, gradients_{}, root_gradients_{}, reduced_{};
  Tensors made_{};  // gradients until the update
  bool made_words_ = false;
  Tensors brief_{};         // freed in the function that makes them
  std::vector<Kept> held_;  // by hooks, until backward ends
  std::deque<Tensors> gathered_;
  bool copied_out_ = false;  // FSDP2: the first of them
  /// Of a chunk's turns, whatever the micro-batch.
  struct Known {
    std::optional<typename Sink::Effect> forward, backward;
    std::vector<Kept> layers;
    Tensors head{};
  };
  bool alike_ = false;
  std::vector<Known> known_;
  std::map<Key, std::vector<Kept>> layers_;
  std::map<Key, Tensors> heads_;
  std::deque<std::pair<Key, std::int64_t>> leaving_;  // layers under way to the host
};

}  // namespace

StepAllocations step_allocations(const StepInputs& in, std::int64_t stage) {
  const MemoryRank rank(in, stage);
  AllocationRecord record;
  AllocationWriter writer(rank, record);
  writer.states();
  writer.step(0, true);
  writer.step(1, false);
  StepAllocations out = record.take();
  out.expandable = in.software.memory.expandable;
  return out;
}

KindBytes fullest_moment(const MemoryRank& rank) {
  AllocationTally tally;
  AllocationWriter writer(rank, tally);
  writer.states();
  writer.moments();
  writer.step(1, false);
  return tally.fullest();
}

}  // namespace stepcast::workloads
