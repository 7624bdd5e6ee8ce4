// After the last backward: gradients that more ranks share are summed, all are scaled down to the
// largest norm allowed, and AdamW updates what this rank owns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "validate/trainer_parameters.hpp"
#include "validate/trainer_plan.hpp"
#include "validate/trainer_step_calls.hpp"

namespace stepcast::validate {

template <class Real>
class Optimizer {
 public:
  Optimizer(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls,
            Parameters<Real>& parameters);

  /// Norm weights under sequence parallel, each tensor rank having seen its tokens only; tied
  /// embeddings on the first and the last stage.
  void sum_shared_gradients();
  void update();

  double gradient_norm() const { return norm_; }  // of the last update, before clipping
  Buffer<Real>& first_moments() { return m_; }
  Buffer<Real>& second_moments() { return v_; }
  std::int64_t& steps() { return steps_; }

 private:
  struct Owned {  // a tensor's gradient, and by how many ranks of the world it is held
    std::size_t unit, tensor;
    double copies;
    bool replicated;  // a norm: whole on every tensor rank
  };
  double clip();
  double world_squares();

  const TrainerJob& job_;
  const RankShare& share_;
  StepCalls<Real>& calls_;
  Parameters<Real>& parameters_;
  std::vector<Owned> owned_;
  Buffer<Real> m_, v_, norms_, sum_;
  std::int64_t steps_ = 0;
  double norm_ = 0.0;
};

}  // namespace stepcast::validate
