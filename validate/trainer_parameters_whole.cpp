// ddp: weights and gradients of all units in one buffer each, gradients summed in one all-reduce.
#include "validate/trainer_parameters_whole.hpp"

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
  weights_ = calls.kernels().allocate(size);
  gradients_ = calls.kernels().allocate(size);
  has_root_ = share.has_root;
  if (job.batch.micro_batches > 1)
    scratch_ = calls.kernels().allocate(root_scratch_ + largest_layer);
  fill(job);
}

template <class Real>
void WholeParameters<Real>::fill(const TrainerJob& job) {
  for (std::size_t u = 0; u < units_.size(); ++u)
    for (std::size_t i = 0; i < units_[u].tensors.size(); ++i) {
      std::vector<double> values(units_[u].tensors[i].elements());
      first_weights(values, units_[u].tensors[i], 0, job.learning, job.model.layers);
      const std::vector<Real> narrow(values.begin(), values.end());
      calls_.kernels().upload(weights_.part(at(u, i), narrow.size()), narrow);
    }
}

template <class Real>
std::span<const Real> WholeParameters<Real>::weight(std::size_t unit, std::size_t tensor) const {
  return weights_.all().subspan(at(unit, tensor), units_[unit].tensors[tensor].elements());
}

template <class Real>
std::span<Real> WholeParameters<Real>::gradient(std::size_t unit, std::size_t tensor) {
  const UnitLayout& layout = units_[unit];
  if (first_backward_) return own_gradient(unit, tensor);
  const bool root = has_root_ && unit == 0;
  return scratch_.part((root ? 0 : root_scratch_) + layout.offsets[tensor],
                       layout.tensors[tensor].elements());
}

template <class Real>
void WholeParameters<Real>::complete(std::size_t unit, std::size_t tensor) {
  if (first_backward_) return;
  const auto sum = own_gradient(unit, tensor);
  calls_.add(Name(units_[unit].names[tensor], ".accumulate"), sum, sum, gradient(unit, tensor));
}

template <class Real>
void WholeParameters<Real>::finish_backward() {
  calls_.all_reduce("bucket.reduce", workloads::GroupKind::data, gradients_.all());
}

template <class Real>
std::span<Real> WholeParameters<Real>::own_gradient(std::size_t unit, std::size_t tensor) {
  return gradients_.part(at(unit, tensor), units_[unit].tensors[tensor].elements());
}

template class WholeParameters<float>;
template class WholeParameters<double>;

}  // namespace stepcast::validate
