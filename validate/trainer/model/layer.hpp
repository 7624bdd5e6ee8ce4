// One decoder layer, forward and backward, written out. Shapes: T tokens of the micro-batch, L of
// them on this rank for norms and residuals (L = T / tensor under sequence parallel, else T),
// H hidden, Q and K columns of q and of k, v on this rank, F of the MLP. Weights are (out, in).
//
//   x (L,H) -> norm1 -> [gather] (T,H) -> q (T,Q), k, v (T,K) -> rope -> attention -> o (T,Q)
//     -> o Wo^T (T,H) -> [reduce] (L,H) -> + x = middle
//   middle -> norm2 -> [gather] (T,H) -> gate, up (T,F) -> silu(gate) up (T,F)
//     -> down (T,H) -> [reduce] (L,H) -> + middle; or experts (experts.hpp) in their place
#pragma once

#include <span>

#include "validate/trainer/device/plan.hpp"
#include "validate/trainer/model/experts.hpp"
#include "validate/trainer/model/parameters.hpp"
#include "validate/trainer/model/step_calls.hpp"

namespace stepcast::validate {

/// What forward leaves for backward, beside the layer's input.
template <class Real>
struct LayerActivations {
  Buffer<Wide<Real>> rstd1, rstd2, lse;      // (L), (L), (heads,T)
  Buffer<Real> attention_input, q, k, v, o;  // (T,H), (T,Q), (T,K), (T,K), (T,Q)
  Buffer<Real> middle, mlp_input;            // (L,H), (T,H)
  Buffer<Real> gate, up, product;            // (T,F)
  ExpertActivations<Real> experts;           // or these
};

/// What a layer has after its attention.
struct LayerKinds {
  bool dense = true, experts = false;
};

template <class Real>
LayerActivations<Real> make_activations(Kernels<Real>& kernels, const RankShare& share,
                                        LayerKinds kinds);

/// Memory that every layer uses and leaves.
template <class Real>
struct Workspace {
  Workspace(Kernels<Real>& kernels, const RankShare& share);

  Buffer<Real> whole, whole2;         // (T,H)
  Buffer<Real> local;                 // (L,H)
  Buffer<Real> dgate, dup, dproduct;  // (T,F)
  Buffer<Real> dq, dk, dv, dout;      // (T,Q), (T,K), (T,K), (T,Q)
};

template <class Real>
class Layer {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;

  Layer(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls,
        Parameters<Real>& parameters, Workspace<Real>& work)
      : job_(job),
        share_(share),
        calls_(calls),
        parameters_(parameters),
        work_(work),
        experts_(share, calls, parameters) {}

  /// output (L,H) = layer(input (L,H)).
  void forward(std::size_t unit, In input, LayerActivations<Real>& kept, Out output);
  /// gradient (L,H) of the output becomes that of the input; forward's work is done again first
  /// where the plan says so.
  void backward(std::size_t unit, In input, LayerActivations<Real>& kept, Out gradient);

 private:
  /// A weight (out, in) of the unit and the gradient that belongs to it.
  struct Linear {
    std::size_t unit;
    LayerTensor tensor;
    const char* name;
    std::size_t out, in;
  };
  Linear linear(std::size_t unit, LayerTensor tensor) const;

  void attention_forward(std::size_t unit, In input, LayerActivations<Real>& kept);
  void mlp_inner_forward(std::size_t unit,
                         LayerActivations<Real>& kept);  // all but the last product
  void mlp_forward(std::size_t unit, LayerActivations<Real>& kept, Out output);
  void mlp_backward(std::size_t unit, LayerActivations<Real>& kept, Out gradient);
  void attention_backward(std::size_t unit, In input, LayerActivations<Real>& kept, Out gradient);
  void core_forward(LayerActivations<Real>& kept);
  void norm_forward(const char* name, std::size_t unit, LayerTensor tensor, In x,
                    Buffer<Wide<Real>>& rstd, Buffer<Real>& gathered);
  void norm_backward(const char* name, std::size_t unit, LayerTensor tensor, In x,
                     const Buffer<Wide<Real>>& rstd, Out gradient);
  void product_forward(const Linear& l, Out y, In x);
  /// The layer's output gradient, whole on every tensor rank.
  In gathered(const char* name, In gradient);
  Out reduced(const Name& name, Out partial);
  void product_backward(const Linear& l, Out dx, In dy, In x, bool accumulate);

  const TrainerJob& job_;
  const RankShare& share_;
  StepCalls<Real>& calls_;
  Parameters<Real>& parameters_;
  Workspace<Real>& work_;
  Experts<Real> experts_;
};

}  // namespace stepcast::validate
