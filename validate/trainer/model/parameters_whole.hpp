// Parameters that every replica holds whole (ddp).
#pragma once

#include "validate/trainer/model/parameters.hpp"
#include "validate/trainer/model/parameters_layout.hpp"

namespace stepcast::validate {

template <class Real>
class WholeParameters final : public Parameters<Real> {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using WideOut = std::span<Wide<Real>>;

  WholeParameters(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls);

  In weight(std::size_t unit, std::size_t tensor) const override;
  Out gradient(std::size_t unit, std::size_t tensor) override;
  void complete(std::size_t unit, std::size_t tensor) override;

  void start_step() override {}
  void before_forward(std::size_t) override {}
  void after_forward(std::size_t) override {}
  void start_backward(bool first, bool) override { first_backward_ = first; }
  void before_backward(std::size_t) override {}
  void after_backward(std::size_t) override {}
  void finish_backward() override;

  WideOut own_weights() override { return masters_.all(); }
  WideOut own_gradients() override { return gradients_.all(); }
  WideOut own_gradient(std::size_t unit, std::size_t tensor) override;
  void after_update() override;

 private:
  void fill(const TrainerJob& job);
  std::size_t at(std::size_t unit, std::size_t tensor) const {
    return starts_[unit] + units_[unit].offsets[tensor];
  }

  StepCalls<Real>& calls_;
  std::vector<UnitLayout> units_;
  std::vector<std::size_t> starts_;
  Buffer<Wide<Real>> masters_, gradients_;
  Buffer<Real> weights_;  // the masters' narrow copy; none where they are as wide
  Buffer<Real> scratch_;  // gradients to be added to others or widened: the root's, one layer's
  std::size_t root_scratch_ = 0;
  bool has_root_ = false, first_backward_ = true;
};

}  // namespace stepcast::validate
