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
      has_root_(share.has_root),
      overlaps_(job.software.data.gradient_overlap) {
  const CompletionOrder order = completion_order(job, share, units_);
  starts_ = order.starts;
  add_part(job, share, order.dense, false);
  if (order.experts.all.size() > 0) add_part(job, share, order.experts, true);
  expects(!is_mixed<Real> || parts_.size() == 1, "experts of wide numbers");
  std::size_t layer = 0;
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (has_root_ && u == 0)
      root_scratch_ = units_[u].size();
    else
      layer = std::max(layer, units_[u].size());
  const Part& last = parts_.back();
  const std::size_t own = last.own + last.all.size() / last.ranks;
  Kernels<Real>& kernels = calls.kernels();
  masters_ = kernels.allocate_wide(own);
  gradients_ = kernels.allocate_wide(order.size());
  if (sharded()) shards_ = kernels.allocate_wide(own);
  std::size_t whole = 0;
  for (Part& part : parts_) {
    part.weights = whole;
    if (is_mixed<Real> || part.sharded()) whole += part.all.size();
  }
  if (whole > 0) weights_ = kernels.allocate(whole);
  if (is_mixed<Real> && sharded()) narrow_shards_ = kernels.allocate(own);
  if (is_mixed<Real> || job.batch.micro_batches > 1)
    scratch_ = kernels.allocate(root_scratch_ + layer);
  fill(job);
}

template <class Real>
void WholeParameters<Real>::add_part(const TrainerJob& job, const RankShare& share,
                                     const CompletionOrder::Kind& kind, bool experts) {
  const bool ddp = job.plan.data == DataParallel::ddp;
  Part part{.all = kind.all, .buckets = kind.buckets};
  if (!parts_.empty())
    part.own = parts_.back().own + parts_.back().all.size() / parts_.back().ranks;
  const auto copies = static_cast<std::size_t>(job.plan.copies());
  part.copies = experts ? share.experts.copies : copies;
  part.group = experts ? GroupKind::expert_data : GroupKind::data;
  part.shard_group = experts ? GroupKind::expert_data : workloads::shard_group(job.plan);
  part.lane = experts ? workloads::expert_data_lane : workloads::data_lane;
  if (!ddp) part.ranks = experts ? share.experts.copies : share.shards;
  if (!ddp) part.rank = experts ? share.experts.copy : share.shard;
  part.scatters = part.sharded() && job.software.data.reduce_scatter;
  part.sums_replicas = part.scatters && !experts && job.plan.shard_replicas() > 1;
  parts_.push_back(std::move(part));
}

template <class Real>
bool WholeParameters<Real>::sharded() const {
  return std::ranges::any_of(parts_, &Part::sharded);
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
  for (const Part& part : parts_)
    for (const Stretch& bucket : part.buckets) {
      const auto own = std::span(all).subspan(part.own_begin(bucket), bucket.size() / part.ranks);
      calls_.kernels().upload(shard(masters_, part, bucket), own);
    }
  after_update();
}

template <class Real>
std::span<const Real> WholeParameters<Real>::weight(std::size_t unit, std::size_t tensor) const {
  const Part& part = part_of(unit, tensor);
  const std::size_t from = at(unit, tensor) - part.all.begin;
  const std::size_t count = units_[unit].tensors[tensor].elements();
  if constexpr (!is_mixed<Real>)
    if (!part.sharded()) return masters_.all().subspan(part.own + from, count);
  return weights_.all().subspan(part.weights + from, count);
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
  Part& part = parts_[units_[unit].tensors[tensor].expert ? 1 : 0];
  expects(part.completed == at(unit, tensor), "gradients in the order of their buffer");
  part.completed += sum.size();
  if (overlaps_ && part.completed == part.buckets[part.reduced].end) reduce(part);
}

template <class Real>
void WholeParameters<Real>::start_step() {
  for (Part& part : parts_) {
    part.completed = part.all.begin;
    part.reduced = 0;
    part.summed.reset();
    calls_.after(part.lane, workloads::compute);
  }
}

template <class Real>
void WholeParameters<Real>::start_backward(bool first, bool last) {
  first_backward_ = first;
  last_backward_ = last;
}

/// The next bucket.
template <class Real>
void WholeParameters<Real>::reduce(Part& part) {
  const Stretch& bucket = part.buckets[part.reduced++];
  if (part.copies == 1) return;
  const WideOut all = gradients_.part(bucket.begin, bucket.size());
  calls_.after(part.lane, workloads::compute);
  if (!part.scatters) {
    calls_.all_reduce_wide("bucket.reduce", part.group, all);
    part.summed = calls_.record(part.lane);
    return;
  }
  const WideOut mine = gradients_.part(part.own_begin(bucket), bucket.size() / part.ranks);
  calls_.reduce_shards("bucket.reduce", part.shard_group, all, mine);
  if (part.sums_replicas) {
    calls_.after(workloads::replica_lane, part.lane);
    calls_.all_reduce_wide("bucket.sum_replicas", GroupKind::replica, mine);
  }
  part.summed = calls_.record(part.sums_replicas ? workloads::replica_lane : part.lane);
}

template <class Real>
void WholeParameters<Real>::finish_backward() {
  for (Part& part : parts_)
    while (part.reduced < part.buckets.size()) reduce(part);
  for (const Part& part : parts_)
    if (part.summed) calls_.wait(workloads::compute, *part.summed);
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
  for (const Part& part : parts_)
    for (const Stretch& bucket : part.buckets)
      pieces.push_back({shard(shards_, part, bucket),
                        gradients_.part(part.own_begin(bucket), bucket.size() / part.ranks)});
  calls_.copies_wide(workloads::compute, "gradients.shard", pieces);
}

/// Of a tensor that another rank updates nothing.
template <class Real>
auto WholeParameters<Real>::own_gradient(std::size_t unit, std::size_t tensor) -> WideOut {
  if (!sharded()) return reduced_gradient(unit, tensor);
  const Part& part = part_of(unit, tensor);
  const std::size_t from = at(unit, tensor), to = from + units_[unit].tensors[tensor].elements();
  const Stretch& bucket = *std::ranges::find_if(
      part.buckets, [from](const Stretch& b) { return from >= b.begin && from < b.end; });
  const std::size_t own = part.own_begin(bucket), own_end = own + bucket.size() / part.ranks;
  const std::size_t first = std::max(from, own), last = std::max(first, std::min(to, own_end));
  return shards_.part(first == last ? 0 : part.shard_begin(bucket) + (first - own), last - first);
}

template <class Real>
void WholeParameters<Real>::after_update() {
  if constexpr (is_mixed<Real>) {
    const Out narrow = sharded() ? narrow_shards_.all() : weights_.all();
    calls_.narrow(workloads::compute, "adamw.cast", narrow, masters_.all());
  }
  for (const Part& part : parts_)
    if (part.sharded()) gather(part);
}

template <class Real>
void WholeParameters<Real>::gather(const Part& part) {
  calls_.after(part.lane, workloads::compute);
  for (const Stretch& bucket : part.buckets) {
    In mine;
    if constexpr (is_mixed<Real>)
      mine = narrow_shards_.part(part.shard_begin(bucket), bucket.size() / part.ranks);
    else
      mine = shard(masters_, part, bucket);
    calls_.all_gather("parameters.gather", part.shard_group, mine,
                      weights_.part(part.weights + (bucket.begin - part.all.begin), bucket.size()));
  }
  calls_.after(workloads::compute, part.lane);
}

template class WholeParameters<float>;
template class WholeParameters<double>;
template class WholeParameters<Bfloat16>;
template class WholeParameters<Half>;

}  // namespace stepcast::validate
