#include "validate/trainer/model/step_calls.hpp"

#include <array>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using workloads::Collective;
using workloads::CollectiveKind;
using workloads::Dtype;
using workloads::GroupKind;
using workloads::Kernel;
using workloads::KernelFamily;

constexpr std::array<const char*, 3> layout_names{"NT", "NN", "TN"};

double gemm_flops(const ProductSizes& s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
}

/// Q K^T and P V: 4 b a s^2 d, half of it under the causal mask; backward five products for two.
double attention_flops(KernelFamily family, const AttentionSizes& s) {
  const double forward = 2.0 * static_cast<double>(s.batch * s.sequence) *
                         static_cast<double>(s.sequence) *
                         static_cast<double>(s.heads * s.head_dim);
  return family == KernelFamily::attention_forward ? forward : 2.5 * forward;
}

template <class Pieces>
std::int64_t copied(const Pieces& pieces) {
  std::int64_t elements = 0;
  for (const auto& piece : pieces) elements += as_count(piece.to.size());
  return elements;
}

/// The stage after this one, or before it; the last one's next is the first.
std::int64_t neighbour(const Communicator& stages, std::int64_t by) {
  return (stages.rank() + by + stages.size()) % stages.size();
}

}  // namespace

template <class Real>
Lane StepCalls<Real>::on(Lane lane) {
  const bool joins_compute = lane == workloads::data_lane || lane == workloads::copy_lane ||
                             lane == workloads::tensor_lane || lane == workloads::replica_lane ||
                             lane == workloads::expert_data_lane;
  const Lane chosen = one_lane_ && joins_compute ? workloads::compute : lane;
  lanes_.take(chosen);
  return chosen;
}

template <class Real>
auto StepCalls<Real>::record(Lane lane) -> Mark {
  if (one_lane_) return 0;
  on(lane);
  return lanes_.mark();
}

template <class Real>
void StepCalls<Real>::wait(Lane lane, Mark mark) {
  if (one_lane_) return;
  on(lane);
  lanes_.wait(mark);
}

template <class Real>
auto StepCalls<Real>::after(Lane later, Lane earlier) -> Mark {
  const Mark mark = record(earlier);
  wait(later, mark);
  return mark;
}

template <class Real>
void StepCalls<Real>::gemm(const Name& name, Layout layout, Out c, In a, In b,
                           const ProductSizes& s) {
  const Lane lane = on(workloads::compute);
  const auto work = [&] {
    kernels_.gemm(c, a, b,
                  {.m = s.m,
                   .n = s.n,
                   .k = s.k,
                   .layout = layout_names[static_cast<std::size_t>(layout)],
                   .accumulate = s.accumulate});
  };
  if (log_ == nullptr) return work();
  Kernel kernel;
  kernel.name = name.text();
  kernel.family = KernelFamily::gemm;
  kernel.dtype = dtype;
  kernel.m = s.m;
  kernel.n = s.n;
  kernel.k = s.k;
  kernel.accumulate = s.accumulate;
  kernel.flops = Flops(gemm_flops(s));
  kernel.bytes = Bytes(size * as_count(a.size() + b.size() + (s.accumulate ? 2 : 1) * c.size()));
  log_->run(lanes_, lane, std::move(kernel), work);
}

template <class Real>
template <class Work>
void StepCalls<Real>::attention(KernelFamily family, std::int64_t bytes, const AttentionSizes& s,
                                Work&& work) {
  const Lane lane = on(workloads::compute);
  if (log_ == nullptr) return work();
  Kernel kernel;
  kernel.name = family == KernelFamily::attention_forward ? "layer.attention.core.forward"
                                                          : "layer.attention.core.backward";
  kernel.family = family;
  kernel.dtype = dtype;
  kernel.batch = s.batch;
  kernel.heads = s.heads;
  kernel.kv_heads = s.kv_heads;
  kernel.sequence = s.sequence;
  kernel.head_dim = s.head_dim;
  kernel.causal = s.causal;
  kernel.flops = Flops(attention_flops(family, s));
  kernel.bytes = Bytes(bytes);
  log_->run(lanes_, lane, std::move(kernel), work);
}

template <class Real>
void StepCalls<Real>::attention_forward(Out o, WideOut lse, In q, In k, In v,
                                        const AttentionSizes& s) {
  const std::size_t moved = o.size() + q.size() + k.size() + v.size();
  attention(KernelFamily::attention_forward,
            size * as_count(moved) + wide_size * as_count(lse.size()), s,
            [&] { kernels_.attention_forward(o, lse, q, k, v, s); });
}

template <class Real>
void StepCalls<Real>::attention_backward(Out dq, Out dk, Out dv, In dout, In o, WideIn lse, In q,
                                         In k, In v, const AttentionSizes& s) {
  const std::size_t read = dout.size() + o.size() + q.size() + k.size() + v.size();
  const std::size_t moved = read + dq.size() + dk.size() + dv.size();
  attention(KernelFamily::attention_backward,
            size * as_count(moved) + wide_size * as_count(lse.size()), s,
            [&] { kernels_.attention_backward(dq, dk, dv, dout, o, lse, q, k, v, s); });
}

template <class Real>
void StepCalls<Real>::rmsnorm_forward(const Name& name, Out y, WideOut rstd, In x, In w) {
  pass(name, {KernelFamily::norm, size * as_count(y.size() + x.size())},
       [&] { kernels_.rmsnorm_forward(y, rstd, x, w); });
}

template <class Real>
void StepCalls<Real>::rmsnorm_backward(const Name& name, Out dx, Out dw, In dy, In x, In w,
                                       WideIn rstd) {
  pass(name, {KernelFamily::norm_backward, size * as_count(dx.size() + dy.size() + x.size())},
       [&] { kernels_.rmsnorm_backward(dx, dw, dy, x, w, rstd); });
}

template <class Real>
void StepCalls<Real>::rope(const Name& name, Out x, std::int64_t heads, bool backward) {
  pass(name, {KernelFamily::rope, 2 * size * as_count(x.size())},
       [&] { kernels_.rope(x, heads, backward); });
}

template <class Real>
void StepCalls<Real>::swiglu_forward(Out y, In gate, In up) {
  pass("layer.mlp.swiglu",
       {KernelFamily::activation, size * as_count(y.size() + gate.size() + up.size())},
       [&] { kernels_.swiglu_forward(y, gate, up); });
}

template <class Real>
void StepCalls<Real>::swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) {
  const std::size_t moved = dgate.size() + dup.size() + dy.size() + gate.size() + up.size();
  pass("layer.mlp.swiglu.backward", {KernelFamily::activation, size * as_count(moved)},
       [&] { kernels_.swiglu_backward(dgate, dup, dy, gate, up); });
}

template <class Real>
void StepCalls<Real>::add(const Name& name, Out y, In a, In b) {
  pass(name, {KernelFamily::pointwise, size * as_count(y.size() + a.size() + b.size())},
       [&] { kernels_.add(y, a, b); });
}

template <class Real>
void StepCalls<Real>::embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) {
  pass("embedding.forward",
       {KernelFamily::embedding, 2 * size * as_count(y.size()) + as_count(ids.size_bytes())},
       [&] { kernels_.embedding_forward(y, table, ids, part); });
}

template <class Real>
void StepCalls<Real>::embedding_zero(Out dtable) {
  pass("embedding.backward.zero", {KernelFamily::pointwise, size * as_count(dtable.size())},
       [&] { kernels_.zero(dtable); });
}

template <class Real>
void StepCalls<Real>::embedding_backward(Out dtable, In dy, Tokens ids,
                                         const VocabularyPart& part) {
  pass("embedding.backward", {KernelFamily::embedding, 3 * size * as_count(dy.size())},
       [&] { kernels_.embedding_backward(dtable, dy, ids, part); });
}

template <class Real>
void StepCalls<Real>::loss_forward(WideOut lse, WideOut target, In logits, Tokens targets,
                                   const VocabularyPart& part) {
  pass("loss.forward", {KernelFamily::softmax, 2 * size * as_count(logits.size())},
       [&] { kernels_.loss_forward(lse, target, logits, targets, part); });
}

template <class Real>
void StepCalls<Real>::loss_backward(Out logits, WideIn lse, Tokens targets,
                                    const VocabularyPart& part, Wide<Real> scale) {
  pass("loss.backward", {KernelFamily::softmax, 2 * size * as_count(logits.size())},
       [&] { kernels_.loss_backward(logits, lse, targets, part, scale); });
}

template <class Real>
void StepCalls<Real>::copies(Lane lane, const Name& name, std::span<const Copy> pieces) {
  pass_on(lane, name, {KernelFamily::copy, 2 * size * copied(pieces)},
          [&] { kernels_.copies(pieces); });
}

template <class Real>
void StepCalls<Real>::copies_wide(Lane lane, const Name& name, std::span<const WideCopy> pieces) {
  pass_on(lane, name, {KernelFamily::copy, 2 * wide_size * copied(pieces), wide_dtype},
          [&] { kernels_.copies_wide(pieces); });
}

template <class Real>
void StepCalls<Real>::copies_widening(Lane lane, const Name& name,
                                      std::span<const WideningCopy> pieces) {
  pass_on(lane, name, {KernelFamily::copy, (size + wide_size) * copied(pieces), wide_dtype},
          [&] { kernels_.copies_widening(pieces); });
}

template <class Real>
void StepCalls<Real>::narrow(Lane lane, const Name& name, Out to, WideIn from) {
  pass_on(lane, name, {KernelFamily::pointwise, (size + wide_size) * as_count(to.size())},
          [&] { kernels_.narrow(to, from); });
}

template <class Real>
void StepCalls<Real>::widen(const Name& name, WideOut to, In from) {
  pass(name, {KernelFamily::pointwise, (size + wide_size) * as_count(to.size()), wide_dtype},
       [&] { kernels_.widen(to, from); });
}

template <class Real>
void StepCalls<Real>::accumulate(const Name& name, WideOut sum, In more) {
  pass(name, {KernelFamily::pointwise, (size + 2 * wide_size) * as_count(sum.size()), wide_dtype},
       [&] { kernels_.accumulate(sum, more); });
}

template <class Real>
void StepCalls<Real>::sums_of_squares(WideOut result, std::span<const WideIn> tensors) {
  std::size_t read = 0;
  for (const WideIn& tensor : tensors) read += tensor.size();
  pass("gradients.norm", {optimizer, wide_size * as_count(read), wide_dtype},
       [&] { kernels_.sums_of_squares(result, tensors); });
}

template <class Real>
void StepCalls<Real>::scale_gradients(WideOut gradients, WideIn factor) {
  pass("gradients.scale", {optimizer, 2 * wide_size * as_count(gradients.size()), wide_dtype},
       [&] { kernels_.scale_by(gradients, factor); });
}

template <class Real>
void StepCalls<Real>::unscale(WideOut gradients, Wide<Real> factor, WideOut found) {
  pass("gradients.unscale", {optimizer, 2 * wide_size * as_count(gradients.size()), wide_dtype},
       [&] { kernels_.unscale(gradients, factor, found); });
}

template <class Real>
void StepCalls<Real>::adamw(WideOut p, WideOut m, WideOut v, WideIn g, const AdamW& how) {
  const std::size_t moved = 2 * (p.size() + m.size() + v.size()) + g.size();
  pass("adamw.fused", {optimizer, wide_size * as_count(moved), wide_dtype},
       [&] { kernels_.adamw(p, m, v, g, how); });
}

template <class Real>
Communicator& StepCalls<Real>::group(GroupKind kind) const {
  const std::unique_ptr<Communicator>* ranks = nullptr;
  switch (kind) {
    case GroupKind::tensor:
      ranks = &groups_.tensor;
      break;
    case GroupKind::data:
      ranks = &groups_.data;
      break;
    case GroupKind::shard:
      ranks = &groups_.shard;
      break;
    case GroupKind::replica:
      ranks = &groups_.replica;
      break;
    case GroupKind::world:
      ranks = &groups_.world;
      break;
    case GroupKind::embedding:
      ranks = &groups_.embedding;
      break;
    case GroupKind::pipeline_forward:
      ranks = &groups_.pipeline;
      break;
    case GroupKind::pipeline_backward:
      ranks = groups_.pipeline_backward ? &groups_.pipeline_backward : &groups_.pipeline;
      break;
    case GroupKind::expert:
      ranks = &groups_.expert;
      break;
    case GroupKind::expert_data:
      ranks = &groups_.expert_data;
      break;
    case GroupKind::expert_tensor:
    case GroupKind::context:
    case GroupKind::context_ring:
    case GroupKind::tensor_ring:
    case GroupKind::mirror:
      break;
  }
  expects(ranks != nullptr && *ranks != nullptr, "a group that this rank is in");
  return **ranks;
}

/// Tensor ranks wait for each other; data parallelism works beside compute.
template <class Real>
Lane StepCalls<Real>::lane_of(GroupKind group) const {
  return group == GroupKind::tensor ? workloads::compute : workloads::axis_of(group).lane;
}

template <class Real>
void StepCalls<Real>::all_reduce(const Name& name, GroupKind kind, Out values) {
  Communicator& ranks = group(kind);
  if (ranks.size() == 1) return;
  communicate(
      lane_of(kind),
      {name.text(), CollectiveKind::all_reduce, kind, dtype, Bytes(size * as_count(values.size()))},
      [&] { ranks.all_reduce(values); });
}

template <class Real>
void StepCalls<Real>::all_reduce_wide(const Name& name, GroupKind kind, WideOut values,
                                      Reduction how) {
  Communicator& ranks = group(kind);
  if (ranks.size() == 1) return;
  communicate(lane_of(kind),
              {name.text(), CollectiveKind::all_reduce, kind, wide_dtype,
               Bytes(wide_size * as_count(values.size()))},
              [&] { ranks.all_reduce(values, how); });
}

template <class Real>
void StepCalls<Real>::all_gather(const Name& name, GroupKind kind, In mine, Out all) {
  Communicator& ranks = group(kind);
  communicate(
      lane_of(kind),
      {name.text(), CollectiveKind::all_gather, kind, dtype, Bytes(size * as_count(all.size()))},
      [&] { ranks.all_gather(mine, all); });
}

template <class Real>
void StepCalls<Real>::reduce_scatter(const Name& name, GroupKind kind, In all, Out mine) {
  Communicator& ranks = group(kind);
  communicate(lane_of(kind),
              {name.text(), CollectiveKind::reduce_scatter, kind, dtype,
               Bytes(size * as_count(all.size()))},
              [&] { ranks.reduce_scatter(all, mine); });
}

template <class Real>
void StepCalls<Real>::reduce_shards(const Name& name, GroupKind kind, WideIn all, WideOut mine) {
  Communicator& ranks = group(kind);
  communicate(lane_of(kind),
              {name.text(), CollectiveKind::reduce_scatter, kind, wide_dtype,
               Bytes(wide_size * as_count(all.size()))},
              [&] { ranks.reduce_scatter(all, mine); });
}

template <class Real>
auto StepCalls<Real>::exchange(Lane lane, GroupKind kind, std::size_t elements,
                               const std::function<void(Communicator&)>& work) -> Mark {
  const char* name = kind == GroupKind::pipeline_forward ? "pipeline.forward" : "pipeline.backward";
  after(lane, workloads::compute);
  communicate(lane,
              {name, CollectiveKind::send_receive, kind, dtype, Bytes(size * as_count(elements))},
              [&] { work(group(kind)); });
  return record(lane);
}

template <class Real>
auto StepCalls<Real>::send_forward(In values) -> Mark {
  return exchange(workloads::send_next_lane, GroupKind::pipeline_forward, values.size(),
                  [&](Communicator& stages) { stages.send(values, neighbour(stages, 1)); });
}

template <class Real>
auto StepCalls<Real>::receive_forward(Out values, std::optional<Mark> free) -> Mark {
  if (free) wait(workloads::receive_previous_lane, *free);
  return exchange(workloads::receive_previous_lane, GroupKind::pipeline_forward, values.size(),
                  [&](Communicator& stages) { stages.receive(values, neighbour(stages, -1)); });
}

template <class Real>
auto StepCalls<Real>::send_backward(In values) -> Mark {
  return exchange(workloads::send_previous_lane, GroupKind::pipeline_backward, values.size(),
                  [&](Communicator& stages) { stages.send(values, neighbour(stages, -1)); });
}

template <class Real>
auto StepCalls<Real>::receive_backward(Out values, std::optional<Mark> free) -> Mark {
  if (free) wait(workloads::receive_next_lane, *free);
  return exchange(workloads::receive_next_lane, GroupKind::pipeline_backward, values.size(),
                  [&](Communicator& stages) { stages.receive(values, neighbour(stages, 1)); });
}

template class StepCalls<float>;
template class StepCalls<double>;
template class StepCalls<Bfloat16>;
template class StepCalls<Half>;

}  // namespace stepcast::validate
