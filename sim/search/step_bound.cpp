#include "sim/search/step_bound.hpp"

#include "engine/arithmetic.hpp"
#include "sim/run/host_costs.hpp"
#include "sim/run/step_system.hpp"
#include "workloads/step/pipeline_exchange.hpp"

namespace stepcast::sim {
namespace {

using workloads::Action;
using workloads::DataParallel;
using workloads::GroupKind;

/// The engine rounds ends up to a picosecond, and a transfer's rate down to a quantum of a byte a
/// second: its time alone may be this much longer than the model's, never shorter by more.
Duration at_least(Duration modelled) {
  return std::max(Duration{}, modelled - modelled / 1'000'000 - Duration(2));
}

bool divides_either(std::int64_t a, std::int64_t b) { return a % b == 0 || b % a == 0; }

/// Ranks `count`, `stride` apart, from the first on.
std::vector<std::int64_t> ranks_apart(std::int64_t count, std::int64_t stride) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(i * stride);
  return out;
}

/// Of a plan whose stages come to one answer.
void forget_stages(workloads::ParallelPlan& plan) {
  plan.stage_layers.clear();
  plan.schedule = workloads::Schedule::one_f_one_b;
  plan.orders = {};
}

/// A lane on which collectives run beside compute, one after the other.
class Beside {
 public:
  void start(Duration now, Duration takes) { end_ = std::max(end_, now) + takes; }
  Duration end() const { return end_; }

 private:
  Duration end_{};
};

}  // namespace

StepBound::StepBound(const Scenario& base, std::shared_ptr<const Network> network,
                     std::shared_ptr<const KernelModel> kernels)
    : base_(base),
      network_(std::move(network)),
      kernels_(std::move(kernels)),
      ablated_(*network_->model, base.run.without),
      host_costs_(host_costs_of(base)) {}

void StepBound::Span::at_most(const Span& other) {
  lane = std::min(lane, other.lane);
  host = std::min(host, other.host);
  tensor = std::min(tensor, other.tensor);
}

void StepBound::Span::add(const KernelTime& kernel) {
  lane += kernel.duration;
  if (kernel.tensor_fraction > 0.0) tensor += kernel.duration;
}

StepBound::Span& StepBound::Span::operator+=(const Span& other) {
  lane += other.lane;
  host += other.host;
  tensor += other.tensor;
  return *this;
}

/// How groups of a kind lie on the nodes, where all of a plan's lie alike; none: they do not.
std::optional<GroupShape> StepBound::shape_of_group(const workloads::ParallelPlan& plan,
                                                    GroupKind kind) {
  const workloads::Axis& axis = workloads::axis_of(kind);
  if (axis.stride == nullptr) return std::nullopt;
  const std::int64_t count = axis.degree(plan), stride = axis.stride(plan);
  const std::int64_t node = base_.node.gpus;
  // A pair inside a node is alike everywhere only if stages never begin inside one.
  const bool pair = axis.meeting == workloads::Meeting::pair;
  const bool alike = pair ? stride % node == 0
                          : divides_either(node, stride) && divides_either(node, stride * count);
  if (!alike && count > 1 && kind != GroupKind::world) return std::nullopt;
  const auto [at, is_new] = shapes_.try_emplace({count, stride, 0});
  if (is_new) at->second = shape_of(network_->cluster(), ranks_apart(count, stride));
  return at->second;
}

/// Alone on its links; nothing where groups differ, or one rank has all.
Duration StepBound::time_of(const workloads::Collective& c, const workloads::ParallelPlan& plan) {
  const auto shape = shape_of_group(plan, c.group);
  if (!shape || shape->ranks == 1) return {};
  if (c.tokens.tokens > 0) return at_least(ablated_.time_of(c, *shape).duration);
  const auto [at, is_new] = times_.try_emplace({c.kind, c.bytes.value, c.dtype, *shape});
  if (is_new) at->second = at_least(ablated_.time_of(c, *shape).duration);
  return at->second;
}

std::vector<KernelTime> StepBound::times_of(const std::vector<workloads::Kernel>& kernels) const {
  std::vector<KernelTime> out;
  for (const workloads::Kernel& kernel : kernels) out.push_back(kernels_->time_of(kernel));
  return out;
}

StepBound::Span StepBound::span_of(const workloads::Piece& piece,
                                   const workloads::MicroBatchParts& of,
                                   const std::vector<KernelTime>& kernels,
                                   const workloads::ParallelPlan& plan) {
  using Kind = Action::Kind;
  Span out;
  Beside tensor, ring, tokens;
  const auto call = [&](workloads::HostCost cost) { out.host += host_costs_[cost]; };
  const auto alone = [&](std::uint32_t index) { return time_of(of.collectives[index], plan); };
  // Under another micro-batch's compute: it may be hidden whole.
  const auto exchange = [&](std::uint32_t index) {
    return plan.expert.overlap ? Duration{} : alone(index);
  };
  for (const Action& action : piece) switch (action.kind) {
      case Kind::kernel:
      case Kind::forward_kernel:
        out.add(kernels[action.index]);
        call(action.kind == Kind::kernel ? workloads::kernel_call : workloads::forward_kernel_call);
        break;
      case Kind::graph:
        call(workloads::graph_call);
        break;
      case Kind::graph_kernel:
        out.add(kernels[action.index]);
        call(workloads::graph_node_call);
        break;
      case Kind::module:
        call(workloads::module_call);
        break;
      case Kind::collective:
      case Kind::context:
        out.lane = std::max(out.lane, tensor.end()) + alone(action.index);
        call(workloads::collective_call);
        break;
      case Kind::begin:
      case Kind::tensor_ring:
        tensor.start(out.lane, alone(action.index));
        call(action.library ? workloads::event_call : workloads::collective_call);
        break;
      case Kind::end:
        out.lane = std::max(out.lane, tensor.end());
        break;
      case Kind::ring_start:
        ring.start(out.lane, alone(action.index));
        call(workloads::collective_call);
        break;
      case Kind::ring_wait:
        out.lane = std::max(out.lane, ring.end());
        break;
      case Kind::tokens:
        call(workloads::collective_call);
        if (plan.expert.overlap) break;  // it may be hidden whole
        out.lane = std::max(out.lane, tokens.end()) + alone(action.index);
        break;
      case Kind::expert_tensor:
        out.lane = std::max(out.lane, tokens.end()) + exchange(action.index);
        call(workloads::collective_call);
        break;
      case Kind::begin_tokens:
        tokens.start(out.lane, exchange(action.index));
        call(workloads::collective_call);
        break;
      case Kind::end_tokens:
        out.lane = std::max(out.lane, tokens.end());
        break;
      case Kind::host_call:
        call(static_cast<workloads::HostCost>(action.index));
        break;
      case Kind::host_wait:  // what it costs is more than the bound counts
      case Kind::gradient:
        break;
    }
  return out;
}

/// Kernels on the compute lane; collectives that stand on it or that it waits for at once.
StepBound::Span StepBound::span_of(const workloads::PartCalls& part,
                                   const workloads::ParallelPlan& plan) {
  const std::vector<KernelTime> kernels = times_of(part.kernels);
  Span out;
  Beside data;
  for (const engine::Instruction& i : part.calls) {
    out.host += host_costs_[i.host_cost];
    if (i.lane == workloads::compute && i.op == engine::Op::work) out.add(kernels[i.arg]);
    if (i.lane == workloads::compute && i.op == engine::Op::join)
      out.lane += time_of(part.collectives[i.arg], plan);
    if (i.lane == workloads::data_lane && i.op == engine::Op::join)
      data.start(out.lane, time_of(part.collectives[i.arg], plan));
    if (i.lane == workloads::compute && i.op == engine::Op::wait)
      out.lane = std::max(out.lane, data.end());
  }
  return out;
}

std::size_t StepBound::QuestionHash::operator()(const Question& q) const {
  std::size_t out = 0;
  for (const std::int64_t member :
       {q.plan.tensor, q.plan.context, q.plan.data_degree, q.plan.shard_degree, q.plan.pipeline,
        q.plan.virtual_stages, q.plan.expert.degree, q.batch.micro_batch, q.batch.micro_batches,
        static_cast<std::int64_t>(q.plan.data), static_cast<std::int64_t>(q.plan.recompute),
        q.plan.recompute_every})
    out = out * 31 + static_cast<std::size_t>(member);
  return out;
}

/// A question that is told anew each time: its plan's lists keep their place.
StepBound::Question& StepBound::asked(const workloads::ParallelPlan& plan,
                                      const workloads::Batch& batch) {
  asked_.plan = plan;
  asked_.batch = batch;
  return asked_;
}

const StepBound::Parts& StepBound::parts(const workloads::StepInputs& in) {
  const workloads::ParallelPlan& plan = in.plan;
  Question& key = asked(plan, in.batch);
  key.plan.data = in.sharded() ? DataParallel::zero3 : DataParallel::ddp;
  key.plan.data_degree = key.plan.virtual_stages = key.plan.prefetch = 1;
  key.plan.shard_degree = 0;
  // A head on the stage of the embeddings adds to them.
  key.plan.pipeline = std::min<std::int64_t>(plan.pipeline, 2);
  key.plan.recompute_every = std::min<std::int64_t>(plan.recompute_every, 2);
  forget_stages(key.plan);
  key.plan.reduce = workloads::ReduceWhen::last;
  key.batch.micro_batches = 1;
  const auto [at, is_new] = parts_.try_emplace(key);
  if (!is_new) return at->second;
  const workloads::MicroBatchParts of = workloads::micro_batch_parts(in);
  const std::vector<KernelTime> kernels = times_of(of.kernels);
  const auto span = [&](const workloads::Piece& piece) {
    return span_of(piece, of, kernels, plan);
  };
  const auto least = [&](workloads::Piece workloads::LayerPieces::*piece) {
    Span out = span(of.layers.front().*piece);
    for (const workloads::LayerPieces& layer : of.layers) out.at_most(span(layer.*piece));
    return out;
  };
  using workloads::LayerPieces;
  at->second = {least(&LayerPieces::forward),
                least(&LayerPieces::backward),
                least(&LayerPieces::kept_backward),
                span(of.embedding_forward),
                span(of.embedding_backward),
                span(of.head_forward),
                span(of.head_backward)};
  return at->second;
}

const StepBound::Data& StepBound::data(const workloads::StepInputs& in) {
  const workloads::ParallelPlan& plan = in.plan;
  const bool all_again = plan.recompute == workloads::Recompute::full && plan.recompute_every == 1;
  Question& key = asked(plan, in.batch);
  key.plan.shard_degree = plan.shards();
  key.plan.pipeline = std::min<std::int64_t>(plan.pipeline, 2);
  key.plan.virtual_stages = key.plan.prefetch = key.plan.recompute_every = 1;
  key.plan.recompute = all_again ? plan.recompute : workloads::Recompute::none;
  key.plan.sequence_parallel = false;
  forget_stages(key.plan);
  if (plan.schedule == workloads::Schedule::gpipe) key.plan.schedule = plan.schedule;
  key.batch.micro_batch = 1;
  key.batch.micro_batches = std::min<std::int64_t>(in.batch.micro_batches, 2);
  const auto [at, is_new] = data_.try_emplace(key);
  if (!is_new) return at->second;
  Data& out = at->second;
  const auto compute_of = [&](const workloads::PartCalls& part) {
    workloads::PartCalls own = part;  // gathers ahead of their use are in the chain, not here
    std::erase_if(own.calls, [](const engine::Instruction& i) {
      return i.op == engine::Op::join && i.lane != workloads::compute;
    });
    return span_of(own, plan);
  };
  // Of the kinds of layers the least of each, whatever a stage has of them.
  std::int64_t unit = 0;
  for (const workloads::LayerKind kind : workloads::layer_kinds(in.shape, in.precision)) {
    const workloads::LayerData layer = workloads::layer_data(in, kind);
    const std::int64_t elements = workloads::elements_of(
        workloads::layer_tensors(in.shape, plan, in.software.products.packed, kind));
    const bool first = unit == 0;
    unit = first ? elements : std::min(unit, elements);
    if (first) out.first = compute_of(layer.first), out.later = compute_of(layer.later);
    out.first.at_most(compute_of(layer.first));
    out.later.at_most(compute_of(layer.later));
  }
  if (!in.sharded() || in.software.data.gather_each_tensor || plan.shards() == 1) return out;
  if (plan.expert_copies() != plan.copies()) return out;  // a unit is gathered in two groups
  if (workloads::adapted(in.shape)) return out;  // units are gathered in two types, few reduced
  std::int64_t root = workloads::elements_of(workloads::embedding_tensors(in.shape, plan.tensor));
  if (plan.pipeline == 1)
    root += workloads::elements_of(workloads::head_tensors(in.shape, plan.tensor, false));
  out.gather = time_of(workloads::unit_gather(in, unit), plan);
  out.reduction = time_of(workloads::unit_reduction(in, unit), plan);
  out.root_gather = time_of(workloads::unit_gather(in, root), plan);
  out.root_reduction = time_of(workloads::unit_reduction(in, root), plan);
  return out;
}

/// Of the first stage: what stands between its last backward and its next forward.
const StepBound::Span& StepBound::tail(const workloads::StepInputs& in) {
  const workloads::ParallelPlan& plan = in.plan;
  Question& key = asked(plan, {});
  key.plan.shard_degree = plan.shards();
  key.plan.recompute = workloads::Recompute::none;
  key.plan.recompute_every = key.plan.prefetch = 1;
  key.plan.sequence_parallel = false;
  key.plan.reduce = workloads::ReduceWhen::last;
  if (plan.placement() == workloads::Placement::looped)
    key.plan.schedule = workloads::Schedule::one_f_one_b;
  const auto [at, is_new] = tails_.try_emplace(key);
  if (is_new)
    at->second = span_of(
        workloads::stage_tail(in, workloads::stage_parameters(in.shape, plan, in.precision,
                                                              in.software.products.packed, 0)),
        plan);
  return at->second;
}

/// Of the first stage, with each micro-batch. A stage that has the head as well fills its buckets
/// in another order, and counts nothing.
StepBound::Reductions StepBound::reductions(const workloads::StepInputs& in) {
  const workloads::ParallelPlan& plan = in.plan;
  if (in.sharded() || plan.pipeline == 1) return {};
  Question& key = asked(plan, {});
  key.plan.recompute = workloads::Recompute::none;
  key.plan.recompute_every = key.plan.prefetch = 1;
  const auto [at, is_new] = reductions_.try_emplace(key);
  if (!is_new) return at->second;
  const workloads::StageParameters stage =
      workloads::stage_parameters(in.shape, plan, in.precision, in.software.products.packed, 0);
  for (const workloads::PartCalls& chunk : workloads::bucket_reductions(in, stage)) {
    Duration last{};
    for (const engine::Instruction& i : chunk.calls) {
      if (i.lane != workloads::data_lane || i.op != engine::Op::join) continue;
      last = time_of(chunk.collectives[i.arg], plan);
      at->second.all += last;
    }
    at->second.last += last;
  }
  return at->second;
}

/// One message between neighbouring stages.
Duration StepBound::hop(const workloads::StepInputs& in) {
  if (in.plan.pipeline == 1) return {};
  return time_of(
      workloads::stage_message(in, workloads::Pass::forward, GroupKind::pipeline_forward), in.plan);
}

StepBound::Terms StepBound::of(const workloads::ParallelPlan& plan, const workloads::Batch& batch) {
  const workloads::StepInputs in{base_.model, plan, batch, base_.precision, base_.software};
  const Parts& of = parts(in);
  const Data& data = this->data(in);
  const Span& end = tail(in);
  const Duration message = hop(in);
  const std::int64_t m = batch.micro_batches, last_part = plan.parts() - 1;
  const auto forward = [&](std::int64_t part) {
    Span out = workloads::layers_of_part(in.shape.layers, plan, part) * of.layer_forward;
    if (part == 0) out += of.embedding_forward;
    if (part == last_part) out += of.head_forward;
    return out;
  };
  const auto backward = [&](std::int64_t part) {
    const std::int64_t layers = workloads::layers_of_part(in.shape.layers, plan, part);
    const std::int64_t again = ceil_div(layers, plan.recompute_every);
    Span out = again * of.layer_backward;
    out += (layers - again) * of.kept_backward;
    if (part == 0) out += of.embedding_backward;
    if (part == last_part) out += of.head_backward;
    return out;
  };
  const bool zero3 = plan.data == workloads::DataParallel::zero3;
  const std::int64_t gathers = zero3 ? 2 * m : 1;
  const bool each = plan.reduce == workloads::ReduceWhen::each;
  const std::int64_t reductions_of_unit = each ? m : 1;
  const Duration first_layer = std::max(Duration{}, data.gather - of.embedding_forward.lane);
  // Zero-bubble orders fill the drain with other work, and may not end on the first stage.
  // Nor do stages drain one after the other where weight gradients wait.
  const bool drains =
      !plan.expert.delay_wgrad && (plan.schedule == workloads::Schedule::gpipe ||
                                   plan.schedule == workloads::Schedule::one_f_one_b);
  const bool mirrored = plan.placement() == workloads::Placement::mirrored;
  const bool waits = each && drains && !plan.expert.overlap;
  const Reductions buckets = waits ? reductions(in) : Reductions{};
  const Duration ends =
      data.root_gather + first_layer + end.lane + (drains ? data.root_reduction : Duration{});
  Terms terms;
  Duration tensor{};  // of all stages
  Duration before{};  // fill and drain of the stage at hand
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    Span own;
    Duration backwards{};
    std::int64_t layers = 0, chunks = 0;  // with layers
    for (std::int64_t chunk = 0; chunk < plan.virtual_stages; ++chunk) {
      const std::int64_t part = plan.part_of(stage, chunk);
      Span both = forward(part);
      const Span back = backward(part);
      both += back;
      backwards += back.lane;
      own += (mirrored ? m / 2 : m) * both;
      const std::int64_t of_part = workloads::layers_of_part(in.shape.layers, plan, part);
      layers += of_part;
      chunks += of_part > 0 ? 1 : 0;
    }
    tensor += own.tensor;
    own += layers * data.first;
    own += (layers * (m - 1) / (mirrored ? 2 : 1)) * data.later;
    // Compute waits for what a chunk's backward reduces, the last of which its last gradient
    // begins.
    if (waits) {
      Reductions of_turns{layers * data.reduction, chunks * data.reduction};
      if (stage == 0) of_turns = in.sharded() ? Reductions{} : buckets;
      own.lane += m * std::max(of_turns.last, of_turns.all - backwards);
    }
    const bool ends_step = drains || stage == 0;
    terms.pipe = std::max(terms.pipe, before + own.lane + (ends_step ? ends : Duration{}));
    terms.host = std::max(terms.host, own.host + (stage == 0 ? end.host : Duration{}));
    const Duration root = stage == 0 ? data.root_gather + data.root_reduction : Duration{};
    terms.chain = std::max(
        terms.chain, layers * (gathers * data.gather + reductions_of_unit * data.reduction) + root +
                         (stage == 0 ? m * buckets.all : Duration{}));
    if (drains) before += forward(stage).lane + backward(stage).lane + 2 * message;
  }
  terms.tensor_s = seconds(tensor) / static_cast<double>(plan.pipeline);
  return terms;
}

}  // namespace stepcast::sim
