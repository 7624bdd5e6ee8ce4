#include "workloads/memory/trainer_memory.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "workloads/pieces/expert_sizes.hpp"
#include "workloads/plan/pipeline.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {
namespace {

/// T tokens, L of them for norms and residuals, as in Sizes. Buffers are of the compute type, wide
/// (4 bytes: masters, sums, statistics) or of tokens (4 bytes).
class TrainerMemory {
 public:
  TrainerMemory(const StepInputs& in, std::int64_t stage)
      : in_(in),
        sizes_(in),
        parameters_(stage_parameters(in.shape, in.plan, in.precision, false, stage)),
        first_(stage == 0),
        last_(stage == in.plan.pipeline - 1),
        split_(in.plan.tensor > 1),
        mixed_(sizes_.element != wide),
        accumulates_(in.batch.micro_batches > 1),
        one_lane_(in.software.host.collectives_hold_core),
        all_(parameters_.elements()),
        layer_(parameters_.layer_elements()),
        root_(elements_of(parameters_.root)),
        experts_(parameters_.over_layers(expert_elements_of)) {
    const PipelineShape shape = pipeline_shape(in.plan, in.batch);
    for (std::size_t chunk = 0; chunk < parameters_.chunk_layers.size(); ++chunk) {
      std::vector<std::int64_t> this_one(parameters_.chunk_layers.size(), 0);
      this_one[chunk] = 1;
      slots_.push_back(peak_in_flight(shape, stage, this_one));
    }
  }

  Memory parts() const {
    return {{{"parameters", Bytes(parameters())},
             {"gathered parameters", Bytes(sizes_.element * gathered())},
             {"gradients", Bytes(wide * gradients() + waiting_gradients())},
             {"optimizer", Bytes(2 * wide * own())},
             {"activations", Bytes(activations())},
             {"logits", Bytes(slots_.back() * head())},
             {"communication", Bytes(communication())},
             {"work", Bytes(sizes_.element * work())}}};
  }

 private:
  static constexpr std::int64_t wide = 4, token = 4;  // bytes

  std::int64_t ranks() const { return in_.sharded() ? in_.plan.shards() : 1; }
  bool zero1() const { return in_.plan.data == DataParallel::zero1 && in_.plan.shards() > 1; }
  /// What the optimizer updates: of experts a shard of their own copies.
  std::int64_t own() const {
    if (!zero1()) return all_ / ranks();
    return (all_ - experts_) / in_.plan.shards() + experts_ / in_.plan.expert_copies();
  }
  /// Gathered from shards.
  std::int64_t cut() const {
    return zero1() && in_.plan.expert_copies() == 1 ? all_ - experts_ : all_;
  }
  /// Masters; where parameters are not sharded, what products read, unless it is the masters; zero1
  /// narrows its shards before they are gathered.
  std::int64_t parameters() const {
    const std::int64_t whole = !in_.sharded() && (mixed_ || zero1()) ? cut() : 0;
    return wide * own() + sizes_.element * (whole + (mixed_ && zero1() ? own() : 0));
  }
  /// Reduced ones; zero1 copies its shards out of them.
  std::int64_t gradients() const { return zero1() ? all_ + own() : own(); }

  /// zero2: all units, zero3: a layer and the root. Beside them the gathers: on one lane the
  /// largest one's, whose memory serves a layer where it is larger; on lanes of their own, the
  /// root's and those of the layers ahead, by turns with the one that is copied out. With virtual
  /// stages a buffer serves units of one size alone.
  std::int64_t gathered() const {
    if (!in_.sharded()) return 0;
    const bool shared = root_ >= layer_;
    const std::int64_t whole = in_.plan.data == DataParallel::zero3 ? root_ + layer_ : all_;
    const std::int64_t largest_chunk = std::ranges::max(parameters_.chunk_layers);
    if (in_.plan.virtual_stages > 1)
      return whole + root_ +
             (1 + (one_lane_ ? 0 : std::min(in_.plan.prefetch, largest_chunk))) * layer_;
    if (one_lane_) return whole + root_ + (shared ? 0 : layer_);
    const std::int64_t ahead = in_.plan.prefetch + (shared ? 0 : 1);
    return whole + root_ + std::min(ahead, largest_chunk) * layer_;
  }

  /// Whole gradients beside the shards: of several micro-batches wide, by unit, else narrow, the
  /// layers' by turns in two where reductions run beside compute. And those of one unit that are to
  /// be added or widened.
  std::int64_t waiting_gradients() const {
    const std::int64_t unit = sizes_.element * (root_ + layer_);
    if (!in_.sharded()) return mixed_ || accumulates_ ? unit : 0;
    if (accumulates_) return wide * all_ + unit;
    return unit + (one_lane_ ? 0 : sizes_.element * layer_);
  }

  std::int64_t attention_activations() const {
    const Sizes& s = sizes_;
    const std::int64_t statistics = 2 * s.local_tokens + s.tokens * s.heads;
    return wide * statistics +
           s.element * (2 * s.tokens * s.hidden + s.tokens * (2 * s.query + 2 * s.kv) + local());
  }
  std::int64_t dense_activations() const { return sizes_.element * 3 * sizes_.tokens * sizes_.ffn; }
  /// Room for all rows that may come. Scores, choices and rows of tokens, counts; inputs of the
  /// experts with their weights, gate, up and their product.
  std::int64_t expert_activations() const {
    const ExpertSizes e(in_);
    return token * (2 * e.tokens * e.per_token + 2 * e.all) +
           e.element * (e.tokens * e.all + e.most * (e.hidden + 1 + 3 * e.ffn));
  }
  LayerKind kind_of(std::size_t layer) const {
    return parameters_.kinds.at(parameters_.kind_of.at(layer)).kind;
  }
  std::int64_t layer_activations(LayerKind kind) const {
    return attention_activations() + (kind.experts() ? expert_activations() : dense_activations());
  }
  /// Of a layer at a time, whichever it is.
  std::int64_t any_layer_activations() const {
    bool dense = false, experts = false;
    for (const AlikeLayers& alike : parameters_.kinds)
      (alike.kind.experts() ? experts : dense) = true;
    return attention_activations() + (dense ? dense_activations() : 0) +
           (experts ? expert_activations() : 0);
  }
  /// Chunk by chunk; with virtual stages the input of one micro-batch more.
  std::int64_t activations() const {
    const bool again = in_.plan.recompute == Recompute::full;
    const std::int64_t ahead = in_.plan.virtual_stages > 1 ? 1 : 0;
    std::int64_t bytes = (again ? any_layer_activations() : 0) +
                         (first_ ? slots_.front() * token * sizes_.tokens : 0);
    std::size_t layer = 0;
    for (std::size_t chunk = 0; chunk < slots_.size(); ++chunk) {
      const std::int64_t slots = slots_[chunk], layers = parameters_.chunk_layers[chunk];
      const std::int64_t inputs = std::min(slots + ahead, in_.batch.micro_batches);
      bytes += sizes_.element * local() * (inputs + slots * layers);
      for (std::int64_t i = 0; i < layers; ++i, ++layer)
        if (!again) bytes += slots * layer_activations(kind_of(layer));
    }
    return bytes;
  }
  /// Statistics and output of the final norm, logits, their log-sum-exp, targets.
  std::int64_t head() const {
    const Sizes& s = sizes_;
    if (!last_) return 0;
    return wide * (s.local_tokens + s.tokens) + token * s.tokens +
           s.element * s.tokens * (s.hidden + s.vocab);
  }

  /// A shard on its way and the largest unit to be reduced; norms under sequence parallel; two
  /// numbers per tensor and three for the norm of all gradients; the loss and numbers per token.
  std::int64_t communication() const {
    const std::int64_t largest = std::max(root_, layer_), n = ranks();
    const bool narrow = in_.sharded() && (mixed_ || n > 1);
    const std::int64_t norms =
        parameters_.over_layers(replicated_elements_of) + replicated_elements_of(parameters_.root);
    const std::int64_t sequence = split_ && in_.plan.sequence_parallel ? norms / n : 0;
    const std::int64_t loss = last_ ? 1 + (split_ ? 4 : 1) * sizes_.tokens : 0;
    return (narrow ? sizes_.element * (largest / n) : 0) +
           wide * ((n > 1 ? largest : 0) + sequence + 2 * parameters_.tensors() + 3 + loss);
  }

  /// Gradients of a layer's tensors while it is at work, and of each micro-batch the one on its way
  /// down.
  std::int64_t work() const {
    const Sizes& s = sizes_;
    const std::int64_t slots = std::accumulate(slots_.begin(), slots_.end(), std::int64_t{0});
    return 2 * s.tokens * s.hidden + (1 + slots) * local() + 3 * s.tokens * s.ffn +
           2 * s.tokens * (s.query + s.kv) + expert_work();
  }
  /// Rows with their weights: of this rank's tokens, by source where they come from several ranks,
  /// by expert where they come to several; gradients of gate, up and product, scores and inputs.
  std::int64_t expert_work() const {
    if (in_.shape.experts.count == 0) return 0;
    const ExpertSizes e(in_);
    const bool shared = in_.plan.expert.degree > 1;
    const std::int64_t orders = (shared ? 1 : 0) + (shared && e.experts > 1 ? 1 : 0);
    return (e.sent + orders * e.most) * (e.hidden + 1) + 3 * e.most * e.ffn +
           e.tokens * (e.all + e.hidden);
  }
  std::int64_t local() const { return sizes_.local_tokens * sizes_.hidden; }

  const StepInputs& in_;
  Sizes sizes_;
  StageParameters parameters_;
  bool first_, last_, split_, mixed_, accumulates_, one_lane_;
  std::int64_t all_, layer_, root_, experts_;
  std::vector<std::int64_t> slots_;  // micro-batches in flight, by chunk
};

}  // namespace

Memory trainer_memory(const StepInputs& in, std::int64_t stage) {
  return TrainerMemory(in, stage).parts();
}

}  // namespace stepcast::workloads
