#include "validate/trainer_optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast::validate {

using workloads::DataParallel;
using workloads::GroupKind;

template <class Real>
Optimizer<Real>::Optimizer(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls,
                           Parameters<Real>& parameters)
    : job_(job),
      share_(share),
      calls_(calls),
      parameters_(parameters),
      m_(calls.kernels().allocate(parameters.own_weights().size())),
      v_(calls.kernels().allocate(parameters.own_weights().size())),
      sum_(calls.kernels().allocate(1)) {
  const bool whole = job.plan.data == DataParallel::ddp;
  const bool tied = job.model.tied_embeddings && job.plan.pipeline > 1;
  std::size_t norms = 0;
  for (std::size_t unit = 0; unit < share.units(); ++unit) {
    const auto tensors = tensors_of_unit(job, share, unit);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      double copies = whole ? static_cast<double>(job.plan.data_degree) : 1.0;
      if (tensors[i].replicated) copies *= static_cast<double>(job.plan.tensor);
      if (tied && (tensors[i].name == "embedding" || tensors[i].name == "head")) copies *= 2.0;
      owned_.push_back({unit, i, copies, tensors[i].replicated});
      if (tensors[i].replicated) norms += parameters.own_gradient(unit, i).size();
    }
  }
  if (share.sequence_parallel) norms_ = calls.kernels().allocate(norms);
}

template <class Real>
void Optimizer<Real>::sum_shared_gradients() {
  if (share_.sequence_parallel) {
    Kernels<Real>& kernels = calls_.kernels();
    const auto each_norm = [&](auto copy) {
      std::size_t at = 0;
      for (const Owned& o : owned_) {
        if (!o.replicated) continue;
        const auto gradient = parameters_.own_gradient(o.unit, o.tensor);
        copy(gradient, norms_.part(at, gradient.size()));
        at += gradient.size();
      }
    };
    each_norm([&](auto gradient, auto flat) { kernels.copy(flat, gradient); });
    calls_.all_reduce("norms.reduce", GroupKind::tensor, norms_.all());
    each_norm([&](auto gradient, auto flat) { kernels.copy(gradient, flat); });
  }
  if (!job_.model.tied_embeddings || job_.plan.pipeline == 1 || !share_.has_root) return;
  for (std::size_t i = 0; i < share_.parameters.root.size(); ++i) {
    const std::string& name = share_.parameters.root[i].name;
    if (name == "embedding" || name == "head")
      calls_.all_reduce("embedding.reduce", GroupKind::embedding, parameters_.own_gradient(0, i));
  }
}

/// Squares of all gradients of the model, each element once. Where every rank has all of them, no
/// rank asks another.
template <class Real>
double Optimizer<Real>::world_squares() {
  const workloads::ParallelPlan& plan = job_.plan;
  const bool whole_on_every_rank =
      plan.data == DataParallel::ddp && plan.tensor == 1 && plan.pipeline == 1;
  std::vector<std::span<const Real>> gradients;
  for (const Owned& o : owned_) gradients.push_back(parameters_.own_gradient(o.unit, o.tensor));
  const std::vector<double> squares = calls_.squares(gradients);
  double total = 0.0;
  calls_.small("gradients.norm.total", static_cast<std::int64_t>(owned_.size()), [&] {
    for (std::size_t i = 0; i < squares.size(); ++i)
      total += squares[i] / (whole_on_every_rank ? 1.0 : owned_[i].copies);
  });
  if (whole_on_every_rank) return total;
  Real sum = static_cast<Real>(total);
  calls_.kernels().upload(sum_.all(), {&sum, 1});
  calls_.all_reduce("gradients.norm.reduce", GroupKind::world, sum_.all());
  calls_.kernels().download({&sum, 1}, sum_.all());
  return static_cast<double>(sum);
}

template <class Real>
double Optimizer<Real>::clip() {
  norm_ = std::sqrt(world_squares());
  double factor = 1.0;
  calls_.small("gradients.norm.factor", static_cast<std::int64_t>(owned_.size()),
               [&] { factor = std::min(1.0, job_.learning.largest_norm / (norm_ + 1e-6)); });
  return factor;
}

template <class Real>
void Optimizer<Real>::update() {
  const auto gradients = parameters_.own_gradients();
  if (job_.software.clip_gradients) calls_.scale_gradients(gradients, static_cast<Real>(clip()));
  const Learning& l = job_.learning;
  calls_.adamw(parameters_.own_weights(), m_.all(), v_.all(), gradients,
               {.learning_rate = l.rate,
                .beta1 = l.beta1,
                .beta2 = l.beta2,
                .epsilon = l.epsilon,
                .weight_decay = l.weight_decay,
                .step = ++steps_});
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace stepcast::validate
