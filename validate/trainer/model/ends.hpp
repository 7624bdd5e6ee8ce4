// The two ends of the model. First stage: tokens to rows of the embedding. Last stage: final norm,
// head and cross-entropy, cut by vocabulary over tensor ranks. Shapes: T tokens, L of them here
// (layer.hpp), H hidden, V rows of the vocabulary on this rank.
#pragma once

#include <span>

#include "validate/trainer/model/layer.hpp"

namespace stepcast::validate {

/// What the head's forward leaves for its backward.
template <class Real>
struct HeadActivations {
  Buffer<Wide<Real>> rstd, lse;     // (L), (T)
  Buffer<Real> head_input, logits;  // (T,H), (T,V); logits become their gradients
  Buffer<Token> targets;            // (T)
};

template <class Real>
HeadActivations<Real> make_head_activations(Kernels<Real>& kernels, const RankShare& share);

template <class Real>
class Ends {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using WideOut = std::span<Wide<Real>>;
  using Tokens = std::span<const Token>;

  Ends(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls,
       Parameters<Real>& parameters, Workspace<Real>& work);

  void embedding_forward(Tokens tokens, Out x);         // x (L,H)
  void embedding_backward(Tokens tokens, In gradient);  // of x
  /// The loss of every token is added to loss().
  void head_forward(In x, HeadActivations<Real>& kept);
  /// gradient (L,H) of x, of `scale` times the sum over tokens.
  void head_backward(In x, HeadActivations<Real>& kept, double scale, Out gradient);
  /// On the last stage: what the losses of the tokens come to since start_step(); waits for it.
  void start_step();
  double loss();

 private:
  static constexpr std::size_t root = 0;  // the unit
  std::size_t tensor(const char* name) const;
  In head_weight() const { return parameters_.weight(root, head_); }
  /// Sums over the tensor group what each rank knows of its columns: lse of the whole rows.
  void join_columns(WideOut lse, WideOut target);

  const RankShare& share_;
  StepCalls<Real>& calls_;
  Parameters<Real>& parameters_;
  Workspace<Real>& work_;
  bool tied_here_;  // the head is the embedding of this stage
  std::size_t embedding_ = 0, final_norm_ = 0, head_ = 0;
  Buffer<Wide<Real>> target_, maximum_, sums_, loss_;  // (T), (T), (2,T), (1)
};

}  // namespace stepcast::validate
