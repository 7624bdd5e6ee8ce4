#include "validate/trainer_step_calls.hpp"

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using workloads::Collective;
using workloads::CollectiveKind;
using workloads::Dtype;
using workloads::GroupKind;
using workloads::Kernel;
using workloads::KernelFamily;
using workloads::Lane;

std::int64_t count(std::size_t elements) { return static_cast<std::int64_t>(elements); }

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

}  // namespace

template <class Real>
void StepCalls<Real>::gemm(const Name& name, Layout layout, Out c, In a, In b,
                           const ProductSizes& s) {
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
  kernel.dtype = Dtype::fp32;
  kernel.m = s.m;
  kernel.n = s.n;
  kernel.k = s.k;
  kernel.accumulate = s.accumulate;
  kernel.flops = Flops(gemm_flops(s));
  kernel.bytes = Bytes(size * count(a.size() + b.size() + (s.accumulate ? 2 : 1) * c.size()));
  log_->run(workloads::compute, std::move(kernel), work);
}

template <class Real>
template <class Work>
void StepCalls<Real>::attention(KernelFamily family, std::int64_t elements, const AttentionSizes& s,
                                Work&& work) {
  if (log_ == nullptr) return work();
  Kernel kernel;
  kernel.name = family == KernelFamily::attention_forward ? "layer.attention.core.forward"
                                                          : "layer.attention.core.backward";
  kernel.family = family;
  kernel.dtype = Dtype::fp32;
  kernel.batch = s.batch;
  kernel.heads = s.heads;
  kernel.kv_heads = s.kv_heads;
  kernel.sequence = s.sequence;
  kernel.head_dim = s.head_dim;
  kernel.causal = s.causal;
  kernel.flops = Flops(attention_flops(family, s));
  kernel.bytes = Bytes(size * elements);
  log_->run(workloads::compute, std::move(kernel), work);
}

template <class Real>
void StepCalls<Real>::attention_forward(Out o, Out lse, In q, In k, In v, const AttentionSizes& s) {
  attention(KernelFamily::attention_forward,
            count(o.size() + lse.size() + q.size() + k.size() + v.size()), s,
            [&] { kernels_.attention_forward(o, lse, q, k, v, s); });
}

template <class Real>
void StepCalls<Real>::attention_backward(Out dq, Out dk, Out dv, In dout, In o, In lse, In q, In k,
                                         In v, const AttentionSizes& s) {
  const std::size_t read = dout.size() + o.size() + lse.size() + q.size() + k.size() + v.size();
  attention(KernelFamily::attention_backward, count(read + dq.size() + dk.size() + dv.size()), s,
            [&] { kernels_.attention_backward(dq, dk, dv, dout, o, lse, q, k, v, s); });
}

template <class Real>
void StepCalls<Real>::rmsnorm_forward(const Name& name, Out y, Out rstd, In x, In w) {
  pass(name, {KernelFamily::norm, size * count(y.size() + x.size())},
       [&] { kernels_.rmsnorm_forward(y, rstd, x, w); });
}

template <class Real>
void StepCalls<Real>::rmsnorm_backward(const Name& name, Out dx, Out dw, In dy, In x, In w,
                                       In rstd) {
  pass(name, {KernelFamily::norm_backward, size * count(dx.size() + dy.size() + x.size())},
       [&] { kernels_.rmsnorm_backward(dx, dw, dy, x, w, rstd); });
}

template <class Real>
void StepCalls<Real>::rope(const Name& name, Out x, std::int64_t heads, bool backward) {
  pass(name, {KernelFamily::rope, 2 * size * count(x.size())},
       [&] { kernels_.rope(x, heads, backward); });
}

template <class Real>
void StepCalls<Real>::swiglu_forward(Out y, In gate, In up) {
  pass("layer.mlp.swiglu",
       {KernelFamily::activation, size * count(y.size() + gate.size() + up.size())},
       [&] { kernels_.swiglu_forward(y, gate, up); });
}

template <class Real>
void StepCalls<Real>::swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) {
  const std::size_t moved = dgate.size() + dup.size() + dy.size() + gate.size() + up.size();
  pass("layer.mlp.swiglu.backward", {KernelFamily::activation, size * count(moved)},
       [&] { kernels_.swiglu_backward(dgate, dup, dy, gate, up); });
}

template <class Real>
void StepCalls<Real>::add(const Name& name, Out y, In a, In b) {
  pass(name, {KernelFamily::pointwise, size * count(y.size() + a.size() + b.size())},
       [&] { kernels_.add(y, a, b); });
}

template <class Real>
void StepCalls<Real>::embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) {
  pass("embedding.forward",
       {KernelFamily::embedding, 2 * size * count(y.size()) + count(ids.size_bytes())},
       [&] { kernels_.embedding_forward(y, table, ids, part); });
}

template <class Real>
void StepCalls<Real>::embedding_zero(Out dtable) {
  pass("embedding.backward.zero", {KernelFamily::pointwise, size * count(dtable.size())},
       [&] { kernels_.zero(dtable); });
}

template <class Real>
void StepCalls<Real>::embedding_backward(Out dtable, In dy, Tokens ids,
                                         const VocabularyPart& part) {
  pass("embedding.backward", {KernelFamily::embedding, 3 * size * count(dy.size())},
       [&] { kernels_.embedding_backward(dtable, dy, ids, part); });
}

template <class Real>
void StepCalls<Real>::loss_forward(Out lse, Out target, In logits, Tokens targets,
                                   const VocabularyPart& part) {
  pass("loss.forward", {KernelFamily::softmax, 2 * size * count(logits.size())},
       [&] { kernels_.loss_forward(lse, target, logits, targets, part); });
}

template <class Real>
void StepCalls<Real>::loss_backward(Out logits, In lse, Tokens targets, const VocabularyPart& part,
                                    Real scale) {
  pass("loss.backward", {KernelFamily::softmax, 2 * size * count(logits.size())},
       [&] { kernels_.loss_backward(logits, lse, targets, part, scale); });
}

template <class Real>
void StepCalls<Real>::copies(const Name& name, std::span<const std::pair<Out, In>> pieces) {
  std::int64_t moved = 0;
  for (const auto& [to, from] : pieces) moved += size * count(to.size() + from.size());
  pass(name, {KernelFamily::copy, moved}, [&] {
    for (const auto& [to, from] : pieces) kernels_.copy(to, from);
  });
}

template <class Real>
std::vector<double> StepCalls<Real>::squares(std::span<const In> tensors) {
  std::vector<double> out;
  std::size_t read = 0;
  for (const In& tensor : tensors) read += tensor.size();
  pass("gradients.norm", {KernelFamily::optimizer, size * count(read)}, [&] {
    for (const In& tensor : tensors) out.push_back(kernels_.sum_of_squares(tensor));
  });
  return out;
}

template <class Real>
void StepCalls<Real>::scale_gradients(Out gradients, Real factor) {
  pass("gradients.scale", {KernelFamily::optimizer, 2 * size * count(gradients.size())},
       [&] { kernels_.scale(gradients, factor); });
}

template <class Real>
void StepCalls<Real>::adamw(Out p, Out m, Out v, In g, const AdamW& how) {
  pass("adamw.fused",
       {KernelFamily::optimizer, size * count(2 * (p.size() + m.size() + v.size()) + g.size())},
       [&] { kernels_.adamw(p, m, v, g, how); });
}

template <class Real>
Communicator& StepCalls<Real>::group(GroupKind kind) const {
  const auto& ranks = kind == GroupKind::tensor  ? groups_.tensor
                      : kind == GroupKind::data  ? groups_.data
                      : kind == GroupKind::world ? groups_.world
                                                 : groups_.embedding;
  expects(ranks != nullptr, "a group that this rank is in");
  return *ranks;
}

template <class Real>
template <class Work>
void StepCalls<Real>::communicate(Lane lane, const Name& name, CollectiveKind kind, GroupKind group,
                                  std::size_t elements, Work&& work) {
  if (log_ == nullptr) return work();
  log_->run(lane, Collective{name.text(), kind, group, Dtype::fp32, Bytes(size * count(elements))},
            work);
}

template <class Real>
void StepCalls<Real>::all_reduce(const Name& name, GroupKind kind, Out values, Reduction how) {
  Communicator& ranks = group(kind);
  if (ranks.size() == 1) return;
  communicate(workloads::compute, name, CollectiveKind::all_reduce, kind, values.size(),
              [&] { ranks.all_reduce(values, how); });
}

template <class Real>
void StepCalls<Real>::all_gather(const Name& name, GroupKind kind, In mine, Out all) {
  Communicator& ranks = group(kind);
  communicate(workloads::compute, name, CollectiveKind::all_gather, kind, all.size(),
              [&] { ranks.all_gather(mine, all); });
}

template <class Real>
void StepCalls<Real>::reduce_scatter(const Name& name, GroupKind kind, In all, Out mine) {
  Communicator& ranks = group(kind);
  communicate(workloads::compute, name, CollectiveKind::reduce_scatter, kind, all.size(),
              [&] { ranks.reduce_scatter(all, mine); });
}

template <class Real>
void StepCalls<Real>::send_forward(In values) {
  Communicator& stages = *groups_.pipeline;
  communicate(workloads::send_next_lane, "pipeline.forward", CollectiveKind::send_receive,
              GroupKind::pipeline_forward, values.size(),
              [&] { stages.send(values, stages.rank() + 1); });
}

template <class Real>
void StepCalls<Real>::receive_forward(Out values) {
  Communicator& stages = *groups_.pipeline;
  communicate(workloads::receive_previous_lane, "pipeline.forward", CollectiveKind::send_receive,
              GroupKind::pipeline_forward, values.size(),
              [&] { stages.receive(values, stages.rank() - 1); });
}

template <class Real>
void StepCalls<Real>::send_backward(In values) {
  Communicator& stages = *groups_.pipeline;
  communicate(workloads::send_previous_lane, "pipeline.backward", CollectiveKind::send_receive,
              GroupKind::pipeline_backward, values.size(),
              [&] { stages.send(values, stages.rank() - 1); });
}

template <class Real>
void StepCalls<Real>::receive_backward(Out values) {
  Communicator& stages = *groups_.pipeline;
  communicate(workloads::receive_next_lane, "pipeline.backward", CollectiveKind::send_receive,
              GroupKind::pipeline_backward, values.size(),
              [&] { stages.receive(values, stages.rank() + 1); });
}

template class StepCalls<float>;
template class StepCalls<double>;

}  // namespace stepcast::validate
