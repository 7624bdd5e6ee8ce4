#include <array>
#include <cmath>
#include <map>

#include "engine/check.hpp"
#include "validate/trainer/device/cuda_device.hpp"

namespace stepcast::validate {
namespace {

namespace cuda = calibrate::cuda_kernels;
using cuda::ElementType;

template <class T>
constexpr ElementType type_of = ElementType::fp32;
template <>
constexpr ElementType type_of<Bfloat16> = ElementType::bf16;
template <>
constexpr ElementType type_of<Half> = ElementType::fp16;

std::int64_t count(std::size_t elements) { return static_cast<std::int64_t>(elements); }

cuda::VocabularyPart rows_of(const VocabularyPart& part) { return {part.first, part.size}; }

/// Memory that no buffer of the trainer is: tables and scratch.
using Memory = std::unique_ptr<std::byte, CudaDevice::Release>;

/// A table of pieces on the device, written once for each list of pieces: buffers keep their place
/// over steps. One for each stream, which alone knows that it was written.
template <class Piece>
class Tables {
 public:
  cuda::Pieces<Piece> of(CudaDevice& device, std::vector<Piece> pieces) {
    Key key{device.stream(), {}};
    for (const Piece& piece : pieces) append(key.second, piece);
    auto [table, is_new] = tables_.try_emplace(std::move(key));
    if (is_new) {
      table->second.num_blocks = number_blocks(std::span(pieces));
      const std::size_t size = pieces.size() * sizeof(Piece);
      table->second.memory = Memory(device.allocate(size), device.release());
      device.upload(table->second.memory.get(), reinterpret_cast<const std::byte*>(pieces.data()),
                    size);
    }
    return {reinterpret_cast<const Piece*>(table->second.memory.get()), count(pieces.size()),
            table->second.num_blocks};
  }

 private:
  using Key = std::pair<cudaStream_t, std::vector<std::uintptr_t>>;
  struct Table {
    Memory memory{nullptr, [](void*) {}};
    std::int64_t num_blocks = 0;
  };

  static void append(std::vector<std::uintptr_t>& key, const cuda::CopyPiece& piece) {
    key.push_back(reinterpret_cast<std::uintptr_t>(piece.to));
    key.push_back(reinterpret_cast<std::uintptr_t>(piece.from));
    key.push_back(static_cast<std::uintptr_t>(piece.elements));
  }
  static void append(std::vector<std::uintptr_t>& key, const cuda::SquaresPiece& piece) {
    key.push_back(reinterpret_cast<std::uintptr_t>(piece.tensor));
    key.push_back(static_cast<std::uintptr_t>(piece.elements));
  }

  std::map<Key, Table> tables_;
};

/// Scratch memory of each stream, as large as its kernels have needed so far. What has become too
/// small stays until the end: giving it back would wait for the device.
class Scratch {
 public:
  std::byte* at_least(CudaDevice& device, std::size_t size) {
    Latest& latest = latest_[device.stream()];
    if (latest.size < size) {
      all_.emplace_back(device.allocate(size), device.release());
      latest = {all_.back().get(), size};
    }
    return latest.memory;
  }

 private:
  struct Latest {
    std::byte* memory = nullptr;
    std::size_t size = 0;
  };
  std::map<cudaStream_t, Latest> latest_;
  std::vector<Memory> all_;
};

template <class Real>
class CudaKernels final : public Kernels<Real> {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using WideOut = std::span<float>;
  using WideIn = std::span<const float>;
  using Tokens = std::span<const Token>;
  static_assert(is_mixed<Real> && std::is_same_v<Wide<Real>, float>);
  static constexpr ElementType type = type_of<Real>;

  CudaKernels(std::unique_ptr<CudaDevice> device, std::int64_t sequence, std::int64_t head_dim);

  Buffer<Real> allocate(std::size_t size) override { return zeros<Real>(size); }
  Buffer<float> allocate_wide(std::size_t size) override { return zeros<float>(size); }
  Buffer<Token> allocate_tokens(std::size_t size) override { return zeros<Token>(size); }
  Bytes allocated() const override { return allocated_; }
  void upload(WideOut device, WideIn host) override { upload_any(device, host); }
  void upload_tokens(std::span<Token> device, Tokens host) override { upload_any(device, host); }
  void download(WideOut host, WideIn device) override {
    expects(host.size() == device.size(), "download: equal sizes");
    device_->download(std::as_writable_bytes(host).data(), std::as_bytes(device).data(),
                      host.size_bytes());
  }

  void gemm(Out c, In a, In b, const GemmSizes& sizes) override {
    expects(count(c.size()) == sizes.m * sizes.n && count(a.size()) == sizes.m * sizes.k &&
                count(b.size()) == sizes.n * sizes.k,
            "a product of its operands' sizes");
    device_->gemm(type, c.data(), a.data(), b.data(), sizes);
  }
  void attention_forward(Out o, WideOut lse, In q, In k, In v, const AttentionSizes& s) override {
    cuda::attention_forward(shape_of(s), q.data(), k.data(), v.data(), o.data(), lse.data(),
                            stream());
  }
  void attention_backward(Out dq, Out dk, Out dv, In dout, In o, WideIn lse, In q, In k, In v,
                          const AttentionSizes& s) override;
  void rmsnorm_forward(Out y, WideOut rstd, In x, In w) override {
    cuda::rmsnorm_forward(rows(x, w.size()), x.data(), w.data(), epsilon, y.data(), rstd.data(),
                          stream());
  }
  void rmsnorm_backward(Out dx, Out dw, In dy, In x, In w, WideIn rstd) override;
  void rope(Out x, std::int64_t heads, bool backward) override;
  void swiglu_forward(Out y, In gate, In up) override {
    const std::int64_t n = count(y.size());
    cuda::swiglu_forward({type, 1, n}, {gate.data(), up.data(), n}, y.data(), stream());
  }
  void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) override {
    const std::int64_t n = count(dy.size());
    cuda::swiglu_backward({type, 1, n}, {gate.data(), up.data(), n}, dy.data(),
                          {dgate.data(), dup.data(), n}, stream());
  }
  void add(Out y, In a, In b) override {
    expects(y.size() == a.size() && y.size() == b.size(), "add: equal sizes");
    cuda::residual_add(type, count(y.size()), a.data(), b.data(), y.data(), stream());
  }
  void zero(Out x) override {
    if (!x.empty()) device_->clear(std::as_writable_bytes(x).data(), x.size_bytes());
  }

  void copies(std::span<const CopyPiece<Real, Real>> pieces) override { copy_all(pieces); }
  void copies_wide(std::span<const CopyPiece<float, float>> pieces) override { copy_all(pieces); }
  void copies_widening(std::span<const CopyPiece<float, Real>> pieces) override {
    copy_all(pieces);
  }
  void narrow(Out to, WideIn from) override {
    expects(to.size() == from.size(), "narrow: equal sizes");
    cuda::cast(ElementType::fp32, type, count(to.size()), from.data(), to.data(), stream());
  }
  void widen(WideOut to, In from) override {
    expects(to.size() == from.size(), "widen: equal sizes");
    cuda::cast(type, ElementType::fp32, count(to.size()), from.data(), to.data(), stream());
  }
  void accumulate(WideOut sum, In more) override {
    expects(sum.size() == more.size(), "accumulate: equal sizes");
    cuda::accumulate(type, count(sum.size()), more.data(), sum.data(), stream());
  }

  void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) override {
    cuda::embedding_forward(rows_by_token(y, ids), rows_of(part), table.data(), ids.data(),
                            y.data(), stream());
  }
  void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part) override {
    cuda::embedding_backward(rows_by_token(dy, ids), rows_of(part), ids.data(), dy.data(),
                             dtable.data(), stream());
  }
  void loss_forward(WideOut lse, WideOut target, In logits, Tokens targets,
                    const VocabularyPart& part) override {
    expects(count(logits.size()) == count(targets.size()) * part.size, "logits of this part");
    cuda::loss_forward(rows_by_token(logits, targets), part.first, logits.data(), targets.data(),
                       lse.data(), target.data(), stream());
  }
  void lse_to_sums(WideOut sums, WideIn lse, WideIn most) override {
    cuda::lse_to_sums(count(lse.size()), lse.data(), most.data(), sums.data(), stream());
  }
  void sums_to_lse(WideOut lse, WideIn most, WideIn sums) override {
    cuda::sums_to_lse(count(lse.size()), most.data(), sums.data(), lse.data(), stream());
  }
  void add_loss(WideOut sum, WideIn lse, WideIn target) override {
    cuda::add_loss(count(lse.size()), lse.data(), target.data(), sum.data(), stream());
  }
  void loss_backward(Out logits, WideIn lse, Tokens targets, const VocabularyPart& part,
                     float scale) override {
    expects(count(logits.size()) == count(targets.size()) * part.size, "logits of this part");
    cuda::loss_backward(rows_by_token(logits, targets), part.first, logits.data(), targets.data(),
                        lse.data(), scale, stream());
  }

  void sums_of_squares(WideOut result, std::span<const WideIn> tensors) override;
  void weighted_sum(WideOut result, WideIn values, WideIn weights) override {
    cuda::weighted_sum(count(values.size()), values.data(), weights.data(), result.data(),
                       stream());
  }
  void clip_factor(WideOut factor, WideIn squares, float largest) override {
    cuda::clip_factor(squares.data(), largest, factor.data(), stream());
  }
  void scale_by(WideOut x, WideIn factor) override {
    cuda::scale_by(count(x.size()), factor.data(), x.data(), stream());
  }
  void unscale(WideOut x, float factor, WideOut found) override {
    cuda::unscale(count(x.size()), factor, x.data(), found.data(), stream());
  }
  void adamw(WideOut p, WideOut m, WideOut v, WideIn g, const AdamW& how) override;

 private:
  static constexpr float epsilon = 1e-5F;  // Llama 2's

  cudaStream_t stream() const { return device_->stream(); }
  template <class T>
  T* scratch(std::size_t size) {
    return reinterpret_cast<T*>(scratch_.at_least(*device_, size));
  }

  template <class T>
  Buffer<T> zeros(std::size_t size) {
    if (size == 0) return {};
    allocated_ += Bytes(count(size * sizeof(T)));
    return {reinterpret_cast<T*>(device_->allocate(size * sizeof(T))), size, device_->release()};
  }
  template <class T>
  void upload_any(std::span<T> device, std::span<const T> host) {
    expects(device.size() == host.size(), "upload: equal sizes");
    if (host.empty()) return;
    device_->upload(std::as_writable_bytes(device).data(), std::as_bytes(host).data(),
                    host.size_bytes());
  }
  template <class To, class From>
  void copy_all(std::span<const CopyPiece<To, From>> pieces);

  cuda::Rows rows(In x, std::size_t width) const {
    return {type, count(x.size() / width), count(width)};
  }
  cuda::Rows rows_by_token(In x, Tokens ids) const { return rows(x, x.size() / ids.size()); }
  cuda::AttentionShape shape_of(const AttentionSizes& s) const {
    return {.type = type,
            .batch = s.batch,
            .sequence = s.sequence,
            .heads = s.heads,
            .kv_heads = s.kv_heads,
            .head_dim = s.head_dim,
            .causal = s.causal,
            .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.head_dim)))};
  }

  std::unique_ptr<CudaDevice> device_;
  std::int64_t sequence_, head_dim_;
  Bytes allocated_{};
  Scratch scratch_;
  Tables<cuda::CopyPiece> copies_;
  Tables<cuda::SquaresPiece> squares_;
  Memory cosines_, sines_;  // of rope: fp32 (S, head_dim / 2)
};

template <class Real>
CudaKernels<Real>::CudaKernels(std::unique_ptr<CudaDevice> device, std::int64_t sequence,
                               std::int64_t head_dim)
    : device_(std::move(device)),
      sequence_(sequence),
      head_dim_(head_dim),
      cosines_(nullptr, device_->release()),
      sines_(nullptr, device_->release()) {
  const AttentionSizes smallest{.sequence = sequence, .head_dim = head_dim};
  if (const auto obstacle = cuda::attention_obstacle(shape_of(smallest), cuda::Pass::backward))
    throw InputError("the GPU", *obstacle, "choose another dtype, model or GPU, or the host");
  const auto size = static_cast<std::size_t>(sequence * head_dim / 2) * sizeof(float);
  cosines_.reset(device_->allocate(size));
  sines_.reset(device_->allocate(size));
  cuda::rope_table(sequence, head_dim, 10000.0F, reinterpret_cast<float*>(cosines_.get()),
                   reinterpret_cast<float*>(sines_.get()), stream());
}

template <class Real>
void CudaKernels<Real>::attention_backward(Out dq, Out dk, Out dv, In dout, In o, WideIn lse, In q,
                                           In k, In v, const AttentionSizes& s) {
  const cuda::AttentionShape shape = shape_of(s);
  cuda::attention_backward(
      shape,
      {.q = q.data(),
       .k = k.data(),
       .v = v.data(),
       .o = o.data(),
       .d_o = dout.data(),
       .lse = lse.data(),
       .dq = dq.data(),
       .dk = dk.data(),
       .dv = dv.data(),
       .workspace = scratch<std::byte>(cuda::attention_workspace_bytes(shape))},
      stream());
}

/// The gradient of the weight is summed in fp32 and rounded once.
template <class Real>
void CudaKernels<Real>::rmsnorm_backward(Out dx, Out dw, In dy, In x, In w, WideIn rstd) {
  const cuda::Rows shape = rows(x, w.size());
  const std::size_t workspace = cuda::norm_workspace_bytes(shape);
  auto* sums = scratch<float>(workspace + w.size() * sizeof(float));
  float* dweight = sums + workspace / sizeof(float);
  cuda::rmsnorm_backward(shape,
                         {.x = x.data(),
                          .weight = w.data(),
                          .dy = dy.data(),
                          .inverse = rstd.data(),
                          .dx = dx.data(),
                          .dweight = dweight,
                          .workspace = sums},
                         stream());
  cuda::cast(ElementType::fp32, type, shape.width, dweight, dw.data(), stream());
}

template <class Real>
void CudaKernels<Real>::rope(Out x, std::int64_t heads, bool backward) {
  const std::int64_t tokens = count(x.size()) / (heads * head_dim_);
  expects(tokens % sequence_ == 0, "rope: whole sequences");
  cuda::rope({.type = type,
              .batch = tokens / sequence_,
              .sequence = sequence_,
              .heads = heads,
              .head_dim = head_dim_},
             backward ? cuda::Pass::backward : cuda::Pass::forward, x.data(),
             reinterpret_cast<const float*>(cosines_.get()),
             reinterpret_cast<const float*>(sines_.get()), x.data(), stream());
}

template <class Real>
template <class To, class From>
void CudaKernels<Real>::copy_all(std::span<const CopyPiece<To, From>> pieces) {
  std::vector<cuda::CopyPiece> table;
  for (const auto& piece : pieces) {
    expects(piece.to.size() == piece.from.size(), "copies: equal sizes");
    table.push_back(
        {.to = piece.to.data(), .from = piece.from.data(), .elements = count(piece.to.size())});
  }
  if (table.empty()) return;
  cuda::copies(type_of<From>, type_of<To>, copies_.of(*device_, std::move(table)), stream());
}

template <class Real>
void CudaKernels<Real>::sums_of_squares(WideOut result, std::span<const WideIn> tensors) {
  expects(result.size() == tensors.size(), "a sum for each tensor");
  std::vector<cuda::SquaresPiece> table;
  for (const WideIn& tensor : tensors)
    table.push_back({.tensor = tensor.data(), .elements = count(tensor.size())});
  if (table.empty()) return;
  const auto pieces = squares_.of(*device_, std::move(table));
  auto* partial = scratch<float>(static_cast<std::size_t>(pieces.num_blocks) * sizeof(float));
  cuda::sums_of_squares(ElementType::fp32, pieces, partial, result.data(), stream());
}

template <class Real>
void CudaKernels<Real>::adamw(WideOut p, WideOut m, WideOut v, WideIn g, const AdamW& how) {
  expects(p.size() == g.size() && m.size() == g.size() && v.size() == g.size(),
          "adamw: one moment of each kind per parameter");
  cuda::adamw({.learning_rate = static_cast<float>(how.learning_rate),
               .beta1 = static_cast<float>(how.beta1),
               .beta2 = static_cast<float>(how.beta2),
               .epsilon = static_cast<float>(how.epsilon),
               .weight_decay = static_cast<float>(how.weight_decay),
               .step = how.step},
              {.gradient = g.data(),
               .master = p.data(),
               .first_moment = m.data(),
               .second_moment = v.data()},
              count(p.size()), stream());
}

}  // namespace

template <class Real>
std::unique_ptr<Kernels<Real>> make_cuda_kernels(std::unique_ptr<CudaDevice> device,
                                                 std::int64_t sequence, std::int64_t head_dim) {
  return std::make_unique<CudaKernels<Real>>(std::move(device), sequence, head_dim);
}

template std::unique_ptr<Kernels<Bfloat16>> make_cuda_kernels(std::unique_ptr<CudaDevice>,
                                                              std::int64_t, std::int64_t);
template std::unique_ptr<Kernels<Half>> make_cuda_kernels(std::unique_ptr<CudaDevice>, std::int64_t,
                                                          std::int64_t);

}  // namespace stepcast::validate
