#include "workloads/memory/trainer_memory.hpp"

#include <algorithm>

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
        parameters_(stage_parameters(in.shape, in.plan, false, stage)),
        first_(stage == 0),
        last_(stage == in.plan.pipeline - 1),
        split_(in.plan.tensor > 1),
        mixed_(sizes_.element != wide),
        accumulates_(in.batch.micro_batches > 1),
        one_lane_(in.software.host.collectives_hold_core),
        all_(parameters_.elements()),
        layer_(elements_of(parameters_.layer)),
        root_(elements_of(parameters_.root)),
        slots_(peak_in_flight({in.plan.schedule, in.plan.pipeline, in.batch.micro_batches, 1},
                              stage, {1})) {}

  Memory parts() const {
    return {{{"parameters", Bytes(parameters())},
             {"gathered parameters", Bytes(sizes_.element * gathered())},
             {"gradients", Bytes(wide * own() + waiting_gradients())},
             {"optimizer", Bytes(2 * wide * own())},
             {"activations", Bytes(activations())},
             {"logits", Bytes(slots_ * head())},
             {"communication", Bytes(communication())},
             {"work", Bytes(sizes_.element * work())}}};
  }

 private:
  static constexpr std::int64_t wide = 4, token = 4;  // bytes

  std::int64_t ranks() const { return in_.sharded() ? in_.plan.shards() : 1; }
  std::int64_t own() const { return all_ / ranks(); }
  /// Masters; where they are not sharded, the copy that products read as well.
  std::int64_t parameters() const {
    return wide * own() + (mixed_ && !in_.sharded() ? sizes_.element * all_ : 0);
  }

  /// zero2: all units, zero3: a layer and the root. Beside them the gathers: on one lane the
  /// largest one's, whose memory serves a layer where it is larger; on lanes of their own, the
  /// root's and those of the layers ahead, by turns with the one that is copied out.
  std::int64_t gathered() const {
    if (!in_.sharded()) return 0;
    const bool shared = root_ >= layer_;
    const std::int64_t whole = in_.plan.data == DataParallel::zero3 ? root_ + layer_ : all_;
    if (one_lane_) return whole + root_ + (shared ? 0 : layer_);
    const std::int64_t ahead = in_.plan.prefetch + (shared ? 0 : 1);
    return whole + root_ + std::min(ahead, parameters_.layers) * layer_;
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

  std::int64_t layer_activations() const {
    const Sizes& s = sizes_;
    const std::int64_t statistics = 2 * s.local_tokens + s.tokens * s.heads;
    return wide * statistics +
           s.element * (2 * s.tokens * s.hidden + s.tokens * (2 * s.query + 2 * s.kv) + local() +
                        3 * s.tokens * s.ffn);
  }
  std::int64_t activations() const {
    const bool again = in_.plan.recompute == Recompute::full;
    const std::int64_t inputs = sizes_.element * (parameters_.layers + 1) * local();
    const std::int64_t tokens = first_ ? token * sizes_.tokens : 0;
    const std::int64_t kept = again ? 0 : parameters_.layers * layer_activations();
    return slots_ * (inputs + tokens + kept) + (again ? layer_activations() : 0);
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
    const std::int64_t norms = parameters_.layers * replicated_elements_of(parameters_.layer) +
                               replicated_elements_of(parameters_.root);
    const std::int64_t sequence = split_ && in_.plan.sequence_parallel ? norms / n : 0;
    const std::int64_t loss = last_ ? 1 + (split_ ? 4 : 1) * sizes_.tokens : 0;
    return (narrow ? sizes_.element * (largest / n) : 0) +
           wide * ((n > 1 ? largest : 0) + sequence + 2 * parameters_.tensors() + 3 + loss);
  }

  /// Gradients of a layer's tensors while it is at work, and of each micro-batch the one on its way
  /// down.
  std::int64_t work() const {
    const Sizes& s = sizes_;
    return 2 * s.tokens * s.hidden + (1 + slots_) * local() + 3 * s.tokens * s.ffn +
           2 * s.tokens * (s.query + s.kv);
  }
  std::int64_t local() const { return sizes_.local_tokens * sizes_.hidden; }

  const StepInputs& in_;
  Sizes sizes_;
  StageParameters parameters_;
  bool first_, last_, split_, mixed_, accumulates_, one_lane_;
  std::int64_t all_, layer_, root_, slots_;
};

}  // namespace

Memory trainer_memory(const StepInputs& in, std::int64_t stage) {
  return TrainerMemory(in, stage).parts();
}

}  // namespace stepcast::workloads
