// The kernels that the trainer calls, as one device has them: a processor core
// (kernels_host.cpp) or a GPU (kernels_cuda.cpp), each with calibrate's own, the
// same functions in the same layouts as those that are timed. Spans point to the device's memory;
// work is put on the lane at hand (lanes.hpp) and needs not be done on return. Shapes as
// there: T tokens, H hidden, V vocabulary of this rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/host/attention.hpp"
#include "calibrate/host/gemm.hpp"
#include "calibrate/host/kernels.hpp"
#include "engine/check.hpp"
#include "engine/units.hpp"
#include "validate/trainer/device/expert_kernels.hpp"
#include "validate/trainer/ranks/numbers.hpp"
#include "validate/trainer/ranks/text.hpp"

namespace stepcast::validate {

using calibrate::host::AdamW;
using calibrate::host::AttentionSizes;
using calibrate::host::GemmSizes;

/// Memory of a device, given back with its owner.
template <class Real>
class Buffer {
 public:
  using Release = void (*)(void*);
  Buffer() : data_(nullptr, [](void*) {}) {}
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

/// One of several copies that one kernel makes, in elements.
template <class To, class From>
struct CopyPiece {
  std::span<To> to;
  std::span<const From> from;
};

template <class Real>
class Kernels {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using WideOut = std::span<Wide<Real>>;
  using WideIn = std::span<const Wide<Real>>;
  using Tokens = std::span<const Token>;  // on the device

  virtual ~Kernels() = default;

  virtual Buffer<Real> allocate(std::size_t size) = 0;  // zeros
  virtual Buffer<Wide<Real>> allocate_wide(std::size_t size) = 0;
  virtual Buffer<Token> allocate_tokens(std::size_t size) = 0;
  virtual Bytes allocated() const = 0;  // so far
  /// `host` may be changed on return.
  virtual void upload(WideOut device, WideIn host) = 0;
  virtual void upload_tokens(std::span<Token> device, Tokens host) = 0;
  /// Waits for the lane at hand.
  virtual void download(WideOut host, WideIn device) = 0;

  virtual void gemm(Out c, In a, In b, const GemmSizes& sizes) = 0;
  virtual void attention_forward(Out o, WideOut lse, In q, In k, In v, const AttentionSizes& s) = 0;
  virtual void attention_backward(Out dq, Out dk, Out dv, In dout, In o, WideIn lse, In q, In k,
                                  In v, const AttentionSizes& s) = 0;
  virtual void rmsnorm_forward(Out y, WideOut rstd, In x, In w) = 0;
  /// dw is overwritten.
  virtual void rmsnorm_backward(Out dx, Out dw, In dy, In x, In w, WideIn rstd) = 0;
  virtual void rope(Out x, std::int64_t heads, bool backward) = 0;
  virtual void swiglu_forward(Out y, In gate, In up) = 0;
  virtual void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) = 0;
  virtual void add(Out y, In a, In b) = 0;
  virtual void zero(Out x) = 0;

  // Between parameters, their gradients and the buffers of collectives. Where Real is wide, the
  // first three are one.
  virtual void copies(std::span<const CopyPiece<Real, Real>> pieces) = 0;
  virtual void copies_wide(std::span<const CopyPiece<Wide<Real>, Wide<Real>>> pieces) = 0;
  virtual void copies_widening(std::span<const CopyPiece<Wide<Real>, Real>> pieces) = 0;
  virtual void narrow(Out to, WideIn from) = 0;
  virtual void widen(WideOut to, In from) = 0;
  virtual void accumulate(WideOut sum, In more) = 0;

  /// Zeros where another rank has the row.
  virtual void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) = 0;
  /// dtable[id[t] - first] += dy[t] where this rank has the row; one rounding for all tokens.
  virtual void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part) = 0;

  /// lse[t] over this rank's columns; target[t]: the target's logit, 0 where another rank has it.
  virtual void loss_forward(WideOut lse, WideOut target, In logits, Tokens targets,
                            const VocabularyPart& part) = 0;
  /// Rows cut over ranks, `most` being the largest lse of a row's parts: sums = exp(lse - most); of
  /// their sum over ranks lse = most + log sums.
  virtual void lse_to_sums(WideOut sums, WideIn lse, WideIn most) = 0;
  virtual void sums_to_lse(WideOut lse, WideIn most, WideIn sums) = 0;
  /// sum[0] += lse - target of all tokens.
  virtual void add_loss(WideOut sum, WideIn lse, WideIn target) = 0;
  /// logits become scale (softmax - one_hot(target)), lse being that of the whole row.
  virtual void loss_backward(Out logits, WideIn lse, Tokens targets, const VocabularyPart& part,
                             Wide<Real> scale) = 0;

  /// result[i] = sum of squares of tensors[i].
  virtual void sums_of_squares(WideOut result, std::span<const WideIn> tensors) = 0;
  /// result[0] = sum of values[i] weights[i].
  virtual void weighted_sum(WideOut result, WideIn values, WideIn weights) = 0;
  /// factor[0] = min(1, largest / (sqrt(squares[0]) + 1e-6)).
  virtual void clip_factor(WideOut factor, WideIn squares, Wide<Real> largest) = 0;
  /// x *= factor[0].
  virtual void scale_by(WideOut x, WideIn factor) = 0;
  /// x *= factor; found[0] = 1 where a product is not finite.
  virtual void unscale(WideOut x, Wide<Real> factor, WideOut found) = 0;
  virtual void adamw(WideOut p, WideOut m, WideOut v, WideIn g, const AdamW& how) = 0;

  /// Of a device that has them: the host.
  virtual ExpertKernels<Real>& experts() { throw BrokenPromise("a device that knows experts"); }
};

/// This core, Real being float or double. rope is for sequences of this length and heads of this
/// dimension.
template <class Real>
std::unique_ptr<Kernels<Real>> make_host_kernels(std::int64_t sequence, std::int64_t head_dim);

}  // namespace stepcast::validate
