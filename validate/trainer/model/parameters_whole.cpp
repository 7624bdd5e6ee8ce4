#include "validate/trainer/model/parameters_whole.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::validate {

using workloads::DataParallel;
using workloads::GroupKind;

template <class Real>
WholeParameters<Real>::WholeParameters(const TrainerJob& job, const RankShare& share,
                                       StepCalls<Real>& calls)
    : calls_(calls),
      units_(unit_layouts(job, share)),
      ranks_(job.plan.data == DataParallel::ddp ? 1 : share.shards),
      rank_(job.plan.data == DataParallel::ddp ? 0 : share.shard),
      has_root_(share.has_root),
      scatters_(sharded() && job.software.data.reduce_scatter),
      sums_replicas_(scatters_ && job.plan.shard_replicas() > 1),
      overlaps_(job.software.data.gradient_overlap),
      shard_group_(workloads::shard_group(job.plan)) {
  const CompletionOrder order = completion_order(job, share, units_);
  starts_ = order.starts;
  buckets_ = order.buckets;
  std::size_t layer = 0;
  for (std::size_t u = 0; u < units_.size(); ++u)
    (has_root_ && u == 0 ? root_scratch_ : layer) = units_[u].size();
  Kernels<Real>& kernels = calls.kernels();
  masters_ = kernels.allocate_wide(order.size / ranks_);
  gradients_ = kernels.allocate_wide(order.size);
  if (sharded()) shards_ = kernels.allocate_wide(order.size / ranks_);
  if (is_mixed<Real> || sharded()) weights_ = kernels.allocate(order.size);
  if (is_mixed<Real> && sharded()) narrow_shards_ = kernels.allocate(order.size / ranks_);
  if (is_mixed<Real> || job.batch.micro_batches > 1)
    scratch_ = kernels.allocate(root_scratch_ + layer);
  fill(job);
}

template <class Real>
void WholeParameters<Real>::fill(const TrainerJob& job) {
  std::vector<Wide<Real>> all(gradients_.size());
  for (std::size_t u = 0; u < units_.size(); ++u)
    for (std::size_t i = 0; i < units_[u].tensors.size(); ++i) {
      std::vector<double> values(units_[u].tensors[i].elements());
      first_weights(values, units_[u].tensors[i], 0, job.learning, job.model.layers);
      std::ranges::transform(values, all.begin() + static_cast<std::ptrdiff_t>(at(u, i)),
                             [](double w) { return static_cast<Wide<Real>>(w); });
    }
  for (const Stretch& bucket : buckets_) {
    const auto own = std::span(all).subspan(own_begin(bucket), bucket.size() / ranks_);
    calls_.kernels().upload(shard(masters_, bucket), own);
  }
  after_update();
}

template <class Real>
std::span<const Real> WholeParameters<Real>::weight(std::size_t unit, std::size_t tensor) const {
  const std::size_t from = at(unit, tensor), count = units_[unit].tensors[tensor].elements();
  if constexpr (!is_mixed<Real>)
    if (!sharded()) return masters_.all().subspan(from, count);
  return weights_.all().subspan(from, count);
}

template <class Real>
std::span<Real> WholeParameters<Real>::gradient(std::size_t unit, std::size_t tensor) {
  const UnitLayout& layout = units_[unit];
  if constexpr (!is_mixed<Real>)
    if (first_backward_) return reduced_gradient(unit, tensor);
  const bool root = has_root_ && unit == 0;
  return scratch_.part((root ? 0 : root_scratch_) + layout.offsets[tensor],
                       layout.tensors[tensor].elements());
}

template <class Real>
void WholeParameters<Real>::complete(std::size_t unit, std::size_t tensor) {
  const std::string& name = units_[unit].names[tensor];
  const WideOut sum = reduced_gradient(unit, tensor);
  if (!first_backward_)
    calls_.accumulate(Name(name, ".accumulate"), sum, gradient(unit, tensor));
  else if constexpr (is_mixed<Real>)
    calls_.widen(Name(name, ".widen"), sum, gradient(unit, tensor));
  if (!last_backward_) return;
  expects(completed_ == at(unit, tensor), "gradients in the order of their buffer");
  completed_ += sum.size();
  if (overlaps_ && completed_ == buckets_[reduced_].end) reduce(buckets_[reduced_]);
}

template <class Real>
void WholeParameters<Real>::start_step() {
  completed_ = reduced_ = 0;
  summed_.reset();
  calls_.after(workloads::data_lane, workloads::compute);
}

template <class Real>
void WholeParameters<Real>::start_backward(bool first, bool last) {
  first_backward_ = first;
  last_backward_ = last;
}

template <class Real>
void WholeParameters<Real>::reduce(const Stretch& bucket) {
  ++reduced_;
  if (calls_.groups().data->size() == 1) return;
  const WideOut all = gradients_.part(bucket.begin, bucket.size());
  calls_.after(workloads::data_lane, workloads::compute);
  if (!scatters_) {
    calls_.all_reduce_wide("bucket.reduce", GroupKind::data, all);
    summed_ = calls_.record(workloads::data_lane);
    return;
  }
  const WideOut mine = gradients_.part(own_begin(bucket), bucket.size() / ranks_);
  calls_.reduce_shards("bucket.reduce", shard_group_, all, mine);
  if (sums_replicas_) {
    calls_.after(workloads::replica_lane, workloads::data_lane);
    calls_.all_reduce_wide("bucket.sum_replicas", GroupKind::replica, mine);
  }
  summed_ = calls_.record(sums_replicas_ ? workloads::replica_lane : workloads::data_lane);
}

template <class Real>
void WholeParameters<Real>::finish_backward() {
  while (reduced_ < buckets_.size()) reduce(buckets_[reduced_]);
  if (summed_) calls_.wait(workloads::compute, *summed_);
}

template <class Real>
auto WholeParameters<Real>::reduced_gradient(std::size_t unit, std::size_t tensor) -> WideOut {
  return gradients_.part(at(unit, tensor), units_[unit].tensors[tensor].elements());
}

/// What others than the data group share has been summed in whole tensors: now the shards alone.
template <class Real>
void WholeParameters<Real>::before_update() {
  if (!sharded()) return;
  std::vector<CopyPiece<Wide<Real>, Wide<Real>>> pieces;
  for (const Stretch& bucket : buckets_)
    pieces.push_back(
        {shard(shards_, bucket), gradients_.part(own_begin(bucket), bucket.size() / ranks_)});
  calls_.copies_wide(workloads::compute, "gradients.shard", pieces);
}

/// Of a tensor that another rank updates nothing.
template <class Real>
auto WholeParameters<Real>::own_gradient(std::size_t unit, std::size_t tensor) -> WideOut {
  if (!sharded()) return reduced_gradient(unit, tensor);
  const std::size_t from = at(unit, tensor), to = from + units_[unit].tensors[tensor].elements();
  const Stretch& bucket = *std::ranges::find_if(
      buckets_, [from](const Stretch& b) { return from >= b.begin && from < b.end; });
  const std::size_t own = own_begin(bucket), own_end = own + bucket.size() / ranks_;
  const std::size_t first = std::max(from, own), last = std::max(first, std::min(to, own_end));
  return shards_.part(first == last ? 0 : bucket.begin / ranks_ + (first - own), last - first);
}

template <class Real>
void WholeParameters<Real>::after_update() {
  if constexpr (is_mixed<Real>) {
    const Out narrow = sharded() ? narrow_shards_.all() : weights_.all();
    calls_.narrow(workloads::compute, "adamw.cast", narrow, masters_.all());
  }
  if (sharded()) gather();
}

template <class Real>
void WholeParameters<Real>::gather() {
  calls_.after(workloads::data_lane, workloads::compute);
  for (const Stretch& bucket : buckets_) {
    In mine;
    if constexpr (is_mixed<Real>)
      mine = narrow_shards_.part(bucket.begin / ranks_, bucket.size() / ranks_);
    else
      mine = shard(masters_, bucket);
    calls_.all_gather("parameters.gather", shard_group_, mine,
                      weights_.part(bucket.begin, bucket.size()));
  }
  calls_.after(workloads::compute, workloads::data_lane);
}

template class WholeParameters<float>;
template class WholeParameters<double>;
template class WholeParameters<Bfloat16>;
template class WholeParameters<Half>;

}  // namespace stepcast::validate
