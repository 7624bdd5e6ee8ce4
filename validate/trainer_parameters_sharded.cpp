#include "validate/trainer_parameters_sharded.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::validate {

using workloads::DataParallel;
using workloads::GroupKind;

template <class Real>
ShardedParameters<Real>::ShardedParameters(const TrainerJob& job, const RankShare& share,
                                           StepCalls<Real>& calls)
    : calls_(calls),
      units_(unit_layouts(job, share)),
      ranks_(static_cast<std::size_t>(job.plan.data_degree)),
      rank_(static_cast<std::size_t>(share.at.data)),
      prefetch_(static_cast<std::size_t>(job.plan.prefetch)),
      has_root_(share.has_root),
      frees_layers_(job.plan.data == DataParallel::zero3),
      keeps_gradients_(job.batch.micro_batches > 1),
      explicit_prefetch_(job.software.explicit_prefetch),
      states_(units_.size(), State::sharded),
      whole_(units_.size()),
      gathered_(units_.size()) {
  std::size_t size = 0, largest = 0, layer_size = 0;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    starts_.push_back(size);
    size += shard(u);
    largest = std::max(largest, units_[u].size());
    (is_root(u) ? root_size_ : layer_size) = units_[u].size();
  }
  Kernels<Real>& kernels = calls.kernels();
  weights_ = kernels.allocate(size);
  gradients_ = kernels.allocate(size);
  if (ranks_ > 1) shard_copy_ = kernels.allocate(largest / ranks_);
  if (ranks_ > 1) to_reduce_ = kernels.allocate(largest);
  if (keeps_gradients_)
    for (const UnitLayout& unit : units_) whole_gradients_.push_back(kernels.allocate(unit.size()));
  else
    for (const std::size_t of : {root_size_, layer_size})
      whole_gradients_.push_back(kernels.allocate(of));
  if (keeps_gradients_) scratch_ = kernels.allocate(root_size_ + layer_size);
  fill(job);
}

template <class Real>
void ShardedParameters<Real>::fill(const TrainerJob& job) {
  for (std::size_t u = 0; u < units_.size(); ++u)
    for (std::size_t i = 0; i < units_[u].tensors.size(); ++i) {
      std::vector<double> values(units_[u].tensors[i].elements() / ranks_);
      first_weights(values, units_[u].tensors[i], rank_ * values.size(), job.learning,
                    job.model.layers);
      const std::vector<Real> narrow(values.begin(), values.end());
      calls_.kernels().upload(
          weights_.part(starts_[u] + units_[u].offsets[i] / ranks_, narrow.size()), narrow);
    }
}

template <class Real>
std::span<const Real> ShardedParameters<Real>::weight(std::size_t unit, std::size_t tensor) const {
  expects(states_[unit] == State::whole, "a gathered unit");
  const UnitLayout& layout = units_[unit];
  return whole_[unit].all().subspan(layout.offsets[tensor], layout.tensors[tensor].elements());
}

template <class Real>
std::span<Real> ShardedParameters<Real>::gradient(std::size_t unit, std::size_t tensor) {
  const UnitLayout& layout = units_[unit];
  const std::size_t from = layout.offsets[tensor], count = layout.tensors[tensor].elements();
  if (!first_backward_) return scratch_.part((is_root(unit) ? 0 : root_size_) + from, count);
  const std::size_t kept = keeps_gradients_ ? unit : (is_root(unit) ? 0 : 1);
  return whole_gradients_[kept].part(from, count);
}

template <class Real>
void ShardedParameters<Real>::complete(std::size_t unit, std::size_t tensor) {
  if (first_backward_) return;
  const UnitLayout& layout = units_[unit];
  const Out sum =
      whole_gradients_[unit].part(layout.offsets[tensor], layout.tensors[tensor].elements());
  calls_.add(Name(layout.names[tensor], ".accumulate"), sum, sum, gradient(unit, tensor));
}

/// The optimizer has changed the shards: what was gathered is old.
template <class Real>
void ShardedParameters<Real>::start_step() {
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (states_[u] != State::sharded) reshard(u);
}

template <class Real>
void ShardedParameters<Real>::before_forward(std::size_t unit) {
  if (states_[unit] == State::whole) return;
  start_gather(unit);
  finish_gather(unit);
  if (!explicit_prefetch_) return;
  for (std::size_t next = unit + 1; next < units_.size() && next <= unit + prefetch_; ++next)
    start_gather(next);
}

template <class Real>
void ShardedParameters<Real>::after_forward(std::size_t unit) {
  if (frees_layers_ && !is_root(unit)) reshard(unit);
}

template <class Real>
void ShardedParameters<Real>::start_backward(bool first, bool last) {
  first_backward_ = first;
  last_backward_ = last;
}

/// The next unit's gather starts before this one's kernels: the head's (in the root) before the
/// last layer's, then from layer to layer downwards.
template <class Real>
void ShardedParameters<Real>::before_backward(std::size_t unit) {
  if (states_[unit] != State::whole) {
    start_gather(unit);
    finish_gather(unit);
  }
  const std::size_t depth = explicit_prefetch_ ? prefetch_ : 1;
  const std::size_t from = is_root(unit) ? units_.size() : unit;
  for (std::size_t i = 1; i <= depth && i <= from; ++i)
    if (!is_root(from - i)) start_gather(from - i);
}

template <class Real>
void ShardedParameters<Real>::after_backward(std::size_t unit) {
  if (frees_layers_ && !is_root(unit)) reshard(unit);
  if (last_backward_) reduce(unit);
}

template <class Real>
void ShardedParameters<Real>::finish_backward() {
  if (frees_layers_ && has_root_) reshard(0);
}

template <class Real>
void ShardedParameters<Real>::start_gather(std::size_t unit) {
  if (states_[unit] != State::sharded) return;
  states_[unit] = State::gathering;
  const std::size_t count = shard(unit);
  const Out mine = weights_.part(starts_[unit], count);
  gathered_[unit] = take_buffer(units_[unit].size());
  const Out all = gathered_[unit].part(0, units_[unit].size());
  const Out copy = ranks_ > 1 ? shard_copy_.part(0, count) : all;
  const Copies whole_shard{{copy, mine}};
  calls_.copies(name(unit, ".copy_in"), whole_shard);
  if (ranks_ > 1) calls_.all_gather(name(unit, ".gather"), GroupKind::data, copy, all);
}

template <class Real>
void ShardedParameters<Real>::finish_gather(std::size_t unit) {
  const std::size_t size = units_[unit].size();
  whole_[unit] = take_buffer(size);
  calls_.copies(name(unit, ".copy_out"), shard_copies(unit, gathered_[unit].part(0, size),
                                                      whole_[unit].part(0, size), true));
  free_.push_back(std::exchange(gathered_[unit], Buffer<Real>()));
  states_[unit] = State::whole;
}

template <class Real>
void ShardedParameters<Real>::reshard(std::size_t unit) {
  for (Buffer<Real>* buffer : {&whole_[unit], &gathered_[unit]})
    if (buffer->size() > 0) free_.push_back(std::exchange(*buffer, Buffer<Real>()));
  states_[unit] = State::sharded;
}

template <class Real>
void ShardedParameters<Real>::reduce(std::size_t unit) {
  const std::size_t size = units_[unit].size();
  const Out mine = gradients_.part(starts_[unit], shard(unit));
  const Out by_rank = ranks_ > 1 ? to_reduce_.part(0, size) : mine;
  const std::size_t kept = keeps_gradients_ ? unit : (is_root(unit) ? 0 : 1);
  calls_.copies(name(unit, ".chunk_cat"),
                shard_copies(unit, by_rank, whole_gradients_[kept].part(0, size), false));
  if (ranks_ > 1) calls_.reduce_scatter(name(unit, ".reduce"), GroupKind::data, by_rank, mine);
}

/// Between [rank][tensor's shard] and [tensor][rank].
template <class Real>
auto ShardedParameters<Real>::shard_copies(std::size_t unit, Out by_rank, Out by_tensor,
                                           bool to_tensors) const -> Copies {
  Copies out;
  const UnitLayout& layout = units_[unit];
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    const std::size_t count = layout.tensors[i].elements() / ranks_;
    for (std::size_t r = 0; r < ranks_; ++r) {
      const Out a = by_rank.subspan(r * shard(unit) + layout.offsets[i] / ranks_, count);
      const Out b = by_tensor.subspan(layout.offsets[i] + r * count, count);
      if (to_tensors)
        out.emplace_back(b, a);
      else
        out.emplace_back(a, b);
    }
  }
  return out;
}

/// The smallest free buffer that is large enough, else a new one.
template <class Real>
Buffer<Real> ShardedParameters<Real>::take_buffer(std::size_t size) {
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->size() >= size && (best == free_.end() || it->size() < best->size())) best = it;
  if (best == free_.end()) return calls_.kernels().allocate(size);
  Buffer<Real> taken = std::move(*best);
  free_.erase(best);
  return taken;
}

template <class Real>
std::span<Real> ShardedParameters<Real>::own_gradient(std::size_t unit, std::size_t tensor) {
  const UnitLayout& layout = units_[unit];
  return gradients_.part(starts_[unit] + layout.offsets[tensor] / ranks_,
                         layout.tensors[tensor].elements() / ranks_);
}

template class ShardedParameters<float>;
template class ShardedParameters<double>;

}  // namespace stepcast::validate
