// After the last backward: gradients that more ranks share are summed, all are scaled down to the
// largest norm allowed, and AdamW updates what this rank owns. With 16-bit floats of a small range
// (Half) the loss is scaled up and the gradients down; a step whose gradients are not finite is
// left out, and the scale is halved. All numbers stay on the device, but for that question.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "validate/trainer/device/plan.hpp"
#include "validate/trainer/model/parameters.hpp"
#include "validate/trainer/model/step_calls.hpp"

namespace stepcast::validate {

/// The factor of the loss, as torch.amp.GradScaler has it by default: halved after a step that is
/// not finite, doubled after 2000 steps that are.
struct LossScale {
  double value = 65536.0;
  std::int64_t good_steps = 0;

  void update(bool finite);
};

template <class Real>
class Optimizer {
 public:
  Optimizer(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls,
            Parameters<Real>& parameters);

  /// Norm weights under sequence parallel, each tensor rank having seen its tokens only; tied
  /// embeddings on the first and the last stage.
  void sum_shared_gradients();
  void update();

  /// Of the last update, before clipping; 0 where it was left out. Waits for it.
  double gradient_norm();
  double loss_scale() const { return scales_ ? scale_.value : 1.0; }
  LossScale& scale() { return scale_; }
  Buffer<Wide<Real>>& first_moments() { return m_; }
  Buffer<Wide<Real>>& second_moments() { return v_; }
  std::int64_t& steps() { return steps_; }

 private:
  using WideOut = std::span<Wide<Real>>;
  struct Owned {  // a tensor's gradient
    std::size_t unit, tensor;
    bool replicated;  // a norm: whole on every tensor rank
  };
  template <class F>
  void each_norm(F f);
  /// Whether gradients, scaled down, are finite on all ranks.
  bool unscaled();
  void clip();

  const TrainerJob& job_;
  const RankShare& share_;
  StepCalls<Real>& calls_;
  Parameters<Real>& parameters_;
  bool scales_, whole_on_every_rank_;
  std::vector<Owned> owned_;
  Buffer<Wide<Real>> m_, v_, norms_;
  Buffer<Wide<Real>> squares_, shares_;        // by tensor; its share of the model's sum
  Buffer<Wide<Real>> total_, factor_, found_;  // one number each
  LossScale scale_;
  bool updated_ = false;
  std::int64_t steps_ = 0;
};

}  // namespace stepcast::validate
