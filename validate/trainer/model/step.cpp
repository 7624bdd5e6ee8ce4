#include "validate/trainer/model/step.hpp"

#include <utility>

#include "workloads/plan/pipeline.hpp"

namespace stepcast::validate {
namespace {

using workloads::Pass;
using workloads::Recompute;
using workloads::Turn;

workloads::PipelineShape pipeline_of(const TrainerJob& job) {
  return {.schedule = job.plan.schedule,
          .stages = job.plan.pipeline,
          .micro_batches = job.batch.micro_batches};
}

std::size_t peak_slots(const TrainerJob& job, std::int64_t stage) {
  return static_cast<std::size_t>(workloads::peak_in_flight(pipeline_of(job), stage, {1}));
}

}  // namespace

template <class Real>
Trainer<Real>::Trainer(const TrainerJob& job, RankDevice<Real> device)
    : job_(job),
      device_(std::move(device)),
      share_(job_, device_.groups.world->rank()),
      calls_(*device_.kernels, *device_.lanes, device_.groups,
             job_.software.host.collectives_hold_core),
      parameters_(make_parameters<Real>(job_, share_, calls_)),
      work_(*device_.kernels, share_),
      layer_(job_, share_, calls_, *parameters_, work_),
      ends_(job_, share_, calls_, *parameters_, work_),
      optimizer_(job_, share_, calls_, *parameters_) {
  const std::size_t count = peak_slots(job_, share_.at.pipeline);
  while (slots_.size() < count) slots_.push_back(make_slot());
  if (job_.plan.recompute == Recompute::full) again_ = make_activations(*device_.kernels, share_);
}

template <class Real>
auto Trainer<Real>::make_slot() -> Slot {
  Slot slot;
  Kernels<Real>& kernels = *device_.kernels;
  slot.gradient = kernels.allocate(share_.local_tokens * share_.hidden);
  if (share_.first_stage) slot.tokens = kernels.allocate_tokens(share_.tokens);
  const auto layers = static_cast<std::size_t>(share_.layers);
  for (std::size_t i = 0; i <= layers; ++i)
    slot.inputs.push_back(kernels.allocate(share_.local_tokens * share_.hidden));
  if (job_.plan.recompute != Recompute::full)
    for (std::size_t i = 0; i < layers; ++i) slot.kept.push_back(make_activations(kernels, share_));
  if (share_.last_stage) slot.head = make_head_activations(kernels, share_);
  return slot;
}

template <class Real>
LayerActivations<Real>& Trainer<Real>::kept(Slot& slot, std::size_t layer) {
  return again_ ? *again_ : slot.kept[layer];
}

template <class Real>
void Trainer<Real>::read(Slot& slot, const Samples& samples) {
  if (share_.first_stage) calls_.kernels().upload_tokens(slot.tokens.all(), samples.inputs);
  if (slot.head) calls_.kernels().upload_tokens(slot.head->targets.all(), samples.targets);
}

template <class Real>
void Trainer<Real>::forward(std::int64_t micro_batch, const Data& data) {
  Slot& slot = slot_of(micro_batch);
  if (slot.sent_up) calls_.wait(workloads::compute, *slot.sent_up);
  if (share_.has_root) read(slot, data(micro_batch));
  if (!share_.first_stage) calls_.receive_forward(slot.inputs.front().all());
  if (share_.has_root) parameters_->before_forward(0);
  if (share_.first_stage) ends_.embedding_forward(slot.tokens.all(), slot.inputs.front().all());
  for (std::size_t i = 0; i < static_cast<std::size_t>(share_.layers); ++i) {
    const std::size_t unit = share_.unit_of_layer(i);
    parameters_->before_forward(unit);
    layer_.forward(unit, slot.inputs[i].all(), kept(slot, i), slot.inputs[i + 1].all());
    parameters_->after_forward(unit);
  }
  if (share_.last_stage)
    ends_.head_forward(slot.inputs.back().all(), *slot.head);
  else
    slot.sent_up = calls_.send_forward(slot.inputs.back().all());
}

template <class Real>
void Trainer<Real>::backward(std::int64_t micro_batch) {
  Slot& slot = slot_of(micro_batch);
  const bool first = backwards_++ == 0, last = backwards_ == job_.batch.micro_batches;
  parameters_->start_backward(first, last);
  const auto gradient = slot.gradient.all();
  if (slot.sent_down) calls_.wait(workloads::compute, *slot.sent_down);
  if (!share_.last_stage) calls_.receive_backward(gradient);
  if (share_.has_root) parameters_->before_backward(0);
  // The mean over all tokens of all replicas: with it in the loss, gradients need only be summed.
  const double tokens = static_cast<double>(static_cast<std::int64_t>(share_.tokens) *
                                            job_.batch.micro_batches * job_.plan.data_degree);
  if (share_.last_stage)
    ends_.head_backward(slot.inputs.back().all(), *slot.head, optimizer_.loss_scale() / tokens,
                        gradient);
  for (std::size_t i = static_cast<std::size_t>(share_.layers); i-- > 0;) {
    const std::size_t unit = share_.unit_of_layer(i);
    parameters_->before_backward(unit);
    layer_.backward(unit, slot.inputs[i].all(), kept(slot, i), gradient);
    parameters_->after_backward(unit);
  }
  if (share_.first_stage)
    ends_.embedding_backward(slot.tokens.all(), gradient);
  else
    slot.sent_down = calls_.send_backward(gradient);
  if (share_.has_root) parameters_->after_backward(0);
  if (last) parameters_->finish_backward();
}

template <class Real>
StepResult Trainer<Real>::put_forward_and_backward(const Data& data) {
  backwards_ = 0;
  device_.lanes->start();
  for (Slot& slot : slots_) slot.sent_up = slot.sent_down = std::nullopt;
  ends_.start_step();
  parameters_->start_step();
  for (const Turn& turn : workloads::turns_of_stage(pipeline_of(job_), share_.at.pipeline)) {
    if (turn.pass == Pass::forward)
      forward(turn.micro_batch, data);
    else
      backward(turn.micro_batch);
  }
  optimizer_.sum_shared_gradients();
  StepResult result;
  if (share_.last_stage) result.loss = 0.0;
  return result;
}

/// Mean over this replica's tokens; read when everything is on its way.
template <class Real>
void Trainer<Real>::finish(StepResult& result) {
  device_.lanes->synchronize();
  if (!result.loss) return;
  result.loss = ends_.loss() / static_cast<double>(static_cast<std::int64_t>(share_.tokens) *
                                                   job_.batch.micro_batches);
}

template <class Real>
StepResult Trainer<Real>::step(const Data& data, OperationLog* log) {
  if (log != nullptr) log->start();
  calls_.log_to(log);
  StepResult result = put_forward_and_backward(data);
  optimizer_.update();
  calls_.log_to(nullptr);
  finish(result);
  if (log != nullptr) log->read_times(*device_.lanes);
  result.gradient_norm = optimizer_.gradient_norm();
  return result;
}

template <class Real>
StepResult Trainer<Real>::forward_and_backward(const Data& data) {
  StepResult result = put_forward_and_backward(data);
  finish(result);
  return result;
}

template <class Real>
TrainerState<Real> Trainer<Real>::state() {
  return {parameters_->own_weights(), optimizer_.first_moments().all(),
          optimizer_.second_moments().all(), optimizer_.steps(), optimizer_.scale()};
}

template class Trainer<float>;
template class Trainer<double>;
template class Trainer<Bfloat16>;
template class Trainer<Half>;

}  // namespace stepcast::validate
