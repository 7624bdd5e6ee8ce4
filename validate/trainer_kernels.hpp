// The kernels that the trainer calls, as one device has them. The host's are calibrate's
// (calibrate/host_kernels.hpp, host_attention.hpp, host_gemm.hpp): the same functions in the same
// layouts as those that are timed. Spans point to the device's memory. Shapes as there: T tokens,
// H hidden, V vocabulary of this rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/host_attention.hpp"
#include "calibrate/host_gemm.hpp"
#include "calibrate/host_kernels.hpp"
#include "engine/units.hpp"
#include "validate/trainer_text.hpp"

namespace stepcast::validate {

using calibrate::host::AdamW;
using calibrate::host::AttentionSizes;
using calibrate::host::GemmSizes;

/// Memory of a device, given back with its owner.
template <class Real>
class Buffer {
 public:
  using Release = void (*)(Real*);
  Buffer() : data_(nullptr, [](Real*) {}) {}
  Buffer(Real* data, std::size_t size, Release release) : data_(data, release), size_(size) {}

  std::size_t size() const { return size_; }
  std::span<Real> all() { return {data_.get(), size_}; }
  std::span<const Real> all() const { return {data_.get(), size_}; }
  std::span<Real> part(std::size_t from, std::size_t count) { return all().subspan(from, count); }

 private:
  std::unique_ptr<Real[], Release> data_;
  std::size_t size_ = 0;
};

/// Rows [first, first + size) of the vocabulary, those of one tensor rank.
struct VocabularyPart {
  std::int64_t first = 0, size = 0;
  bool has(Token id) const { return id >= first && id < first + size; }
};

template <class Real>
class Kernels {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using Tokens = std::span<const Token>;

  virtual ~Kernels() = default;

  virtual Buffer<Real> allocate(std::size_t size) = 0;  // zeros
  virtual Bytes allocated() const = 0;                  // so far
  virtual void upload(Out device, In host) = 0;
  virtual void download(Out host, In device) = 0;

  virtual void gemm(Out c, In a, In b, const GemmSizes& sizes) = 0;
  virtual void attention_forward(Out o, Out lse, In q, In k, In v, const AttentionSizes& s) = 0;
  virtual void attention_backward(Out dq, Out dk, Out dv, In dout, In o, In lse, In q, In k, In v,
                                  const AttentionSizes& s) = 0;
  virtual void rmsnorm_forward(Out y, Out rstd, In x, In w) = 0;
  virtual void rmsnorm_backward(Out dx, Out dw, In dy, In x, In w, In rstd) = 0;  // dw overwritten
  virtual void rope(Out x, std::int64_t heads, bool backward) = 0;
  virtual void swiglu_forward(Out y, In gate, In up) = 0;
  virtual void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) = 0;
  virtual void add(Out y, In a, In b) = 0;
  virtual void copy(Out to, In from) = 0;
  virtual void zero(Out x) = 0;
  virtual void scale(Out x, Real factor) = 0;

  /// Zeros where another rank has the row.
  virtual void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) = 0;
  /// dtable[id[t] - first] += dy[t] where this rank has the row.
  virtual void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part) = 0;

  /// lse[t] over this rank's columns; target[t]: the target's logit, 0 where another rank has it.
  virtual void loss_forward(Out lse, Out target, In logits, Tokens targets,
                            const VocabularyPart& part) = 0;
  /// Rows cut over ranks, `most` being the largest lse of a row's parts: sums = exp(lse - most); of
  /// their sum over ranks lse = most + log sums.
  virtual void lse_to_sums(Out sums, In lse, In most) = 0;
  virtual void sums_to_lse(Out lse, In most, In sums) = 0;
  /// Of all tokens: sum of lse - target.
  virtual double total_loss(In lse, In target) = 0;
  /// logits become scale (softmax - one_hot(target)), lse being that of the whole row.
  virtual void loss_backward(Out logits, In lse, Tokens targets, const VocabularyPart& part,
                             Real scale) = 0;

  virtual double sum_of_squares(In x) = 0;
  virtual void adamw(Out p, Out m, Out v, In g, const AdamW& how) = 0;
};

/// This core. rope is for sequences of this length and heads of this dimension.
template <class Real>
std::unique_ptr<Kernels<Real>> make_host_kernels(std::int64_t sequence, std::int64_t head_dim);

}  // namespace stepcast::validate
