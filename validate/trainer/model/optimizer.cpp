#include "validate/trainer/model/optimizer.hpp"

#include <cmath>
#include <type_traits>

namespace stepcast::validate {

using workloads::DataParallel;
using workloads::GroupKind;

void LossScale::update(bool finite) {
  constexpr std::int64_t growth_steps = 2000;
  good_steps = finite ? good_steps + 1 : 0;
  if (!finite) value /= 2.0;
  if (good_steps < growth_steps) return;
  value *= 2.0;
  good_steps = 0;
}

template <class Real>
Optimizer<Real>::Optimizer(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls,
                           Parameters<Real>& parameters)
    : job_(job),
      share_(share),
      calls_(calls),
      parameters_(parameters),
      scales_(job.precision.loss_scaling),
      whole_on_every_rank_(job.plan.data == DataParallel::ddp && job.plan.tensor == 1 &&
                           job.plan.pipeline == 1 && !share.experts.shared()) {
  // Ranks with the same of the optimizer's part, where they add up what they have.
  const std::int64_t alike = whole_on_every_rank_                 ? 1
                             : job.plan.data == DataParallel::ddp ? job.plan.copies()
                                                                  : job.plan.shard_replicas();
  const bool tied = job.model.tied_embeddings && job.plan.pipeline > 1;
  std::size_t norms = 0;
  std::vector<Wide<Real>> shares;
  for (std::size_t unit = 0; unit < share.units(); ++unit) {
    const auto tensors = tensors_of_unit(job, share, unit);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      double copies = static_cast<double>(alike);
      if (tensors[i].expert && !whole_on_every_rank_)
        copies =
            job.plan.data == DataParallel::ddp ? static_cast<double>(share.experts.copies) : 1.0;
      if (tensors[i].replicated) copies *= static_cast<double>(job.plan.tensor);
      if (tied && (tensors[i].name == "embedding" || tensors[i].name == "head")) copies *= 2.0;
      owned_.push_back({unit, i, tensors[i].replicated});
      shares.push_back(static_cast<Wide<Real>>(1.0 / copies));
      if (tensors[i].replicated) norms += parameters.reduced_gradient(unit, i).size();
    }
  }
  Kernels<Real>& kernels = calls.kernels();
  m_ = kernels.allocate_wide(parameters.own_weights().size());
  v_ = kernels.allocate_wide(parameters.own_weights().size());
  if (share.sequence_parallel) norms_ = kernels.allocate_wide(norms);
  squares_ = kernels.allocate_wide(owned_.size());
  shares_ = kernels.allocate_wide(owned_.size());
  kernels.upload(shares_.all(), shares);
  for (Buffer<Wide<Real>>* number : {&total_, &factor_, &found_})
    *number = kernels.allocate_wide(1);
}

template <class Real>
template <class F>
void Optimizer<Real>::each_norm(F f) {
  std::size_t at = 0;
  for (const Owned& o : owned_) {
    if (!o.replicated) continue;
    const WideOut gradient = parameters_.reduced_gradient(o.unit, o.tensor);
    f(gradient, norms_.part(at, gradient.size()));
    at += gradient.size();
  }
}

template <class Real>
void Optimizer<Real>::sum_shared_gradients() {
  if (share_.sequence_parallel) {
    std::vector<CopyPiece<Wide<Real>, Wide<Real>>> there, back;
    each_norm([&](WideOut gradient, WideOut flat) {
      there.push_back({flat, gradient});
      back.push_back({gradient, flat});
    });
    calls_.kernels().copies_wide(there);
    calls_.all_reduce_wide("norms.reduce", GroupKind::tensor, norms_.all());
    calls_.kernels().copies_wide(back);
  }
  if (!job_.model.tied_embeddings || job_.plan.pipeline == 1 || !share_.has_root) return;
  for (std::size_t i = 0; i < share_.parameters.root.size(); ++i) {
    const std::string& name = share_.parameters.root[i].name;
    if (name == "embedding" || name == "head")
      calls_.all_reduce_wide("embedding.reduce", GroupKind::embedding,
                             parameters_.reduced_gradient(0, i));
  }
}

template <class Real>
bool Optimizer<Real>::unscaled() {
  Wide<Real> found = 0;
  calls_.kernels().upload(found_.all(), {&found, 1});
  calls_.unscale(parameters_.own_gradients(), static_cast<Wide<Real>>(1.0 / scale_.value),
                 found_.all());
  calls_.all_reduce_wide("gradients.found_inf", GroupKind::world, found_.all());
  calls_.kernels().download({&found, 1}, found_.all());
  return found == 0;
}

/// total: squares of all gradients of the model, each element once. Where every rank has all of
/// them, no rank asks another.
template <class Real>
void Optimizer<Real>::clip() {
  std::vector<std::span<const Wide<Real>>> gradients;
  for (const Owned& o : owned_) gradients.push_back(parameters_.own_gradient(o.unit, o.tensor));
  calls_.sums_of_squares(squares_.all(), gradients);
  const auto tensors = static_cast<std::int64_t>(owned_.size());
  calls_.small("gradients.norm.total", tensors, [&](Kernels<Real>& kernels) {
    kernels.weighted_sum(total_.all(), squares_.all(), shares_.all());
  });
  if (!whole_on_every_rank_)
    calls_.all_reduce_wide("gradients.norm.reduce", GroupKind::world, total_.all());
  calls_.small("gradients.norm.factor", tensors, [&](Kernels<Real>& kernels) {
    kernels.clip_factor(factor_.all(), total_.all(),
                        static_cast<Wide<Real>>(job_.learning.largest_norm));
  });
  calls_.scale_gradients(parameters_.own_gradients(), factor_.all());
}

template <class Real>
void Optimizer<Real>::update() {
  parameters_.before_update();
  updated_ = !scales_ || unscaled();
  if (scales_) scale_.update(updated_);
  if (!updated_) return;
  if (job_.software.optimizer.clips) clip();
  const Learning& l = job_.learning;
  calls_.adamw(parameters_.own_weights(), m_.all(), v_.all(), parameters_.own_gradients(),
               {.learning_rate = l.rate,
                .beta1 = l.beta1,
                .beta2 = l.beta2,
                .epsilon = l.epsilon,
                .weight_decay = l.weight_decay,
                .step = ++steps_});
  parameters_.after_update();
}

template <class Real>
double Optimizer<Real>::gradient_norm() {
  if (!updated_ || !job_.software.optimizer.clips) return 0.0;
  Wide<Real> squares = 0;
  calls_.kernels().download({&squares, 1}, total_.all());
  return std::sqrt(static_cast<double>(squares));
}

template class Optimizer<float>;
template class Optimizer<double>;
template class Optimizer<Bfloat16>;
template class Optimizer<Half>;

}  // namespace stepcast::validate
