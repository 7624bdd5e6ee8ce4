// Kernels of 16-bit numbers as plainly as can be: read as floats, done by the host's kernels,
// rounded once at the end. What a GPU's are measured against, and what trains where no GPU is.
#pragma once

#include <memory>
#include <vector>

#include "validate/trainer/device/kernels.hpp"

namespace stepcast::validate {

template <class Real>
class RoundedKernels final : public Kernels<Real> {
 public:
  using typename Kernels<Real>::Out;
  using typename Kernels<Real>::In;
  using typename Kernels<Real>::WideOut;
  using typename Kernels<Real>::WideIn;
  using typename Kernels<Real>::Tokens;
  using Floats = std::vector<float>;

  RoundedKernels(std::int64_t sequence, std::int64_t head_dim)
      : wide_(make_host_kernels<float>(sequence, head_dim)) {}

  Buffer<Real> allocate(std::size_t size) override {
    narrow_bytes_ += Bytes(static_cast<std::int64_t>(size * sizeof(Real)));
    return {new Real[size](), size, [](void* data) { delete[] static_cast<Real*>(data); }};
  }
  Buffer<float> allocate_wide(std::size_t size) override { return wide_->allocate(size); }
  Buffer<Token> allocate_tokens(std::size_t size) override { return wide_->allocate_tokens(size); }
  Bytes allocated() const override { return narrow_bytes_ + wide_->allocated(); }
  void upload(WideOut device, WideIn host) override { wide_->upload(device, host); }
  void upload_tokens(std::span<Token> device, Tokens host) override {
    wide_->upload_tokens(device, host);
  }
  void download(WideOut host, WideIn device) override { wide_->download(host, device); }

  void gemm(Out c, In a, In b, const GemmSizes& sizes) override {
    Floats sum = floats(c);
    wide_->gemm(sum, floats(a), floats(b), sizes);
    round(c, sum);
  }
  void attention_forward(Out o, WideOut lse, In q, In k, In v, const AttentionSizes& s) override {
    Floats out(o.size());
    wide_->attention_forward(out, lse, floats(q), floats(k), floats(v), s);
    round(o, out);
  }
  void attention_backward(Out dq, Out dk, Out dv, In dout, In o, WideIn lse, In q, In k, In v,
                          const AttentionSizes& s) override {
    Floats a(dq.size()), b(dk.size()), c(dv.size());
    wide_->attention_backward(a, b, c, floats(dout), floats(o), lse, floats(q), floats(k),
                              floats(v), s);
    round(dq, a);
    round(dk, b);
    round(dv, c);
  }
  void rmsnorm_forward(Out y, WideOut rstd, In x, In w) override {
    Floats out(y.size());
    wide_->rmsnorm_forward(out, rstd, floats(x), floats(w));
    round(y, out);
  }
  void rmsnorm_backward(Out dx, Out dw, In dy, In x, In w, WideIn rstd) override {
    Floats a(dx.size()), b(dw.size());
    wide_->rmsnorm_backward(a, b, floats(dy), floats(x), floats(w), rstd);
    round(dx, a);
    round(dw, b);
  }
  void rope(Out x, std::int64_t heads, bool backward) override {
    Floats turned = floats(x);
    wide_->rope(turned, heads, backward);
    round(x, turned);
  }
  void swiglu_forward(Out y, In gate, In up) override {
    Floats out(y.size());
    wide_->swiglu_forward(out, floats(gate), floats(up));
    round(y, out);
  }
  void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) override {
    Floats a(dgate.size()), b(dup.size());
    wide_->swiglu_backward(a, b, floats(dy), floats(gate), floats(up));
    round(dgate, a);
    round(dup, b);
  }
  void add(Out y, In a, In b) override {
    Floats out(y.size());
    wide_->add(out, floats(a), floats(b));
    round(y, out);
  }
  void zero(Out x) override { std::ranges::fill(x, Real{}); }

  void copies(std::span<const CopyPiece<Real, Real>> pieces) override {
    for (const auto& piece : pieces) std::ranges::copy(piece.from, piece.to.begin());
  }
  void copies_wide(std::span<const CopyPiece<float, float>> pieces) override {
    wide_->copies(pieces);
  }
  void copies_widening(std::span<const CopyPiece<float, Real>> pieces) override {
    for (const auto& piece : pieces) widen(piece.to, piece.from);
  }
  void narrow(Out to, WideIn from) override { round(to, from); }
  void widen(WideOut to, In from) override { std::ranges::copy(floats(from), to.begin()); }
  void accumulate(WideOut sum, In more) override { wide_->accumulate(sum, floats(more)); }

  void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) override {
    Floats out(y.size());
    wide_->embedding_forward(out, floats(table), ids, part);
    round(y, out);
  }
  void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part) override {
    Floats sum = floats(dtable);
    wide_->embedding_backward(sum, floats(dy), ids, part);
    round(dtable, sum);
  }
  void loss_forward(WideOut lse, WideOut target, In logits, Tokens targets,
                    const VocabularyPart& part) override {
    wide_->loss_forward(lse, target, floats(logits), targets, part);
  }
  void lse_to_sums(WideOut sums, WideIn lse, WideIn most) override {
    wide_->lse_to_sums(sums, lse, most);
  }
  void sums_to_lse(WideOut lse, WideIn most, WideIn sums) override {
    wide_->sums_to_lse(lse, most, sums);
  }
  void add_loss(WideOut sum, WideIn lse, WideIn target) override {
    wide_->add_loss(sum, lse, target);
  }
  void loss_backward(Out logits, WideIn lse, Tokens targets, const VocabularyPart& part,
                     float scale) override {
    Floats slopes = floats(logits);
    wide_->loss_backward(slopes, lse, targets, part, scale);
    round(logits, slopes);
  }

  void sums_of_squares(WideOut result, std::span<const WideIn> tensors) override {
    wide_->sums_of_squares(result, tensors);
  }
  void weighted_sum(WideOut result, WideIn values, WideIn weights) override {
    wide_->weighted_sum(result, values, weights);
  }
  void clip_factor(WideOut factor, WideIn squares, float largest) override {
    wide_->clip_factor(factor, squares, largest);
  }
  void scale_by(WideOut x, WideIn factor) override { wide_->scale_by(x, factor); }
  void unscale(WideOut x, float factor, WideOut found) override {
    wide_->unscale(x, factor, found);
  }
  void adamw(WideOut p, WideOut m, WideOut v, WideIn g, const AdamW& how) override {
    wide_->adamw(p, m, v, g, how);
  }

 private:
  static Floats floats(In x) {
    Floats out(x.size());
    std::ranges::transform(x, out.begin(), [](Real value) { return to_float(value); });
    return out;
  }
  static void round(Out to, WideIn from) {
    std::ranges::transform(from, to.begin(), [](float value) { return rounded<Real>(value); });
  }

  std::unique_ptr<Kernels<float>> wide_;
  Bytes narrow_bytes_{};
};

}  // namespace stepcast::validate
