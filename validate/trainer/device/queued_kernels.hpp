// Kernels of a device whose lanes are queues: each call is kept with what it needs and done by
// another Kernels when its lane comes to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "validate/trainer/device/kernels.hpp"
#include "validate/trainer/device/queue_lanes.hpp"
#include "validate/trainer/device/queued_expert_kernels.hpp"

namespace stepcast::validate {

template <class Real>
class QueuedKernels final : public Kernels<Real> {
 public:
  using typename Kernels<Real>::Out;
  using typename Kernels<Real>::In;
  using typename Kernels<Real>::WideOut;
  using typename Kernels<Real>::WideIn;
  using typename Kernels<Real>::Tokens;

  QueuedKernels(std::unique_ptr<Kernels<Real>> done_by, QueueLanes& lanes)
      : inner_(std::move(done_by)), lanes_(lanes) {}

  Buffer<Real> allocate(std::size_t size) override { return inner_->allocate(size); }
  Buffer<Wide<Real>> allocate_wide(std::size_t size) override {
    return inner_->allocate_wide(size);
  }
  Buffer<Token> allocate_tokens(std::size_t size) override { return inner_->allocate_tokens(size); }
  Bytes allocated() const override { return inner_->allocated(); }
  void upload(WideOut to, WideIn from) override {
    put([=, this, kept = std::vector(from.begin(), from.end())] { inner_->upload(to, kept); });
  }
  void upload_tokens(std::span<Token> to, Tokens from) override {
    put([=, this, kept = std::vector(from.begin(), from.end())] {
      inner_->upload_tokens(to, kept);
    });
  }
  void download(WideOut to, WideIn from) override {
    lanes_.synchronize();
    inner_->download(to, from);
  }

  void gemm(Out c, In a, In b, const GemmSizes& s) override {
    put([=, this] { inner_->gemm(c, a, b, s); });
  }
  void attention_forward(Out o, WideOut lse, In q, In k, In v, const AttentionSizes& s) override {
    put([=, this] { inner_->attention_forward(o, lse, q, k, v, s); });
  }
  void attention_backward(Out dq, Out dk, Out dv, In dout, In o, WideIn lse, In q, In k, In v,
                          const AttentionSizes& s) override {
    put([=, this] { inner_->attention_backward(dq, dk, dv, dout, o, lse, q, k, v, s); });
  }
  void rmsnorm_forward(Out y, WideOut rstd, In x, In w) override {
    put([=, this] { inner_->rmsnorm_forward(y, rstd, x, w); });
  }
  void rmsnorm_backward(Out dx, Out dw, In dy, In x, In w, WideIn rstd) override {
    put([=, this] { inner_->rmsnorm_backward(dx, dw, dy, x, w, rstd); });
  }
  void rope(Out x, std::int64_t heads, bool backward) override {
    put([=, this] { inner_->rope(x, heads, backward); });
  }
  void swiglu_forward(Out y, In gate, In up) override {
    put([=, this] { inner_->swiglu_forward(y, gate, up); });
  }
  void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) override {
    put([=, this] { inner_->swiglu_backward(dgate, dup, dy, gate, up); });
  }
  void add(Out y, In a, In b) override {
    put([=, this] { inner_->add(y, a, b); });
  }
  void zero(Out x) override {
    put([=, this] { inner_->zero(x); });
  }
  void copies(std::span<const CopyPiece<Real, Real>> pieces) override {
    put([this, kept = std::vector(pieces.begin(), pieces.end())] { inner_->copies(kept); });
  }
  void copies_wide(std::span<const CopyPiece<Wide<Real>, Wide<Real>>> pieces) override {
    put([this, kept = std::vector(pieces.begin(), pieces.end())] { inner_->copies_wide(kept); });
  }
  void copies_widening(std::span<const CopyPiece<Wide<Real>, Real>> pieces) override {
    put([this, kept = std::vector(pieces.begin(), pieces.end())] {
      inner_->copies_widening(kept);
    });
  }
  void narrow(Out to, WideIn from) override {
    put([=, this] { inner_->narrow(to, from); });
  }
  void widen(WideOut to, In from) override {
    put([=, this] { inner_->widen(to, from); });
  }
  void accumulate(WideOut sum, In more) override {
    put([=, this] { inner_->accumulate(sum, more); });
  }
  void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) override {
    put([=, this] { inner_->embedding_forward(y, table, ids, part); });
  }
  void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part) override {
    put([=, this] { inner_->embedding_backward(dtable, dy, ids, part); });
  }
  void loss_forward(WideOut lse, WideOut target, In logits, Tokens targets,
                    const VocabularyPart& part) override {
    put([=, this] { inner_->loss_forward(lse, target, logits, targets, part); });
  }
  void lse_to_sums(WideOut sums, WideIn lse, WideIn most) override {
    put([=, this] { inner_->lse_to_sums(sums, lse, most); });
  }
  void sums_to_lse(WideOut lse, WideIn most, WideIn sums) override {
    put([=, this] { inner_->sums_to_lse(lse, most, sums); });
  }
  void add_loss(WideOut sum, WideIn lse, WideIn target) override {
    put([=, this] { inner_->add_loss(sum, lse, target); });
  }
  void loss_backward(Out logits, WideIn lse, Tokens targets, const VocabularyPart& part,
                     Wide<Real> scale) override {
    put([=, this] { inner_->loss_backward(logits, lse, targets, part, scale); });
  }
  void sums_of_squares(WideOut result, std::span<const WideIn> tensors) override {
    put([this, result, kept = std::vector(tensors.begin(), tensors.end())] {
      inner_->sums_of_squares(result, kept);
    });
  }
  void weighted_sum(WideOut result, WideIn values, WideIn weights) override {
    put([=, this] { inner_->weighted_sum(result, values, weights); });
  }
  void clip_factor(WideOut factor, WideIn squares, Wide<Real> largest) override {
    put([=, this] { inner_->clip_factor(factor, squares, largest); });
  }
  void scale_by(WideOut x, WideIn factor) override {
    put([=, this] { inner_->scale_by(x, factor); });
  }
  void unscale(WideOut x, Wide<Real> factor, WideOut found) override {
    put([=, this] { inner_->unscale(x, factor, found); });
  }
  void adamw(WideOut p, WideOut m, WideOut v, WideIn g, const AdamW& how) override {
    put([=, this] { inner_->adamw(p, m, v, g, how); });
  }
  ExpertKernels<Real>& experts() override {
    if (!experts_) experts_.emplace(inner_->experts(), lanes_);
    return *experts_;
  }

 private:
  void put(std::function<void()> work) { lanes_.put(std::move(work)); }

  std::unique_ptr<Kernels<Real>> inner_;
  QueueLanes& lanes_;
  std::optional<QueuedExpertKernels<Real>> experts_;
};

}  // namespace stepcast::validate
