#include <algorithm>
#include <cmath>

#include "validate/trainer/device/kernels.hpp"

namespace stepcast::validate {
namespace {

namespace host = calibrate::host;

template <class Real>
class HostKernels final : public Kernels<Real> {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using Tokens = std::span<const Token>;
  using Piece = CopyPiece<Real, Real>;
  static_assert(!is_mixed<Real>);  // wide numbers are Real ones

  HostKernels(std::int64_t sequence, std::int64_t head_dim)
      : table_(host::make_rope_table<Real>(sequence, head_dim)) {}

  Buffer<Real> allocate(std::size_t size) override { return zeros<Real>(size); }
  Buffer<Real> allocate_wide(std::size_t size) override { return zeros<Real>(size); }
  Buffer<Token> allocate_tokens(std::size_t size) override { return zeros<Token>(size); }
  Bytes allocated() const override { return allocated_; }
  void upload(Out device, In from) override { host::copy<Real>(device, from); }
  void upload_tokens(std::span<Token> device, Tokens from) override {
    std::ranges::copy(from, device.begin());
  }
  void download(Out to, In device) override { host::copy<Real>(to, device); }

  void gemm(Out c, In a, In b, const GemmSizes& sizes) override { host::gemm(c, a, b, sizes); }
  void attention_forward(Out o, Out lse, In q, In k, In v, const AttentionSizes& s) override {
    host::attention_forward<Real>(o, lse, q, k, v, s);
  }
  void attention_backward(Out dq, Out dk, Out dv, In dout, In o, In lse, In q, In k, In v,
                          const AttentionSizes& s) override {
    host::attention_backward<Real>(dq, dk, dv, dout, o, lse, q, k, v, s);
  }
  void rmsnorm_forward(Out y, Out rstd, In x, In w) override {
    host::rmsnorm_forward<Real>(y, rstd, x, w, epsilon);
  }
  void rmsnorm_backward(Out dx, Out dw, In dy, In x, In w, In rstd) override {
    host::zero<Real>(dw);
    host::rmsnorm_backward<Real>(dx, dw, dy, x, w, rstd);
  }
  void rope(Out x, std::int64_t heads, bool backward) override {
    if (backward)
      host::rope_backward<Real>(x, heads, table_);
    else
      host::rope_forward<Real>(x, heads, table_);
  }
  void swiglu_forward(Out y, In gate, In up) override { host::silu_mul_forward<Real>(y, gate, up); }
  void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) override {
    host::silu_mul_backward<Real>(dgate, dup, dy, gate, up);
  }
  void add(Out y, In a, In b) override { host::residual_add<Real>(y, a, b); }
  void zero(Out x) override { host::zero<Real>(x); }

  void copies(std::span<const Piece> pieces) override {
    for (const Piece& piece : pieces) host::copy<Real>(piece.to, piece.from);
  }
  void copies_wide(std::span<const Piece> pieces) override { copies(pieces); }
  void copies_widening(std::span<const Piece> pieces) override { copies(pieces); }
  void narrow(Out to, In from) override { host::copy<Real>(to, from); }
  void widen(Out to, In from) override { host::copy<Real>(to, from); }
  void accumulate(Out sum, In more) override { host::residual_add<Real>(sum, sum, more); }

  void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) override;
  void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part) override;
  void loss_forward(Out lse, Out target, In logits, Tokens targets,
                    const VocabularyPart& part) override;
  void lse_to_sums(Out sums, In lse, In most) override {
    for (std::size_t t = 0; t < lse.size(); ++t) sums[t] = std::exp(lse[t] - most[t]);
  }
  void sums_to_lse(Out lse, In most, In sums) override {
    for (std::size_t t = 0; t < lse.size(); ++t) lse[t] = most[t] + std::log(sums[t]);
  }
  void add_loss(Out sum, In lse, In target) override {
    double all = 0.0;
    for (std::size_t t = 0; t < lse.size(); ++t)
      all += static_cast<double>(lse[t]) - static_cast<double>(target[t]);
    sum[0] += static_cast<Real>(all);
  }
  void loss_backward(Out logits, In lse, Tokens targets, const VocabularyPart& part,
                     Real scale) override;

  void sums_of_squares(Out result, std::span<const In> tensors) override {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      result[i] = static_cast<Real>(host::sum_of_squares<Real>(tensors[i]));
  }
  void weighted_sum(Out result, In values, In weights) override {
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += static_cast<double>(values[i]) * static_cast<double>(weights[i]);
    result[0] = static_cast<Real>(sum);
  }
  void clip_factor(Out factor, In squares, Real largest) override {
    factor[0] = std::min(Real(1), largest / (std::sqrt(squares[0]) + Real(1e-6)));
  }
  void scale_by(Out x, In factor) override { host::scale<Real>(x, factor[0]); }
  void unscale(Out x, Real factor, Out found) override {
    for (Real& value : x) {
      value *= factor;
      if (!std::isfinite(value)) found[0] = Real(1);
    }
  }
  void adamw(Out p, Out m, Out v, In g, const AdamW& how) override {
    host::adamw<Real>(p, m, v, g, how);
  }
  ExpertKernels<Real>& experts() override { return *experts_; }

 private:
  static constexpr Real epsilon = Real(1e-5);  // Llama 2's

  template <class T>
  Buffer<T> zeros(std::size_t size) {
    allocated_ += Bytes(static_cast<std::int64_t>(size * sizeof(T)));
    return {new T[size](), size, [](void* data) { delete[] static_cast<T*>(data); }};
  }

  /// Rows within the part; row 0 for tokens of other ranks.
  Tokens local(Tokens ids, const VocabularyPart& part) {
    local_.resize(ids.size());
    std::transform(ids.begin(), ids.end(), local_.begin(), [&](Token id) {
      return part.has(id) ? id - static_cast<Token>(part.first) : Token{0};
    });
    return local_;
  }

  host::RopeTable<Real> table_;
  std::unique_ptr<ExpertKernels<Real>> experts_ = make_host_expert_kernels<Real>();
  Bytes allocated_{};
  std::vector<Token> local_;
  std::vector<Real> losses_;
};

/// Calls f(first, count) for stretches of tokens whose rows are here, g for the others.
template <class F, class G>
void for_stretches(std::span<const Token> ids, const VocabularyPart& part, F f, G g) {
  for (std::size_t t = 0; t < ids.size();) {
    const bool here = part.has(ids[t]);
    std::size_t end = t;
    while (end < ids.size() && part.has(ids[end]) == here) ++end;
    if (here)
      f(t, end - t);
    else
      g(t, end - t);
    t = end;
  }
}

template <class Real>
void HostKernels<Real>::embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) {
  const std::size_t width = y.size() / ids.size();
  const Tokens rows = local(ids, part);
  for_stretches(
      ids, part,
      [&](std::size_t t, std::size_t n) {
        host::embedding_forward<Real>(y.subspan(t * width, n * width), table, rows.subspan(t, n));
      },
      [&](std::size_t t, std::size_t n) { host::zero<Real>(y.subspan(t * width, n * width)); });
}

template <class Real>
void HostKernels<Real>::embedding_backward(Out dtable, In dy, Tokens ids,
                                           const VocabularyPart& part) {
  const std::size_t width = dy.size() / ids.size();
  const Tokens rows = local(ids, part);
  for_stretches(
      ids, part,
      [&](std::size_t t, std::size_t n) {
        host::embedding_backward<Real>(dtable, dy.subspan(t * width, n * width),
                                       rows.subspan(t, n));
      },
      [](std::size_t, std::size_t) {});
}

template <class Real>
void HostKernels<Real>::loss_forward(Out lse, Out target, In logits, Tokens targets,
                                     const VocabularyPart& part) {
  const Tokens columns = local(targets, part);
  losses_.resize(targets.size());
  host::cross_entropy_forward<Real>(losses_, lse, logits, columns);
  const auto width = static_cast<std::size_t>(part.size);
  for (std::size_t t = 0; t < targets.size(); ++t)
    target[t] =
        part.has(targets[t]) ? logits[t * width + static_cast<std::size_t>(columns[t])] : Real(0);
}

/// The kernel takes one off at column 0 where the target is another rank's; it is given back.
template <class Real>
void HostKernels<Real>::loss_backward(Out logits, In lse, Tokens targets,
                                      const VocabularyPart& part, Real scale) {
  host::cross_entropy_backward<Real>(logits, logits, lse, local(targets, part), scale);
  for (std::size_t t = 0; t < targets.size(); ++t)
    if (!part.has(targets[t])) logits[t * static_cast<std::size_t>(part.size)] += scale;
}

}  // namespace

template <class Real>
std::unique_ptr<Kernels<Real>> make_host_kernels(std::int64_t sequence, std::int64_t head_dim) {
  return std::make_unique<HostKernels<Real>>(sequence, head_dim);
}

template std::unique_ptr<Kernels<float>> make_host_kernels(std::int64_t, std::int64_t);
template std::unique_ptr<Kernels<double>> make_host_kernels(std::int64_t, std::int64_t);

}  // namespace stepcast::validate
