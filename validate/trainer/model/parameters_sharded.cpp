#include "validate/trainer/model/parameters_sharded.hpp"

#include <algorithm>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::validate {

using workloads::DataParallel;
using workloads::GroupKind;

template <class Real>
ShardedParameters<Real>::ShardedParameters(const TrainerJob& job, const RankShare& share,
                                           StepCalls<Real>& calls)
    : calls_(calls),
      units_(unit_layouts(job, share)),
      ranks_(share.shards),
      rank_(share.shard),
      group_(workloads::shard_group(job.plan)),
      sums_replicas_(job.plan.shard_replicas() > 1),
      prefetch_(static_cast<std::size_t>(job.plan.prefetch)),
      has_root_(share.has_root),
      frees_layers_(job.plan.data == DataParallel::zero3),
      accumulates_(job.batch.micro_batches > 1),
      explicit_prefetch_(job.software.data.explicit_prefetch),
      states_(units_.size(), State::sharded),
      whole_(units_.size()),
      gathered_(units_.size()),
      gather_done_(units_.size()) {
  std::size_t size = 0, largest = 0, layer_size = 0;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    starts_.push_back(size);
    size += shard(u);
    largest = std::max(largest, units_[u].size());
    (is_root(u) ? root_size_ : layer_size) = units_[u].size();
  }
  Kernels<Real>& kernels = calls.kernels();
  masters_ = kernels.allocate_wide(size);
  gradients_ = kernels.allocate_wide(size);
  if (is_mixed<Real> || ranks_ > 1) shard_copy_ = kernels.allocate(largest / ranks_);
  if (ranks_ > 1) to_reduce_ = kernels.allocate_wide(largest);
  if (accumulates_) {
    for (const UnitLayout& unit : units_) waiting_.push_back(kernels.allocate_wide(unit.size()));
    scratch_ = kernels.allocate(root_size_ + layer_size);
  } else {
    narrow_.push_back(kernels.allocate(root_size_));
    for (int i = 0; i < (calls.one_lane() ? 1 : 2); ++i)
      narrow_.push_back(kernels.allocate(layer_size));
    narrow_read_.resize(narrow_.size());
  }
  if (share.chunks.size() > 1) reserve(share, layer_size);
  fill(job);
}

/// With virtual stages the turns of root and layers are many: all that any order of them takes, the
/// layers that are gathered ahead within a chunk and the one that is copied out.
template <class Real>
void ShardedParameters<Real>::reserve(const RankShare& share, std::size_t layer_size) {
  std::size_t largest_chunk = 0;
  for (const ChunkShare& chunk : share.chunks)
    largest_chunk = std::max(largest_chunk, chunk.layers);
  const std::size_t ahead = calls_.one_lane() ? 0 : std::min(prefetch_, largest_chunk);
  const std::size_t layers = frees_layers_ ? 1 : share.layers;
  Kernels<Real>& kernels = calls_.kernels();
  const auto add = [&](Pool& pool, std::size_t count, std::size_t size) {
    pool.exact = true;
    for (; count > 0; --count) pool.free.push_back(kernels.allocate(size));
  };
  for (Pool* pool : {&whole_pool_, &gather_pool()})
    if (has_root_) add(*pool, 1, root_size_);
  add(whole_pool_, layers, layer_size);
  add(gather_pool(), 1 + ahead, layer_size);
}

template <class Real>
void ShardedParameters<Real>::fill(const TrainerJob& job) {
  for (std::size_t u = 0; u < units_.size(); ++u)
    for (std::size_t i = 0; i < units_[u].tensors.size(); ++i) {
      std::vector<double> values(units_[u].tensors[i].elements() / ranks_);
      first_weights(values, units_[u].tensors[i], rank_ * values.size(), job.learning,
                    job.model.layers);
      const std::vector<Wide<Real>> masters(values.begin(), values.end());
      calls_.kernels().upload(
          masters_.part(starts_[u] + units_[u].offsets[i] / ranks_, masters.size()), masters);
    }
}

template <class Real>
std::span<const Real> ShardedParameters<Real>::weight(std::size_t unit, std::size_t tensor) const {
  expects(states_[unit] == State::whole, "a gathered unit");
  const UnitLayout& layout = units_[unit];
  return whole_[unit].all().subspan(layout.offsets[tensor], layout.tensors[tensor].elements());
}

template <class Real>
std::size_t ShardedParameters<Real>::kept_gradients_of(std::size_t unit) const {
  return is_root(unit) ? 0 : 1 + unit % (narrow_.size() - 1);
}

template <class Real>
std::span<Real> ShardedParameters<Real>::gradient(std::size_t unit, std::size_t tensor) {
  const UnitLayout& layout = units_[unit];
  const std::size_t from = layout.offsets[tensor], count = layout.tensors[tensor].elements();
  if (!accumulates_) return narrow_[kept_gradients_of(unit)].part(from, count);
  if constexpr (!is_mixed<Real>)
    if (first_backward_) return waiting_[unit].part(from, count);
  return scratch_.part((is_root(unit) ? 0 : root_size_) + from, count);
}

template <class Real>
void ShardedParameters<Real>::complete(std::size_t unit, std::size_t tensor) {
  if (!accumulates_) return;
  const UnitLayout& layout = units_[unit];
  const WideOut sum =
      waiting_[unit].part(layout.offsets[tensor], layout.tensors[tensor].elements());
  if (!first_backward_)
    calls_.accumulate(Name(layout.names[tensor], ".accumulate"), sum, gradient(unit, tensor));
  else if constexpr (is_mixed<Real>)
    calls_.widen(Name(layout.names[tensor], ".widen"), sum, gradient(unit, tensor));
}

/// The optimizer has changed the shards: what was gathered is old.
template <class Real>
void ShardedParameters<Real>::start_step() {
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (states_[u] != State::sharded) reshard(u);
  gather_pool().put(being_copied_out_);
  copied_out_.reset();
  reduced_.reset();
  summed_.reset();
  for (auto& mark : narrow_read_) mark.reset();
  const Mark ready = calls_.record(workloads::compute);
  calls_.wait(workloads::copy_lane, ready);
  calls_.wait(workloads::data_lane, ready);
}

template <class Real>
void ShardedParameters<Real>::before_forward(std::size_t unit) {
  if (states_[unit] == State::whole) return;
  start_gather(unit);
  finish_gather(unit, true);
  if (!explicit_prefetch_) return;
  const std::size_t first = is_root(unit) ? chunk_.begin : unit + 1;
  for (std::size_t next = first; next < chunk_.end && next < first + prefetch_; ++next)
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
    finish_gather(unit, false);
  }
  const std::size_t depth = explicit_prefetch_ ? prefetch_ : 1;
  const std::size_t from = is_root(unit) ? chunk_.end : unit;
  for (std::size_t i = 1; i <= depth && chunk_.begin + i <= from; ++i) start_gather(from - i);
  if (accumulates_) return;
  if (const auto& read = narrow_read_[kept_gradients_of(unit)])
    calls_.wait(workloads::compute, *read);
}

template <class Real>
void ShardedParameters<Real>::after_backward(std::size_t unit) {
  if (frees_layers_ && !is_root(unit)) reshard(unit);
  if (last_backward_) reduce(unit);
}

template <class Real>
void ShardedParameters<Real>::finish_backward() {
  if (frees_layers_ && has_root_) reshard(0);
  if (summed_) calls_.wait(workloads::compute, *summed_);
}

template <class Real>
void ShardedParameters<Real>::start_gather(std::size_t unit) {
  if (states_[unit] != State::sharded) return;
  states_[unit] = State::gathering;
  const std::size_t count = shard(unit), size = units_[unit].size();
  gathered_[unit] = gather_pool().take(size, calls_.kernels());
  const Out all = gathered_[unit].part(0, size);
  // On lanes of its own the gather works in place, so that the next copy need not wait for it.
  const bool in_place = ranks_ == 1 || !calls_.one_lane();
  const Out mine = in_place ? all.subspan(rank_ * count, count) : shard_copy_.part(0, count);
  copy_in(unit, mine);
  gather_done_[unit] = calls_.record(workloads::copy_lane);
  if (ranks_ == 1) return;
  calls_.wait(workloads::data_lane, gather_done_[unit]);
  calls_.all_gather(name(unit, ".gather"), group_, mine, all);
  gather_done_[unit] = calls_.record(workloads::data_lane);
}

template <class Real>
void ShardedParameters<Real>::copy_in(std::size_t unit, Out to) {
  const auto masters = masters_.part(starts_[unit], to.size());
  CopyPiece<Real, Real> piece;
  if constexpr (is_mixed<Real>) {
    const Out cast = shard_copy_.part(0, to.size());
    calls_.narrow(workloads::copy_lane, name(unit, ".cast"), cast, masters);
    piece = {to, cast};
  } else {
    piece = {to, masters};
  }
  calls_.copies(workloads::copy_lane, name(unit, ".copy_in"), {&piece, 1});
}

/// In forward, gathers from here on wait for the copy-out of the unit before, whose buffer they
/// take; in backward for this one's.
template <class Real>
void ShardedParameters<Real>::finish_gather(std::size_t unit, bool forward) {
  const std::size_t size = units_[unit].size();
  hold_gathers();
  calls_.wait(workloads::compute, gather_done_[unit]);
  whole_[unit] = whole_pool_.take(size, calls_.kernels());
  std::vector<CopyPiece<Real, Real>> pieces;
  each_piece(unit, gathered_[unit].part(0, size), whole_[unit].part(0, size),
             [&](auto by_rank, auto by_tensor) {
               pieces.push_back({by_tensor, by_rank});
             });
  calls_.copies(workloads::compute, name(unit, ".copy_out"), pieces);
  copied_out_ = calls_.record(workloads::compute);
  being_copied_out_ = std::exchange(gathered_[unit], Buffer<Real>());
  states_[unit] = State::whole;
  if (!forward || calls_.one_lane()) hold_gathers();
}

template <class Real>
void ShardedParameters<Real>::hold_gathers() {
  if (!copied_out_) return;
  calls_.wait(workloads::copy_lane, *copied_out_);
  calls_.wait(workloads::data_lane, *copied_out_);
  gather_pool().put(being_copied_out_);
  copied_out_.reset();
}

/// Work on what is given back has been put on the compute lane, which is in order; a gather that
/// nobody waited for ends a step.
template <class Real>
void ShardedParameters<Real>::reshard(std::size_t unit) {
  whole_pool_.put(whole_[unit]);
  gather_pool().put(gathered_[unit]);
  states_[unit] = State::sharded;
}

template <class Real>
void ShardedParameters<Real>::reduce(std::size_t unit) {
  const WideOut mine = gradients_.part(starts_[unit], shard(unit));
  calls_.after(workloads::copy_lane, workloads::compute);
  if (reduced_) calls_.wait(workloads::copy_lane, *reduced_);
  const WideOut by_rank = ranks_ > 1 ? to_reduce_.part(0, units_[unit].size()) : mine;
  chunk_cat(unit, by_rank);
  const Mark copied = calls_.after(workloads::data_lane, workloads::copy_lane);
  if (!accumulates_) narrow_read_[kept_gradients_of(unit)] = copied;
  if (ranks_ > 1) calls_.reduce_shards(name(unit, ".reduce"), group_, by_rank, mine);
  reduced_ = summed_ = calls_.record(workloads::data_lane);
  if (!sums_replicas_) return;
  calls_.wait(workloads::replica_lane, *reduced_);
  calls_.all_reduce_wide(name(unit, ".sum_replicas"), GroupKind::replica, mine);
  summed_ = calls_.record(workloads::replica_lane);
}

template <class Real>
void ShardedParameters<Real>::chunk_cat(std::size_t unit, WideOut by_rank) {
  const Name what = name(unit, ".chunk_cat");
  const std::size_t size = units_[unit].size();
  if (accumulates_) {
    std::vector<CopyPiece<Wide<Real>, Wide<Real>>> pieces;
    each_piece(unit, by_rank, waiting_[unit].part(0, size), [&](auto rank, auto tensor) {
      pieces.push_back({rank, tensor});
    });
    calls_.copies_wide(workloads::copy_lane, what, pieces);
  } else {
    std::vector<CopyPiece<Wide<Real>, Real>> pieces;
    each_piece(unit, by_rank, narrow_[kept_gradients_of(unit)].part(0, size),
               [&](auto rank, auto tensor) {
                 pieces.push_back({rank, tensor});
               });
    calls_.copies_widening(workloads::copy_lane, what, pieces);
  }
}

template <class Real>
template <class RankSpan, class TensorSpan, class F>
void ShardedParameters<Real>::each_piece(std::size_t unit, RankSpan by_rank, TensorSpan by_tensor,
                                         F f) const {
  const UnitLayout& layout = units_[unit];
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    const std::size_t count = layout.tensors[i].elements() / ranks_;
    for (std::size_t r = 0; r < ranks_; ++r)
      f(by_rank.subspan(r * shard(unit) + layout.offsets[i] / ranks_, count),
        by_tensor.subspan(layout.offsets[i] + r * count, count));
  }
}

/// The smallest free buffer that is large enough, else a new one.
template <class Real>
Buffer<Real> ShardedParameters<Real>::Pool::take(std::size_t size, Kernels<Real>& kernels) {
  auto best = free.end();
  for (auto it = free.begin(); it != free.end(); ++it)
    if ((exact ? it->size() == size : it->size() >= size) &&
        (best == free.end() || it->size() < best->size()))
      best = it;
  if (best == free.end()) return kernels.allocate(size);
  Buffer<Real> taken = std::move(*best);
  free.erase(best);
  return taken;
}

template <class Real>
void ShardedParameters<Real>::Pool::put(Buffer<Real>& buffer) {
  if (buffer.size() > 0) free.push_back(std::exchange(buffer, Buffer<Real>()));
}

template <class Real>
auto ShardedParameters<Real>::own_gradient(std::size_t unit, std::size_t tensor) -> WideOut {
  const UnitLayout& layout = units_[unit];
  return gradients_.part(starts_[unit] + layout.offsets[tensor] / ranks_,
                         layout.tensors[tensor].elements() / ranks_);
}

template class ShardedParameters<float>;
template class ShardedParameters<double>;
template class ShardedParameters<Bfloat16>;
template class ShardedParameters<Half>;

}  // namespace stepcast::validate
