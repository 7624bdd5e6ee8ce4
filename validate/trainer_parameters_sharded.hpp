// Parameters sharded over the data-parallel group (zero2, zero3), unit by unit. A unit is gathered
// (shard copied in, AllGather, copied out tensor by tensor) before it is used, and its gradients
// are cut into shards and reduce-scattered after its last backward. zero3 frees layers after each
// use and gathers the next one ahead; zero2 keeps them until the step ends.
#pragma once

#include <utility>

#include "validate/trainer_parameters.hpp"
#include "validate/trainer_parameters_layout.hpp"

namespace stepcast::validate {

template <class Real>
class ShardedParameters final : public Parameters<Real> {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;

  ShardedParameters(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls);

  In weight(std::size_t unit, std::size_t tensor) const override;
  Out gradient(std::size_t unit, std::size_t tensor) override;
  void complete(std::size_t unit, std::size_t tensor) override;

  void start_step() override;
  void before_forward(std::size_t unit) override;
  void after_forward(std::size_t unit) override;
  void start_backward(bool first, bool last) override;
  void before_backward(std::size_t unit) override;
  void after_backward(std::size_t unit) override;
  void finish_backward() override;

  Out own_weights() override { return weights_.all(); }
  Out own_gradients() override { return gradients_.all(); }
  Out own_gradient(std::size_t unit, std::size_t tensor) override;

 private:
  enum class State : std::uint8_t { sharded, gathering, whole };
  using Copies = std::vector<std::pair<Out, In>>;

  void fill(const TrainerJob& job);
  bool is_root(std::size_t unit) const { return has_root_ && unit == 0; }
  Name name(std::size_t unit, std::string_view what) const {
    return {is_root(unit) ? "root" : "layer", what};
  }
  std::size_t shard(std::size_t unit) const { return units_[unit].size() / ranks_; }
  void start_gather(std::size_t unit);
  void finish_gather(std::size_t unit);
  void reshard(std::size_t unit);
  void reduce(std::size_t unit);
  Copies shard_copies(std::size_t unit, Out by_rank, Out by_tensor, bool to_tensors) const;
  Buffer<Real> take_buffer(std::size_t size);

  StepCalls<Real>& calls_;
  std::vector<UnitLayout> units_;
  std::vector<std::size_t> starts_;  // of the units' shards
  std::size_t ranks_, rank_, prefetch_;
  bool has_root_, frees_layers_, keeps_gradients_, explicit_prefetch_;
  bool first_backward_ = true, last_backward_ = true;
  Buffer<Real> weights_, gradients_;     // shards of all units
  Buffer<Real> shard_copy_, to_reduce_;  // of one unit
  std::vector<State> states_;
  std::vector<Buffer<Real>> whole_;            // weights by unit, while it is whole
  std::vector<Buffer<Real>> gathered_;         // by rank, while a gather is under way
  std::vector<Buffer<Real>> free_;             // to be taken again
  std::vector<Buffer<Real>> whole_gradients_;  // by unit, or of the root and of any layer
  Buffer<Real> scratch_;                       // gradients of later micro-batches
  std::size_t root_size_ = 0;
};

}  // namespace stepcast::validate
