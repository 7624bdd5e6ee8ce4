#include "validate/trainer/model/step.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "workloads/step/pipeline_exchange.hpp"

namespace stepcast::validate {
namespace {

using workloads::Pass;
using workloads::Recompute;
using workloads::Turn;

workloads::PipelineShape pipeline_of(const TrainerJob& job) {
  return {.schedule = job.plan.schedule,
          .stages = job.plan.pipeline,
          .micro_batches = job.batch.micro_batches,
          .chunks = job.plan.virtual_stages};
}

LayerKinds kind_of(const RankShare& share, std::size_t layer) {
  const bool experts = share.has_experts(share.unit_of_layer(layer));
  return {!experts, experts};
}

/// Of any layer here.
LayerKinds all_kinds(const RankShare& share) {
  LayerKinds all{false, false};
  for (std::size_t layer = 0; layer < share.layers; ++layer) {
    const LayerKinds one = kind_of(share, layer);
    all = {all.dense || one.dense, all.experts || one.experts};
  }
  return all;
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
      optimizer_(job_, share_, calls_, *parameters_),
      turns_(workloads::turns_of_stage(pipeline_of(job_), share_.at.pipeline)),
      received_(turns_.size()) {
  for (std::size_t i = 0; i < share_.chunks.size(); ++i) chunks_.push_back(make_chunk(i));
  if (job_.plan.recompute == Recompute::full)
    again_ = make_activations(*device_.kernels, share_, all_kinds(share_));
}

/// With virtual stages the input of the next micro-batch may come while all others are needed.
template <class Real>
auto Trainer<Real>::make_chunk(std::size_t index) -> Chunk {
  std::vector<std::int64_t> this_one(share_.chunks.size(), 0);
  this_one[index] = 1;
  const std::int64_t slots =
      workloads::peak_in_flight(pipeline_of(job_), share_.at.pipeline, this_one);
  const std::int64_t ahead = job_.plan.virtual_stages > 1 ? 1 : 0;
  Chunk chunk;
  for (std::int64_t i = 0; i < slots; ++i) chunk.slots.push_back(make_slot(share_.chunks[index]));
  for (std::int64_t i = 0; i < std::min(slots + ahead, job_.batch.micro_batches); ++i)
    chunk.inputs.push_back(device_.kernels->allocate(share_.local_tokens * share_.hidden));
  return chunk;
}

template <class Real>
auto Trainer<Real>::make_slot(const ChunkShare& part) -> Slot {
  Slot slot;
  Kernels<Real>& kernels = *device_.kernels;
  slot.gradient = kernels.allocate(share_.local_tokens * share_.hidden);
  if (part.first) slot.tokens = kernels.allocate_tokens(share_.tokens);
  for (std::size_t i = 0; i < part.layers; ++i)
    slot.outputs.push_back(kernels.allocate(share_.local_tokens * share_.hidden));
  if (job_.plan.recompute != Recompute::full)
    for (std::size_t i = 0; i < part.layers; ++i)
      slot.kept.push_back(make_activations(kernels, share_, kind_of(share_, part.first_here + i)));
  if (part.last) slot.head = make_head_activations(kernels, share_);
  return slot;
}

template <class Real>
LayerActivations<Real>& Trainer<Real>::kept(Slot& slot, std::size_t layer) {
  return again_ ? *again_ : slot.kept[layer];
}

template <class Real>
const ChunkShare& Trainer<Real>::part_of(const Turn& turn) const {
  return share_.chunks[static_cast<std::size_t>(turn.chunk)];
}

template <class Real>
auto Trainer<Real>::chunk_of(const Turn& turn) -> Chunk& {
  return chunks_[static_cast<std::size_t>(turn.chunk)];
}

template <class Real>
std::span<Real> Trainer<Real>::input(const Turn& turn, std::size_t layer) {
  Chunk& chunk = chunk_of(turn);
  return layer == 0 ? chunk.input(turn.micro_batch)
                    : chunk.slot(turn.micro_batch).outputs[layer - 1].all();
}

template <class Real>
void Trainer<Real>::read(Slot& slot, const Samples& samples) {
  if (slot.tokens.size() > 0) calls_.kernels().upload_tokens(slot.tokens.all(), samples.inputs);
  if (slot.head) calls_.kernels().upload_tokens(slot.head->targets.all(), samples.targets);
}

template <class Real>
void Trainer<Real>::forward(const Turn& turn, const Data& data) {
  const ChunkShare& part = part_of(turn);
  Slot& slot = chunk_of(turn).slot(turn.micro_batch);
  if (slot.sent_up) calls_.wait(workloads::compute, *slot.sent_up);
  if (part.first || part.last) {
    read(slot, data(turn.micro_batch));
    parameters_->before_forward(0);
  }
  if (part.first) ends_.embedding_forward(slot.tokens.all(), input(turn, 0));
  for (std::size_t i = 0; i < part.layers; ++i) {
    const std::size_t unit = share_.unit_of_layer(part.first_here + i);
    parameters_->before_forward(unit);
    layer_.forward(unit, input(turn, i), kept(slot, i), input(turn, i + 1));
    parameters_->after_forward(unit);
  }
  const auto output = input(turn, part.layers);
  if (part.last)
    ends_.head_forward(output, *slot.head);
  else
    slot.sent_up = calls_.send_forward(output);
}

template <class Real>
void Trainer<Real>::backward(const Turn& turn) {
  const ChunkShare& part = part_of(turn);
  Chunk& chunk = chunk_of(turn);
  Slot& slot = chunk.slot(turn.micro_batch);
  const bool first = chunk.backwards++ == 0, last = chunk.backwards == job_.batch.micro_batches;
  parameters_->start_backward(first, last);
  const auto gradient = slot.gradient.all();
  if (part.last && slot.sent_down) calls_.wait(workloads::compute, *slot.sent_down);
  const bool root = part.first || part.last;
  if (root) parameters_->before_backward(0);
  // The mean over all tokens of all replicas: with it in the loss, gradients need only be summed.
  const double tokens = static_cast<double>(static_cast<std::int64_t>(share_.tokens) *
                                            job_.batch.micro_batches * job_.plan.data_degree);
  if (part.last)
    ends_.head_backward(input(turn, part.layers), *slot.head, optimizer_.loss_scale() / tokens,
                        gradient);
  for (std::size_t i = part.layers; i-- > 0;) {
    const std::size_t unit = share_.unit_of_layer(part.first_here + i);
    parameters_->before_backward(unit);
    layer_.backward(unit, input(turn, i), kept(slot, i), gradient);
    parameters_->after_backward(unit);
  }
  if (part.first)
    ends_.embedding_backward(slot.tokens.all(), gradient);
  else
    slot.sent_down = calls_.send_backward(gradient);
  if (root) parameters_->after_backward(0);
  if (++backwards_ * 2 == std::ssize(turns_)) parameters_->finish_backward();
}

template <class Real>
bool Trainer<Real>::receives(const Turn& turn) const {
  return turn.pass == Pass::forward ? !part_of(turn).first : !part_of(turn).last;
}

/// Into the turn's memory, which a message of an earlier one may still leave.
template <class Real>
void Trainer<Real>::receive(std::size_t index) {
  const Turn& turn = turns_[index];
  if (!receives(turn) || received_[index]) return;
  Slot& slot = chunk_of(turn).slot(turn.micro_batch);
  received_[index] = turn.pass == Pass::forward
                         ? calls_.receive_forward(input(turn, 0), std::nullopt)
                         : calls_.receive_backward(slot.gradient.all(), slot.sent_down);
}

/// With virtual stages the receive for the next turn of the pass is posted now, to run under the
/// turn of the other pass between them; the first of the backwards at the end of the warm-up. One
/// core alone receives when it needs to.
template <class Real>
void Trainer<Real>::receive_ahead(std::size_t turn) {
  if (job_.plan.virtual_stages == 1 || calls_.one_lane()) return;
  for (const std::size_t next : workloads::receives_ahead(turns_, turn)) receive(next);
}

template <class Real>
void Trainer<Real>::run_turn(std::size_t index, const Data& data) {
  const Turn& turn = turns_[index];
  const ChunkShare& part = part_of(turn);
  const std::size_t begin = share_.unit_of_layer(part.first_here);
  parameters_->enter({begin, begin + part.layers});
  receive(index);
  if (received_[index]) calls_.wait(workloads::compute, *received_[index]);
  if (turn.pass == Pass::forward)
    forward(turn, data);
  else
    backward(turn);
  receive_ahead(index);
}

template <class Real>
StepResult Trainer<Real>::put_forward_and_backward(const Data& data) {
  backwards_ = 0;
  device_.lanes->start();
  std::ranges::fill(received_, std::nullopt);
  for (Chunk& chunk : chunks_) {
    chunk.backwards = 0;
    for (Slot& slot : chunk.slots) slot.sent_up = slot.sent_down = std::nullopt;
  }
  ends_.start_step();
  parameters_->start_step();
  for (std::size_t turn = 0; turn < turns_.size(); ++turn) run_turn(turn, data);
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
