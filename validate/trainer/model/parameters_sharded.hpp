// Parameters sharded over the data-parallel group (zero2, zero3), unit by unit. A unit is gathered
// (shard narrowed, copied in, AllGather, copied out tensor by tensor) before it is used, and its
// gradients are cut into shards and reduce-scattered after its last backward. zero3 frees layers
// after each use and gathers the next one ahead; zero2 keeps them until the step ends. Lanes and
// the waits between them are those of workloads::ShardedUnits.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "validate/trainer/model/parameters.hpp"
#include "validate/trainer/model/parameters_layout.hpp"

namespace stepcast::validate {

template <class Real>
class ShardedParameters final : public Parameters<Real> {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using WideOut = std::span<Wide<Real>>;

  ShardedParameters(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls);

  In weight(std::size_t unit, std::size_t tensor) const override;
  Out gradient(std::size_t unit, std::size_t tensor) override;
  void complete(std::size_t unit, std::size_t tensor) override;

  void start_step() override;
  void enter(Stretch chunk) override { chunk_ = chunk; }
  void before_forward(std::size_t unit) override;
  void after_forward(std::size_t unit) override;
  void start_backward(bool first, bool last) override;
  void before_backward(std::size_t unit) override;
  void after_backward(std::size_t unit) override;
  void finish_backward() override;

  WideOut own_weights() override { return masters_.all(); }
  WideOut own_gradients() override { return gradients_.all(); }
  WideOut own_gradient(std::size_t unit, std::size_t tensor) override;
  void after_update() override {}

 private:
  enum class State : std::uint8_t { sharded, gathering, whole };
  using Mark = Lanes::Mark;

  void fill(const TrainerJob& job);
  bool is_root(std::size_t unit) const { return has_root_ && unit == 0; }
  Name name(std::size_t unit, std::string_view what) const {
    return {is_root(unit) ? "root" : "layer", what};
  }
  std::size_t shard(std::size_t unit) const { return units_[unit].size() / ranks_; }
  void start_gather(std::size_t unit);
  void copy_in(std::size_t unit, Out to);
  void finish_gather(std::size_t unit, bool forward);
  void hold_gathers();
  void reshard(std::size_t unit);
  void reduce(std::size_t unit);
  void chunk_cat(std::size_t unit, WideOut by_rank);
  std::size_t kept_gradients_of(std::size_t unit) const;
  /// Between [rank][tensor's shard] and [tensor][rank]: calls f(by_rank's, by_tensor's) piece.
  template <class RankSpan, class TensorSpan, class F>
  void each_piece(std::size_t unit, RankSpan by_rank, TensorSpan by_tensor, F f) const;

  /// Buffers that are taken again and again. Only for work on one lane, or behind a mark.
  struct Pool {
    Buffer<Real> take(std::size_t size, Kernels<Real>& kernels);
    void put(Buffer<Real>& buffer);
    std::vector<Buffer<Real>> free;
    bool exact = false;  // a buffer serves units of its size alone
  };
  void reserve(const RankShare& share, std::size_t layer_size);
  /// On one lane everything follows in order, and all buffers are alike.
  Pool& gather_pool() { return calls_.one_lane() ? whole_pool_ : gather_pool_; }

  StepCalls<Real>& calls_;
  std::vector<UnitLayout> units_;
  std::vector<std::size_t> starts_;  // of the units' shards
  std::size_t ranks_, rank_;         // of the group that shares each unit
  workloads::GroupKind group_;
  bool sums_replicas_;  // hsdp: shards are summed over the copies
  std::size_t prefetch_;
  Stretch chunk_;  // units of the chunk whose turn it is: nothing is gathered ahead beyond it
  bool has_root_, frees_layers_, accumulates_, explicit_prefetch_;
  bool first_backward_ = true, last_backward_ = true;
  Buffer<Wide<Real>> masters_, gradients_;  // shards of all units
  Buffer<Real> shard_copy_;                 // of one unit, narrow, to be copied or gathered
  Buffer<Wide<Real>> to_reduce_;            // of one unit
  std::vector<State> states_;
  std::vector<Buffer<Real>> whole_;     // weights by unit, while it is whole
  std::vector<Buffer<Real>> gathered_;  // by rank, while a gather is under way
  std::vector<Mark> gather_done_;       // by unit
  Pool whole_pool_, gather_pool_;
  Buffer<Real> being_copied_out_;  // the gather before
  std::optional<Mark> copied_out_;
  // Gradients. Of several micro-batches they wait here by unit, each adding its own from
  // `scratch_`; else they stay narrow until they are reduced, the layers' in turns in the buffers
  // after the root's, so that one can be reduced while the next is computed.
  std::vector<Buffer<Wide<Real>>> waiting_;
  std::vector<Buffer<Real>> narrow_;
  std::vector<std::optional<Mark>> narrow_read_;
  Buffer<Real> scratch_;
  std::optional<Mark> reduced_, summed_;  // the last unit's: its buffer is free, its shard is whole
  std::size_t root_size_ = 0;
};

}  // namespace stepcast::validate
