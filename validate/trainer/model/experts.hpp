// The expert half of a layer, forward and backward, between the norm before it and the residual
// after. Shapes: T tokens, H hidden, E experts of which each token has k, F of one expert; S rows
// of this rank's tokens in the order of experts; R rows that come to the experts of this rank.
//
//   x (T,H) -> router (T,E) -> choice: experts, rows (T,k), weights (S) -> [counts, the host waits]
//     -> permute (S,H) -> [dispatch] (R,H) -> [sort by expert] -> gate, up (R,F)
//     -> weight silu(gate) up (R,F) -> down (R,H) -> [sort by source] -> [combine] (S,H)
//     -> unpermute: sums (T,H)
//
// The exchange is there with more than one rank in the expert group, the sort where each has
// several experts. A rank's experts lie one after the other in each of their tensors.
#pragma once

#include <vector>

#include "validate/trainer/model/expert_calls.hpp"
#include "validate/trainer/model/parameters.hpp"

namespace stepcast::validate {

/// What forward leaves for backward.
template <class Real>
struct ExpertActivations {
  Buffer<Real> logits;                    // (T,E)
  Buffer<Token> choice, row;              // (T,k)
  Buffer<Token> counts;                   // (2,E): rows to each expert; from each rank
  Buffer<Real> rows, weights;             // (R,H), (R)
  Buffer<Real> gate, up, product;         // (R,F)
  RowsByRank by_rank;                     // of the forward exchange
  std::size_t rows_out = 0, rows_in = 0;  // S, R
};

template <class Real>
ExpertActivations<Real> make_expert_activations(Kernels<Real>& kernels, const RankShare& share);

/// Memory that every layer uses and leaves.
template <class Real>
struct ExpertWorkspace {
  ExpertWorkspace(Kernels<Real>& kernels, const RankShare& share);

  Buffer<Real> home, home_weights;        // (S,H), (S)
  Buffer<Real> arrived, arrived_weights;  // (R,H), (R): by source
  Buffer<Real> sorted, sorted_weights;    // (R,H), (R): by expert
  Buffer<Real> dgate, dup, dproduct;      // (R,F)
  Buffer<Real> dlogits, dx;               // (T,E), (T,H)
};

template <class Real>
class Experts {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;

  Experts(const RankShare& share, StepCalls<Real>& calls, Parameters<Real>& parameters);

  /// All that backward reads.
  void inner_forward(std::size_t unit, In x, ExpertActivations<Real>& kept);
  /// The rest: y (T,H).
  void outer_forward(std::size_t unit, const ExpertActivations<Real>& kept, Out y);
  /// dx (T,H) of dy (T,H); inner_forward has been called with x.
  void backward(std::size_t unit, In x, ExpertActivations<Real>& kept, In dy, Out dx);

 private:
  /// Rows and the numbers that belong to them.
  struct Rows {
    Out rows, weights;
  };
  std::int64_t width() const { return static_cast<std::int64_t>(share_.hidden); }
  Indexes arrivals(const ExpertActivations<Real>& kept) const;
  void count(ExpertActivations<Real>& kept);
  Rows at_home(std::size_t count);
  /// Of the workspace, in the order of this rank's experts.
  Rows at_experts(std::size_t count);
  /// From home to the experts, or home from at_experts(): "forward" or "backward".
  void go(const char* exchange, const char* sort, const char* pass,
          const ExpertActivations<Real>& kept, const Rows& to, bool weighted);
  void come_back(const char* exchange, const char* sort, const char* pass,
                 const ExpertActivations<Real>& kept, bool weighted);
  void inner_backward(std::size_t unit, ExpertActivations<Real>& kept, const Rows& slopes);
  void router_backward(std::size_t unit, In x, ExpertActivations<Real>& kept, Out dx);
  /// A product of each of this rank's experts.
  struct GroupedLinear {
    const char* name;
    std::size_t out, in;
  };
  GroupedLinear linear(LayerTensor tensor) const;
  void product_forward(std::size_t unit, const ExpertActivations<Real>& kept, LayerTensor tensor,
                       Out y, In x);
  void product_backward(std::size_t unit, const ExpertActivations<Real>& kept, LayerTensor tensor,
                        Out dx, In dy, In x, bool accumulate);

  const RankShare& share_;
  const ExpertShare& experts_;
  StepCalls<Real>& calls_;
  ExpertCalls<Real> own_calls_;
  Parameters<Real>& parameters_;
  ExpertWorkspace<Real> work_;
};

}  // namespace stepcast::validate
