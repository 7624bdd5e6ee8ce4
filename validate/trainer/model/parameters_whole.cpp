// ddp: weights and gradients of all units in one buffer each, gradients summed in one all-reduce.
#include "validate/trainer/model/parameters_whole.hpp"

namespace stepcast::validate {

template <class Real>
WholeParameters<Real>::WholeParameters(const TrainerJob& job, const RankShare& share,
                                       StepCalls<Real>& calls)
    : calls_(calls), units_(unit_layouts(job, share)) {
  std::size_t size = 0, largest_layer = 0;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    starts_.push_back(size);
    size += units_[u].size();
    const bool root = share.has_root && u == 0;
    (root ? root_scratch_ : largest_layer) = units_[u].size();
  }
  masters_ = calls.kernels().allocate_wide(size);
  gradients_ = calls.kernels().allocate_wide(size);
  has_root_ = share.has_root;
  if (is_mixed<Real>) weights_ = calls.kernels().allocate(size);
  if (is_mixed<Real> || job.batch.micro_batches > 1)
    scratch_ = calls.kernels().allocate(root_scratch_ + largest_layer);
  fill(job);
}

template <class Real>
void WholeParameters<Real>::fill(const TrainerJob& job) {
  for (std::size_t u = 0; u < units_.size(); ++u)
    for (std::size_t i = 0; i < units_[u].tensors.size(); ++i) {
      std::vector<double> values(units_[u].tensors[i].elements());
      first_weights(values, units_[u].tensors[i], 0, job.learning, job.model.layers);
      const std::vector<Wide<Real>> masters(values.begin(), values.end());
      calls_.kernels().upload(masters_.part(at(u, i), masters.size()), masters);
    }
  after_update();
}

template <class Real>
std::span<const Real> WholeParameters<Real>::weight(std::size_t unit, std::size_t tensor) const {
  const std::size_t from = at(unit, tensor), count = units_[unit].tensors[tensor].elements();
  if constexpr (is_mixed<Real>)
    return weights_.all().subspan(from, count);
  else
    return masters_.all().subspan(from, count);
}

template <class Real>
std::span<Real> WholeParameters<Real>::gradient(std::size_t unit, std::size_t tensor) {
  const UnitLayout& layout = units_[unit];
  if constexpr (!is_mixed<Real>)
    if (first_backward_) return own_gradient(unit, tensor);
  const bool root = has_root_ && unit == 0;
  return scratch_.part((root ? 0 : root_scratch_) + layout.offsets[tensor],
                       layout.tensors[tensor].elements());
}

template <class Real>
void WholeParameters<Real>::complete(std::size_t unit, std::size_t tensor) {
  const std::string& name = units_[unit].names[tensor];
  const WideOut sum = own_gradient(unit, tensor);
  if (!first_backward_)
    calls_.accumulate(Name(name, ".accumulate"), sum, gradient(unit, tensor));
  else if constexpr (is_mixed<Real>)
    calls_.widen(Name(name, ".widen"), sum, gradient(unit, tensor));
}

template <class Real>
void WholeParameters<Real>::finish_backward() {
  if (calls_.groups().data->size() == 1) return;
  calls_.after(workloads::data_lane, workloads::compute);
  calls_.all_reduce_wide("bucket.reduce", workloads::GroupKind::data, gradients_.all());
  calls_.after(workloads::compute, workloads::data_lane);
}

template <class Real>
auto WholeParameters<Real>::own_gradient(std::size_t unit, std::size_t tensor) -> WideOut {
  return gradients_.part(at(unit, tensor), units_[unit].tensors[tensor].elements());
}

template <class Real>
void WholeParameters<Real>::after_update() {
  if constexpr (is_mixed<Real>)
    calls_.narrow(workloads::compute, "adamw.cast", weights_.all(), masters_.all());
}

template class WholeParameters<float>;
template class WholeParameters<double>;
template class WholeParameters<Bfloat16>;
template class WholeParameters<Half>;

}  // namespace stepcast::validate
