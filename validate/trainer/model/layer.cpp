#include "validate/trainer/model/layer.hpp"

namespace stepcast::validate {
namespace {

using workloads::GroupKind;
using workloads::Recompute;

}  // namespace

template <class Real>
LayerActivations<Real> make_activations(Kernels<Real>& kernels, const RankShare& s,
                                        LayerKinds kinds) {
  const std::size_t ffn = kinds.dense ? s.ffn : 0;
  const auto rows = [&](std::size_t width) { return kernels.allocate(s.tokens * width); };
  const auto heads = static_cast<std::size_t>(s.attention.heads);
  return {
      .rstd1 = kernels.allocate_wide(s.local_tokens),
      .rstd2 = kernels.allocate_wide(s.local_tokens),
      .lse = kernels.allocate_wide(s.tokens * heads),
      .attention_input = rows(s.hidden),
      .q = rows(s.query),
      .k = rows(s.kv),
      .v = rows(s.kv),
      .o = rows(s.query),
      .middle = kernels.allocate(s.local_tokens * s.hidden),
      .mlp_input = rows(s.hidden),
      .gate = rows(ffn),
      .up = rows(ffn),
      .product = rows(ffn),
      .experts = kinds.experts ? make_expert_activations(kernels, s) : ExpertActivations<Real>{}};
}

template <class Real>
Workspace<Real>::Workspace(Kernels<Real>& kernels, const RankShare& s)
    : whole(kernels.allocate(s.tokens * s.hidden)),
      whole2(kernels.allocate(s.tokens * s.hidden)),
      local(kernels.allocate(s.local_tokens * s.hidden)),
      dgate(kernels.allocate(s.tokens * s.ffn)),
      dup(kernels.allocate(s.tokens * s.ffn)),
      dproduct(kernels.allocate(s.tokens * s.ffn)),
      dq(kernels.allocate(s.tokens * s.query)),
      dk(kernels.allocate(s.tokens * s.kv)),
      dv(kernels.allocate(s.tokens * s.kv)),
      dout(kernels.allocate(s.tokens * s.query)) {}

template <class Real>
auto Layer<Real>::linear(std::size_t unit, LayerTensor tensor) const -> Linear {
  const RankShare& s = share_;
  switch (tensor) {
    case attention_q:
      return {unit, tensor, "layer.attention.q", s.query, s.hidden};
    case attention_k:
      return {unit, tensor, "layer.attention.k", s.kv, s.hidden};
    case attention_v:
      return {unit, tensor, "layer.attention.v", s.kv, s.hidden};
    case attention_o:
      return {unit, tensor, "layer.attention.o", s.hidden, s.query};
    case mlp_gate:
      return {unit, tensor, "layer.mlp.gate", s.ffn, s.hidden};
    case mlp_up:
      return {unit, tensor, "layer.mlp.up", s.ffn, s.hidden};
    case mlp_down:
      return {unit, tensor, "layer.mlp.down", s.hidden, s.ffn};
    case norm1:
    case norm2:
    case experts_down:
      break;
  }
  expects(false, "a product of the layer");
  return {};
}

// y (T,out) = x (T,in) W^T.
template <class Real>
void Layer<Real>::product_forward(const Linear& l, Out y, In x) {
  calls_.gemm(Name(l.name, ".forward"), Layout::nt, y, x, parameters_.weight(l.unit, l.tensor),
              {.m = as_count(share_.tokens), .n = as_count(l.out), .k = as_count(l.in)});
}

// dx (T,in) = dy (T,out) W; dW (out,in) = dy^T x.
template <class Real>
void Layer<Real>::product_backward(const Linear& l, Out dx, In dy, In x, bool accumulate) {
  calls_.gemm(Name(l.name, ".dgrad"), Layout::nn, dx, dy, parameters_.weight(l.unit, l.tensor),
              {.m = as_count(share_.tokens),
               .n = as_count(l.in),
               .k = as_count(l.out),
               .accumulate = accumulate});
  calls_.gemm(Name(l.name, ".wgrad"), Layout::tn, parameters_.gradient(l.unit, l.tensor), dy, x,
              {.m = as_count(l.out), .n = as_count(l.in), .k = as_count(share_.tokens)});
  parameters_.complete(l.unit, l.tensor);
}

// The input of column-parallel products: every tensor rank needs all tokens.
template <class Real>
void Layer<Real>::norm_forward(const char* name, std::size_t unit, LayerTensor tensor, In x,
                               Buffer<Wide<Real>>& rstd, Buffer<Real>& gathered) {
  const Out y = share_.sequence_parallel ? work_.local.all() : gathered.all();
  calls_.rmsnorm_forward(Name(name, ".forward"), y, rstd.all(), x,
                         parameters_.weight(unit, tensor));
  if (!share_.sequence_parallel) return;
  calls_.all_gather(tensor == norm1 ? "layer.attention.qkv.forward" : "layer.mlp.up.forward",
                    GroupKind::tensor, y, gathered.all());
}

// Tensor ranks hold partial sums (T,H): their sum, or this rank's tokens of it (L,H).
template <class Real>
auto Layer<Real>::reduced(const Name& name, Out partial) -> Out {
  if (share_.sequence_parallel) {
    calls_.reduce_scatter(name, GroupKind::tensor, partial, work_.local.all());
    return work_.local.all();
  }
  if (share_.split) calls_.all_reduce(name, GroupKind::tensor, partial);
  return partial;
}

template <class Real>
auto Layer<Real>::gathered(const char* name, In gradient) -> In {
  if (!share_.sequence_parallel) return gradient;
  calls_.all_gather(Name(name, ".backward"), GroupKind::tensor, gradient, work_.whole2.all());
  return work_.whole2.all();
}

template <class Real>
void Layer<Real>::forward(std::size_t unit, In input, LayerActivations<Real>& kept, Out output) {
  attention_forward(unit, input, kept);
  mlp_forward(unit, kept, output);
}

template <class Real>
void Layer<Real>::core_forward(LayerActivations<Real>& kept) {
  calls_.attention_forward(kept.o.all(), kept.lse.all(), kept.q.all(), kept.k.all(), kept.v.all(),
                           share_.attention);
}

template <class Real>
void Layer<Real>::attention_forward(std::size_t unit, In input, LayerActivations<Real>& kept) {
  norm_forward("layer.norm1", unit, norm1, input, kept.rstd1, kept.attention_input);
  const In x = kept.attention_input.all();
  product_forward(linear(unit, attention_q), kept.q.all(), x);
  product_forward(linear(unit, attention_k), kept.k.all(), x);
  product_forward(linear(unit, attention_v), kept.v.all(), x);
  calls_.rope("layer.attention.rope.q.forward", kept.q.all(), share_.attention.heads, false);
  calls_.rope("layer.attention.rope.k.forward", kept.k.all(), share_.attention.kv_heads, false);
  core_forward(kept);
  product_forward(linear(unit, attention_o), work_.whole.all(), kept.o.all());
  const Out sum = reduced("layer.attention.o.forward", work_.whole.all());
  calls_.add("layer.attention.residual", kept.middle.all(), input, sum);
}

template <class Real>
void Layer<Real>::mlp_inner_forward(std::size_t unit, LayerActivations<Real>& kept) {
  norm_forward("layer.norm2", unit, norm2, kept.middle.all(), kept.rstd2, kept.mlp_input);
  if (share_.has_experts(unit))
    return experts_.inner_forward(unit, kept.mlp_input.all(), kept.experts);
  product_forward(linear(unit, mlp_gate), kept.gate.all(), kept.mlp_input.all());
  product_forward(linear(unit, mlp_up), kept.up.all(), kept.mlp_input.all());
  calls_.swiglu_forward(kept.product.all(), kept.gate.all(), kept.up.all());
}

template <class Real>
void Layer<Real>::mlp_forward(std::size_t unit, LayerActivations<Real>& kept, Out output) {
  mlp_inner_forward(unit, kept);
  if (share_.has_experts(unit)) {
    experts_.outer_forward(unit, kept.experts, work_.whole.all());
    return calls_.add("layer.mlp.residual", output, kept.middle.all(), work_.whole.all());
  }
  product_forward(linear(unit, mlp_down), work_.whole.all(), kept.product.all());
  const Out sum = reduced("layer.mlp.down.forward", work_.whole.all());
  calls_.add("layer.mlp.residual", output, kept.middle.all(), sum);
}

// Again: all that backward reads; it does not read what the last product makes.
template <class Real>
void Layer<Real>::backward(std::size_t unit, In input, LayerActivations<Real>& kept, Out gradient) {
  if (job_.plan.recompute == Recompute::full) {
    attention_forward(unit, input, kept);
    mlp_inner_forward(unit, kept);
  }
  mlp_backward(unit, kept, gradient);
  attention_backward(unit, input, kept, gradient);
}

// The gradient of the norm's output lies in whole (partial sums); that of the residual is added.
template <class Real>
void Layer<Real>::norm_backward(const char* name, std::size_t unit, LayerTensor tensor, In x,
                                const Buffer<Wide<Real>>& rstd, Out gradient) {
  const char* products = tensor == norm1 ? "layer.attention.qkv" : "layer.mlp.up";
  const Out dy = reduced(Name(products, ".backward"), work_.whole.all());
  const Out dx = work_.whole2.part(0, dy.size());
  calls_.rmsnorm_backward(Name(name, ".backward"), dx, parameters_.gradient(unit, tensor), dy, x,
                          parameters_.weight(unit, tensor), rstd.all());
  parameters_.complete(unit, tensor);
  calls_.add(Name(name, ".backward.residual"), gradient, gradient, dx);
}

template <class Real>
void Layer<Real>::mlp_backward(std::size_t unit, LayerActivations<Real>& kept, Out gradient) {
  if (share_.has_experts(unit)) {
    experts_.backward(unit, kept.mlp_input.all(), kept.experts, gradient, work_.whole.all());
    return norm_backward("layer.norm2", unit, norm2, kept.middle.all(), kept.rstd2, gradient);
  }
  const In dy = gathered("layer.mlp.down", gradient);
  product_backward(linear(unit, mlp_down), work_.dproduct.all(), dy, kept.product.all(), false);
  calls_.swiglu_backward(work_.dgate.all(), work_.dup.all(), work_.dproduct.all(), kept.gate.all(),
                         kept.up.all());
  const In x = kept.mlp_input.all();
  product_backward(linear(unit, mlp_gate), work_.whole.all(), work_.dgate.all(), x, false);
  product_backward(linear(unit, mlp_up), work_.whole.all(), work_.dup.all(), x, true);
  norm_backward("layer.norm2", unit, norm2, kept.middle.all(), kept.rstd2, gradient);
}

template <class Real>
void Layer<Real>::attention_backward(std::size_t unit, In input, LayerActivations<Real>& kept,
                                     Out gradient) {
  const In dy = gathered("layer.attention.o", gradient);
  product_backward(linear(unit, attention_o), work_.dout.all(), dy, kept.o.all(), false);
  if (job_.plan.recompute == Recompute::selective) core_forward(kept);
  calls_.attention_backward(work_.dq.all(), work_.dk.all(), work_.dv.all(), work_.dout.all(),
                            kept.o.all(), kept.lse.all(), kept.q.all(), kept.k.all(), kept.v.all(),
                            share_.attention);
  calls_.rope("layer.attention.rope.q.backward", work_.dq.all(), share_.attention.heads, true);
  calls_.rope("layer.attention.rope.k.backward", work_.dk.all(), share_.attention.kv_heads, true);
  const In x = kept.attention_input.all();
  product_backward(linear(unit, attention_q), work_.whole.all(), work_.dq.all(), x, false);
  product_backward(linear(unit, attention_k), work_.whole.all(), work_.dk.all(), x, true);
  product_backward(linear(unit, attention_v), work_.whole.all(), work_.dv.all(), x, true);
  norm_backward("layer.norm1", unit, norm1, input, kept.rstd1, gradient);
}

template LayerActivations<float> make_activations(Kernels<float>&, const RankShare&, LayerKinds);
template LayerActivations<double> make_activations(Kernels<double>&, const RankShare&, LayerKinds);
template LayerActivations<Bfloat16> make_activations(Kernels<Bfloat16>&, const RankShare&,
                                                     LayerKinds);
template LayerActivations<Half> make_activations(Kernels<Half>&, const RankShare&, LayerKinds);
template struct Workspace<float>;
template struct Workspace<double>;
template struct Workspace<Bfloat16>;
template struct Workspace<Half>;
template class Layer<float>;
template class Layer<double>;
template class Layer<Bfloat16>;
template class Layer<Half>;

}  // namespace stepcast::validate
