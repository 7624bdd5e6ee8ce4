#include "workloads/trainer_memory.hpp"

#include <algorithm>

#include "workloads/pipeline.hpp"
#include "workloads/rank_parameters.hpp"

namespace stepcast::workloads {
namespace {

/// Counts elements; T tokens, L of them for norms and residuals, as in Sizes.
class TrainerMemory {
 public:
  TrainerMemory(const StepInputs& in, std::int64_t stage)
      : in_(in),
        sizes_(in),
        parameters_(stage_parameters(in.shape, in.plan, false, stage)),
        last_(stage == in.plan.pipeline - 1),
        split_(in.plan.tensor > 1),
        all_(parameters_.elements()),
        layer_(elements_of(parameters_.layer)),
        root_(elements_of(parameters_.root)),
        slots_(peak_in_flight({in.plan.schedule, in.plan.pipeline, in.batch.micro_batches, 1},
                              stage, {1})) {}

  Memory parts() const {
    return {{part("parameters", own()), part("gathered parameters", gathered()),
             part("gradients", own() + waiting_gradients()), part("optimizer", 2 * own()),
             part("activations", activations()), part("logits", slots_ * head()),
             part("communication", communication()), part("work", work())}};
  }

 private:
  MemoryPart part(const char* name, std::int64_t elements) const {
    return {name, Bytes(sizes_.element * elements)};
  }
  std::int64_t ranks() const { return in_.sharded() ? in_.plan.shards() : 1; }
  std::int64_t own() const { return all_ / ranks(); }

  /// zero2: all units and what the largest gather needs. zero3: a layer and its gather, the root
  /// and its own, whose memory serves a layer where it is larger.
  std::int64_t gathered() const {
    if (!in_.sharded()) return 0;
    const bool shared = root_ >= layer_;
    const std::int64_t gathers = root_ + (shared ? 0 : layer_);
    return gathers + (in_.plan.data == DataParallel::zero3 ? root_ + layer_ : all_);
  }

  /// Whole gradients beside the shards, and those of a later micro-batch of one unit.
  std::int64_t waiting_gradients() const {
    const bool accumulates = in_.batch.micro_batches > 1;
    const std::int64_t unit = root_ + layer_;
    const std::int64_t whole = in_.sharded() ? (accumulates ? all_ : unit) : 0;
    return whole + (accumulates ? unit : 0);
  }

  std::int64_t layer_activations() const {
    const Sizes& s = sizes_;
    const std::int64_t heads = in_.shape.heads / in_.plan.tensor;
    const std::int64_t attention = s.tokens * (2 * s.query + 2 * s.kv + heads);
    return 2 * s.local_tokens + 2 * s.tokens * s.hidden + attention + local() +
           3 * s.tokens * s.ffn;
  }
  std::int64_t activations() const {
    const bool again = in_.plan.recompute == Recompute::full;
    const std::int64_t inputs = (parameters_.layers + 1) * local();
    const std::int64_t kept = again ? 0 : parameters_.layers * layer_activations();
    return slots_ * (inputs + kept) + (again ? layer_activations() : 0);
  }
  /// Statistics and output of the final norm, logits, their log-sum-exp.
  std::int64_t head() const {
    const Sizes& s = sizes_;
    return last_ ? s.local_tokens + s.tokens * (s.hidden + s.vocab + 1) : 0;
  }

  /// Shards on their way and the largest unit to be reduced; norms under sequence parallel; the
  /// norm of all gradients; numbers per token of the loss.
  std::int64_t communication() const {
    const std::int64_t largest = std::max(root_, layer_), n = ranks();
    const std::int64_t units = n > 1 ? largest / n + largest : 0;
    const std::int64_t norms = parameters_.layers * replicated_elements_of(parameters_.layer) +
                               replicated_elements_of(parameters_.root);
    const std::int64_t sequence = split_ && in_.plan.sequence_parallel ? norms / n : 0;
    return units + sequence + 1 + (last_ ? (split_ ? 4 : 1) * sizes_.tokens : 0);
  }

  /// Gradients of a layer's tensors while it is at work, and the one on its way down.
  std::int64_t work() const {
    const Sizes& s = sizes_;
    return 2 * s.tokens * s.hidden + 2 * local() + 3 * s.tokens * s.ffn +
           2 * s.tokens * (s.query + s.kv);
  }
  std::int64_t local() const { return sizes_.local_tokens * sizes_.hidden; }

  const StepInputs& in_;
  Sizes sizes_;
  StageParameters parameters_;
  bool last_, split_;
  std::int64_t all_, layer_, root_, slots_;
};

}  // namespace

Memory trainer_memory(const StepInputs& in, std::int64_t stage) {
  return TrainerMemory(in, stage).parts();
}

}  // namespace stepcast::workloads
