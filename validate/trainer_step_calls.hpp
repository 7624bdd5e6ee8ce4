// Everything that a rank does in a step goes through here: kernels of its device and collectives of
// its groups, under the names of the simulator's program, noted in the log when there is one. What
// the log says of shapes and bytes is computed from the memory that is passed.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/trainer_communicator.hpp"
#include "validate/trainer_kernels.hpp"
#include "validate/trainer_operations.hpp"

namespace stepcast::validate {

/// "layer.mlp.up" + ".dgrad".
struct Name {
  Name(std::string_view whole, std::string_view end = {}) : part(whole), suffix(end) {}
  Name(const char* whole) : part(whole) {}
  std::string text() const { return std::string(part) + std::string(suffix); }
  std::string_view part, suffix;
};

enum class Layout : std::uint8_t { nt, nn, tn };  // of a forward product, its dgrad, its wgrad

struct ProductSizes {
  std::int64_t m = 0, n = 0, k = 0;
  bool accumulate = false;
};

/// What a memory-bound kernel is, and the bytes that it moves.
struct Traffic {
  workloads::KernelFamily family{};
  std::int64_t bytes = 0;
};

template <class Real>
class StepCalls {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using Tokens = std::span<const Token>;

  StepCalls(Kernels<Real>& kernels, const Groups& groups) : kernels_(kernels), groups_(groups) {}

  Kernels<Real>& kernels() { return kernels_; }
  const Groups& groups() const { return groups_; }
  void log_to(OperationLog* log) { log_ = log; }

  void gemm(const Name& name, Layout layout, Out c, In a, In b, const ProductSizes& sizes);
  void attention_forward(Out o, Out lse, In q, In k, In v, const AttentionSizes& s);
  void attention_backward(Out dq, Out dk, Out dv, In dout, In o, In lse, In q, In k, In v,
                          const AttentionSizes& s);
  void rmsnorm_forward(const Name& name, Out y, Out rstd, In x, In w);
  void rmsnorm_backward(const Name& name, Out dx, Out dw, In dy, In x, In w, In rstd);
  void rope(const Name& name, Out x, std::int64_t heads, bool backward);
  void swiglu_forward(Out y, In gate, In up);
  void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up);
  void add(const Name& name, Out y, In a, In b);
  void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part);
  void embedding_zero(Out dtable);
  void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part);
  void loss_forward(Out lse, Out target, In logits, Tokens targets, const VocabularyPart& part);
  void loss_backward(Out logits, In lse, Tokens targets, const VocabularyPart& part, Real scale);
  /// Copies between parameters and the buffers of their collectives: `pieces` are (to, from).
  void copies(const Name& name, std::span<const std::pair<Out, In>> pieces);
  /// The sum of squares of each of the tensors.
  std::vector<double> squares(std::span<const In> tensors);
  void scale_gradients(Out gradients, Real factor);
  void adamw(Out p, Out m, Out v, In g, const AdamW& how);
  /// Arithmetic on one number per tensor.
  template <class Work>
  void small(const Name& name, std::int64_t tensors, Work&& work) {
    pass(name, {workloads::KernelFamily::optimizer, 8 * tensors}, std::forward<Work>(work));
  }

  /// Groups of one rank do nothing and are not noted.
  void all_reduce(const Name& name, workloads::GroupKind group, Out values,
                  Reduction how = Reduction::sum);
  void all_gather(const Name& name, workloads::GroupKind group, In mine, Out all);
  void reduce_scatter(const Name& name, workloads::GroupKind group, In all, Out mine);
  void send_forward(In values);
  void receive_forward(Out values);
  void send_backward(In values);
  void receive_backward(Out values);

 private:
  template <class Work>
  void pass(const Name& name, const Traffic& what, Work&& work) {
    if (log_ == nullptr) return work();
    workloads::Kernel kernel;
    kernel.name = name.text();
    kernel.family = what.family;
    kernel.dtype = workloads::Dtype::fp32;
    kernel.bytes = Bytes(what.bytes);
    log_->run(workloads::compute, std::move(kernel), work);
  }
  template <class Work>
  void attention(workloads::KernelFamily family, std::int64_t elements, const AttentionSizes& s,
                 Work&& work);
  template <class Work>
  void communicate(workloads::Lane lane, const Name& name, workloads::CollectiveKind kind,
                   workloads::GroupKind group, std::size_t elements, Work&& work);
  Communicator& group(workloads::GroupKind kind) const;

  static constexpr auto size = static_cast<std::int64_t>(sizeof(Real));

  Kernels<Real>& kernels_;
  const Groups& groups_;
  OperationLog* log_ = nullptr;
};

}  // namespace stepcast::validate
