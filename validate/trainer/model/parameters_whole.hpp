// Parameters that every replica holds whole (ddp, zero1). Gradients lie in one buffer in the order
// in which backward completes them, so that a bucket of them is reduced where it lies. zero1: a
// rank updates its shard of each bucket, and all gather the shards.
#pragma once

#include <optional>

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

  void start_step() override;
  void before_forward(std::size_t) override {}
  void after_forward(std::size_t) override {}
  void start_backward(bool first, bool last) override;
  void before_backward(std::size_t) override {}
  void after_backward(std::size_t) override {}
  void finish_backward() override;

  WideOut reduced_gradient(std::size_t unit, std::size_t tensor) override;
  void before_update() override;
  WideOut own_weights() override { return masters_.all(); }
  WideOut own_gradients() override { return sharded() ? shards_.all() : gradients_.all(); }
  WideOut own_gradient(std::size_t unit, std::size_t tensor) override;
  void after_update() override;

 private:
  using Mark = Lanes::Mark;

  /// Tensors with the same copies: dense ones, or experts that the ranks share.
  struct Part {
    Stretch all;  // of gradients_, and of masters_ where it is not sharded
    std::vector<Stretch> buckets;
    std::size_t ranks = 1, rank = 0;  // that share the optimizer: 1 under ddp
    std::size_t own = 0;              // where this rank's shards begin in masters_
    std::size_t weights = 0;          // where it begins in weights_
    std::size_t copies = 1;           // ranks that sum the gradients
    workloads::GroupKind group{}, shard_group{};
    Lane lane{};
    bool scatters = false, sums_replicas = false;

    std::size_t completed = 0, reduced = 0;  // up to this element, bucket
    std::optional<Mark> summed{};

    bool sharded() const { return ranks > 1; }
    /// This rank's part of a bucket, there and among its shards.
    std::size_t own_begin(const Stretch& bucket) const {
      return bucket.begin + rank * bucket.size() / ranks;
    }
    std::size_t shard_begin(const Stretch& bucket) const {
      return own + (bucket.begin - all.begin) / ranks;
    }
  };

  void add_part(const TrainerJob& job, const RankShare& share, const CompletionOrder::Kind& kind,
                bool experts);
  void fill(const TrainerJob& job);
  bool sharded() const;
  /// Of the buffers of all parameters.
  std::size_t at(std::size_t unit, std::size_t tensor) const { return starts_[unit][tensor]; }
  const Part& part_of(std::size_t unit, std::size_t tensor) const {
    return parts_[units_[unit].tensors[tensor].expert ? 1 : 0];
  }
  WideOut shard(Buffer<Wide<Real>>& shards, const Part& part, const Stretch& bucket) const {
    return shards.part(part.shard_begin(bucket), bucket.size() / part.ranks);
  }
  void reduce(Part& part);
  void gather(const Part& part);

  StepCalls<Real>& calls_;
  std::vector<UnitLayout> units_;
  std::vector<std::vector<std::size_t>> starts_;  // by unit and tensor
  std::vector<Part> parts_;                       // dense, then experts where they are apart
  bool has_root_, overlaps_;
  Buffer<Wide<Real>> masters_, gradients_;
  Buffer<Wide<Real>> shards_;   // zero1: of the gradients
  Buffer<Real> weights_;        // where the masters are wider or a shard
  Buffer<Real> narrow_shards_;  // zero1: of the masters, on their way to weights_
  Buffer<Real> scratch_;  // gradients to be added to others or widened: the root's, one layer's
  std::size_t root_scratch_ = 0;
  bool first_backward_ = true, last_backward_ = true;
};

}  // namespace stepcast::validate
