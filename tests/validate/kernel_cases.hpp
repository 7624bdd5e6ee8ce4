// Claims about the trainer's kernels of a GPU: each does what the host's do in fp32 on the same
// numbers, up to the rounding of its results. For emulated kernels and for those of a real GPU.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "validate/trainer_kernels.hpp"

namespace stepcast::validate {

using Floats = std::vector<float>;

/// Of 16-bit results: a unit of the last place of the largest.
template <class Real>
constexpr double unit_of = std::is_same_v<Real, Bfloat16> ? 1.0 / 128 : 1.0 / 1024;

/// Largest difference over the largest value wanted.
inline double relative_error(const Floats& got, const Floats& wanted) {
  REQUIRE(got.size() == wanted.size());
  double difference = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    difference = std::max(difference, std::abs(double{got[i]} - double{wanted[i]}));
    largest = std::max(largest, std::abs(double{wanted[i]}));
  }
  return largest > 0.0 ? difference / largest : difference;
}

inline Floats uniform(std::size_t size, std::uint64_t seed, float most = 1.0F) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> between(-most, most);
  Floats result(size);
  for (float& x : result) x = between(random);
  return result;
}

/// What of these numbers 16 bits hold.
template <class Real>
Floats as_rounded(Floats x) {
  for (float& value : x) value = to_float(rounded<Real>(value));
  return x;
}

/// The kernels under test and how numbers get to their device and back.
template <class Real>
class OnDevice {
 public:
  explicit OnDevice(std::unique_ptr<Kernels<Real>> kernels) : kernels_(std::move(kernels)) {}
  Kernels<Real>* operator->() { return kernels_.get(); }

  Buffer<float> wide(const Floats& x) {
    Buffer<float> buffer = kernels_->allocate_wide(x.size());
    kernels_->upload(buffer.all(), x);
    return buffer;
  }
  /// The numbers are those that 16 bits hold. `offset`: the pointer is that many elements off.
  Buffer<Real> numbers(const Floats& x, std::size_t offset = 0) {
    Buffer<Real> buffer = kernels_->allocate(x.size() + offset);
    const Buffer<float> there = wide(x);
    kernels_->narrow(buffer.part(offset, x.size()), there.all());
    return buffer;
  }
  Buffer<Token> tokens(const std::vector<Token>& ids) {
    Buffer<Token> buffer = kernels_->allocate_tokens(ids.size());
    kernels_->upload_tokens(buffer.all(), ids);
    return buffer;
  }
  Floats read(std::span<const float> x) {
    Floats result(x.size());
    kernels_->download(result, x);
    return result;
  }
  Floats read(std::span<const Real> x) {
    Buffer<float> there = kernels_->allocate_wide(x.size());
    kernels_->widen(there.all(), x);
    return read(std::as_const(there).all());
  }
  template <class Number>
  Floats read(const Buffer<Number>& x) {
    return read(x.all());
  }

 private:
  std::unique_ptr<Kernels<Real>> kernels_;
};

/// Makes the kernels under test, for sequences of this length and heads of this dimension.
template <class Real>
using MakeKernels = std::unique_ptr<Kernels<Real>> (*)(std::int64_t sequence,
                                                       std::int64_t head_dim);

template <class Real>
void check_numbers(MakeKernels<Real> make) {
  OnDevice<Real> gpu(make(8, 64));
  Floats x = uniform(1029, 1, 300.0F);
  for (const float value : {0.0F, -0.0F, 1e-6F, 65519.0F, 65520.0F, -1e30F, INFINITY})
    x.push_back(value);
  const Buffer<Real> there = gpu.numbers(x);
  CHECK(gpu.read(there) == as_rounded<Real>(x));
  CHECK(gpu.read(gpu.wide(x)) == x);
  CHECK(gpu.read(gpu->allocate(37)) == Floats(37, 0.0F));
  const Buffer<Real> nothing = gpu->allocate(0);
  CHECK(nothing.size() == 0);

  Buffer<float> sum = gpu.wide(uniform(515, 2));
  const Buffer<Real> more = gpu.numbers(uniform(515, 3));
  Floats wanted = gpu.read(sum);
  const Floats added = gpu.read(more);
  gpu->accumulate(sum.all(), more.all());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += added[i];
  CHECK(gpu.read(sum) == wanted);
}

/// Buffers count, scratch memory does not.
template <class Real>
void check_memory(MakeKernels<Real> make) {
  OnDevice<Real> gpu(make(64, 64));
  CHECK(gpu->allocated() == Bytes(0));
  auto x = gpu->allocate(64 * 64);
  const auto statistics = gpu->allocate_wide(64);
  const auto ids = gpu->allocate_tokens(10);
  auto dx = gpu->allocate(64 * 64), dw = gpu->allocate(64);
  const Bytes before = gpu->allocated();
  CHECK(before == Bytes(2 * 64 * 64 + 4 * 64 + 4 * 10 + 2 * 64 * 64 + 2 * 64));
  gpu->rmsnorm_backward(dx.all(), dw.all(), x.all(), x.all(), x.part(0, 64), statistics.all());
  gpu->copies(std::vector<CopyPiece<Real, Real>>{{dx.all(), x.all()}});
  CHECK(gpu->allocated() == before);
}

template <class Real>
void check_products(MakeKernels<Real> make) {
  OnDevice<Real> gpu(make(8, 64));
  const auto host = make_host_kernels<float>(8, 64);
  for (const char* layout : {"NT", "NN", "TN"})
    for (const bool accumulate : {false, true})
      for (const auto& [m, n, k] : {std::array{24, 40, 16}, std::array{5, 7, 9}}) {
        const GemmSizes sizes{m, n, k, layout, accumulate};
        const auto size = [](int rows, int columns) {
          return static_cast<std::size_t>(rows * columns);
        };
        const Floats a = as_rounded<Real>(uniform(size(m, k), 1));
        const Floats b = as_rounded<Real>(uniform(size(n, k), 2));
        Floats c = as_rounded<Real>(uniform(size(m, n), 3));
        Buffer<Real> result = gpu.numbers(c);
        gpu->gemm(result.all(), gpu.numbers(a).all(), gpu.numbers(b).all(), sizes);
        host->gemm(c, a, b, sizes);
        INFO(layout << (accumulate ? " +=" : " =") << " " << m << " " << n << " " << k);
        CHECK(relative_error(gpu.read(result), c) < unit_of<Real>);
      }
}

struct AttentionCase {
  std::int64_t batch, sequence, heads, kv_heads, head_dim;
  bool causal;
};

template <class Real>
void check_attention(MakeKernels<Real> make, const AttentionCase& c) {
  OnDevice<Real> gpu(make(c.sequence, c.head_dim));
  const auto host = make_host_kernels<float>(c.sequence, c.head_dim);
  const AttentionSizes sizes{c.batch, c.sequence, c.heads, c.kv_heads, c.head_dim, c.causal};
  const auto rows = static_cast<std::size_t>(c.batch * c.sequence * c.heads);
  const std::size_t size = rows * static_cast<std::size_t>(c.head_dim);
  const std::size_t kv = size / static_cast<std::size_t>(c.heads / c.kv_heads);
  const Floats q = as_rounded<Real>(uniform(size, 1)), k = as_rounded<Real>(uniform(kv, 2));
  const Floats v = as_rounded<Real>(uniform(kv, 3)), dout = as_rounded<Real>(uniform(size, 4));
  const Buffer<Real> gq = gpu.numbers(q), gk = gpu.numbers(k), gv = gpu.numbers(v);
  Buffer<Real> go = gpu->allocate(size), gdq = gpu->allocate(size);
  Buffer<Real> gdk = gpu->allocate(kv), gdv = gpu->allocate(kv);
  Buffer<float> glse = gpu->allocate_wide(rows);
  gpu->attention_forward(go.all(), glse.all(), gq.all(), gk.all(), gv.all(), sizes);
  gpu->attention_backward(gdq.all(), gdk.all(), gdv.all(), gpu.numbers(dout).all(), go.all(),
                          glse.all(), gq.all(), gk.all(), gv.all(), sizes);
  Floats o(size), lse(rows), dq(size), dk(kv), dv(kv);
  host->attention_forward(o, lse, q, k, v, sizes);
  host->attention_backward(dq, dk, dv, dout, o, lse, q, k, v, sizes);
  INFO(c.batch << " x " << c.sequence << ", " << c.heads << " heads of " << c.head_dim);
  CHECK(relative_error(gpu.read(glse), lse) < 1e-5);
  CHECK(relative_error(gpu.read(go), o) < unit_of<Real>);
  CHECK(relative_error(gpu.read(gdq), dq) < 2 * unit_of<Real>);
  CHECK(relative_error(gpu.read(gdk), dk) < 2 * unit_of<Real>);
  CHECK(relative_error(gpu.read(gdv), dv) < 2 * unit_of<Real>);
}

template <class Real>
void check_norm(MakeKernels<Real> make, std::size_t tokens, std::size_t width) {
  OnDevice<Real> gpu(make(8, 64));
  const auto host = make_host_kernels<float>(8, 64);
  const Floats x = as_rounded<Real>(uniform(tokens * width, 1));
  const Floats w = as_rounded<Real>(uniform(width, 2));
  const Floats dy = as_rounded<Real>(uniform(tokens * width, 3));
  const Buffer<Real> gx = gpu.numbers(x), gw = gpu.numbers(w), gdy = gpu.numbers(dy);
  Buffer<Real> gy = gpu->allocate(x.size()), gdx = gpu->allocate(x.size());
  Buffer<Real> gdw = gpu.numbers(uniform(width, 4));  // overwritten
  Buffer<float> grstd = gpu->allocate_wide(tokens);
  gpu->rmsnorm_forward(gy.all(), grstd.all(), gx.all(), gw.all());
  gpu->rmsnorm_backward(gdx.all(), gdw.all(), gdy.all(), gx.all(), gw.all(), grstd.all());
  Floats y(x.size()), rstd(tokens), dx(x.size()), dw(width);
  host->rmsnorm_forward(y, rstd, x, w);
  host->rmsnorm_backward(dx, dw, dy, x, w, rstd);
  INFO(tokens << " rows of " << width);
  CHECK(relative_error(gpu.read(grstd), rstd) < 1e-5);
  CHECK(relative_error(gpu.read(gy), y) < unit_of<Real>);
  CHECK(relative_error(gpu.read(gdx), dx) < unit_of<Real>);
  CHECK(relative_error(gpu.read(gdw), dw) < unit_of<Real>);
}

/// `offset`: pointers that are no multiple of 16 bytes.
template <class Real>
void check_elements(MakeKernels<Real> make, std::size_t size, std::size_t offset) {
  OnDevice<Real> gpu(make(8, 64));
  const auto host = make_host_kernels<float>(8, 64);
  const Floats a = as_rounded<Real>(uniform(size, 1, 4.0F));
  const Floats b = as_rounded<Real>(uniform(size, 2)), dy = as_rounded<Real>(uniform(size, 3));
  const Buffer<Real> ga = gpu.numbers(a, offset), gb = gpu.numbers(b, offset),
                     gdy = gpu.numbers(dy, offset);
  const auto part = [&](const Buffer<Real>& of) { return of.all().subspan(offset, size); };
  Buffer<Real> sum = gpu->allocate(size + offset), y = gpu->allocate(size + offset);
  Buffer<Real> dgate = gpu->allocate(size + offset), dup = gpu->allocate(size + offset);
  gpu->add(sum.part(offset, size), part(ga), part(gb));
  gpu->swiglu_forward(y.part(offset, size), part(ga), part(gb));
  gpu->swiglu_backward(dgate.part(offset, size), dup.part(offset, size), part(gdy), part(ga),
                       part(gb));
  Floats want_sum(size), want_y(size), want_dgate(size), want_dup(size);
  host->add(want_sum, a, b);
  host->swiglu_forward(want_y, a, b);
  host->swiglu_backward(want_dgate, want_dup, dy, a, b);
  CHECK(gpu.read(part(sum)) == as_rounded<Real>(want_sum));
  CHECK(relative_error(gpu.read(part(y)), want_y) < unit_of<Real>);
  CHECK(relative_error(gpu.read(part(dgate)), want_dgate) < unit_of<Real>);
  CHECK(relative_error(gpu.read(part(dup)), want_dup) < unit_of<Real>);
  gpu->zero(sum.part(offset, size));
  CHECK(gpu.read(part(sum)) == Floats(size, 0.0F));
}

template <class Real>
void check_rope(MakeKernels<Real> make) {
  constexpr std::int64_t sequence = 7, head_dim = 64, heads = 3;
  OnDevice<Real> gpu(make(sequence, head_dim));
  const auto host = make_host_kernels<float>(sequence, head_dim);
  const Floats x = as_rounded<Real>(uniform(2 * sequence * heads * head_dim, 1));
  for (const bool backward : {false, true}) {
    Buffer<Real> gx = gpu.numbers(x);
    Floats wanted = x;
    gpu->rope(gx.all(), heads, backward);
    host->rope(wanted, heads, backward);
    CHECK(relative_error(gpu.read(gx), wanted) < unit_of<Real>);
  }
}

/// Pieces of many sizes and places, each list twice: its table is written once.
template <class Real>
void check_copies(MakeKernels<Real> make) {
  OnDevice<Real> gpu(make(8, 64));
  const std::vector<std::size_t> sizes{64, 0, 1, 9000, 33, 0, 8, 17};
  const std::size_t total = 9123;
  Buffer<Real> from = gpu->allocate(total), to = gpu->allocate(total + 1);
  Buffer<float> wide = gpu->allocate_wide(total), wide_to = gpu->allocate_wide(total);
  std::vector<CopyPiece<Real, Real>> narrow;
  std::vector<CopyPiece<float, Real>> widening;
  std::vector<CopyPiece<float, float>> wides;
  std::size_t first = 0;
  for (const std::size_t size : sizes) {
    const auto source = std::as_const(from).all().subspan(first, size);
    narrow.push_back({to.part(first + 1, size), source});
    widening.push_back({wide.part(first, size), source});
    wides.push_back({wide_to.part(first, size), std::as_const(wide).all().subspan(first, size)});
    first += size;
  }
  REQUIRE(first == total);
  for (const std::uint64_t seed : {1U, 2U}) {
    const Floats x = as_rounded<Real>(uniform(total, seed));
    gpu->narrow(from.all(), gpu.wide(x).all());
    gpu->copies(narrow);
    gpu->copies_widening(widening);
    gpu->copies_wide(wides);
    CHECK(gpu.read(std::span<const Real>(to.part(1, total))) == x);
    CHECK(gpu.read(wide_to) == x);
  }
  gpu->copies({});

  const Floats other = as_rounded<Real>(uniform(total, 3));  // to the same place
  const Buffer<Real> elsewhere = gpu.numbers(other);
  first = 0;
  for (CopyPiece<Real, Real>& piece : narrow) {
    piece.from = elsewhere.all().subspan(first, piece.to.size());
    first += piece.to.size();
  }
  gpu->copies(narrow);
  CHECK(gpu.read(std::span<const Real>(to.part(1, total))) == other);
}

/// Rows of others are zeros and get no gradient; ids repeat, and their sum is rounded once.
template <class Real>
void check_embedding(MakeKernels<Real> make, std::size_t tokens, std::size_t width,
                     const VocabularyPart& part) {
  OnDevice<Real> gpu(make(8, 64));
  const auto host = make_host_kernels<float>(8, 64);
  std::vector<Token> ids;
  for (std::size_t t = 0; t < tokens; ++t) ids.push_back(static_cast<Token>(t * t % 11));
  const auto rows = static_cast<std::size_t>(part.size);
  const Floats table = as_rounded<Real>(uniform(rows * width, 1));
  const Floats dy = as_rounded<Real>(uniform(tokens * width, 2));
  Floats y(dy.size()), dtable = as_rounded<Real>(uniform(table.size(), 3));
  Floats between = dtable;  // and a row before and after it that nobody may touch
  between.insert(between.begin(), width, 7.0F);
  between.insert(between.end(), width, 7.0F);
  Buffer<Real> gy = gpu.numbers(uniform(dy.size(), 4)), gdtable = gpu.numbers(between);
  Buffer<Real> again = gpu.numbers(dtable);
  const Buffer<Token> gids = gpu.tokens(ids);
  const Buffer<Real> gdy = gpu.numbers(dy);
  gpu->embedding_forward(gy.all(), gpu.numbers(table).all(), gids.all(), part);
  gpu->embedding_backward(gdtable.part(width, dtable.size()), gdy.all(), gids.all(), part);
  gpu->embedding_backward(again.all(), gdy.all(), gids.all(), part);
  host->embedding_forward(y, table, ids, part);
  host->embedding_backward(dtable, dy, ids, part);
  INFO(tokens << " tokens of " << width << ", rows from " << part.first);
  CHECK(gpu.read(gy) == y);
  const Floats all = gpu.read(gdtable);
  const Floats rows_of_part(all.begin() + static_cast<std::ptrdiff_t>(width),
                            all.end() - static_cast<std::ptrdiff_t>(width));
  CHECK(relative_error(rows_of_part, dtable) < 0.51 * unit_of<Real>);
  CHECK(gpu.read(again) == rows_of_part);
  CHECK(Floats(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(width)) ==
        Floats(width, 7.0F));
  CHECK(Floats(all.end() - static_cast<std::ptrdiff_t>(width), all.end()) == Floats(width, 7.0F));
}

/// The vocabulary whole, and in two parts whose statistics are put together.
template <class Real>
void check_loss(MakeKernels<Real> make, std::size_t tokens, std::int64_t vocab) {
  OnDevice<Real> gpu(make(8, 64));
  const auto host = make_host_kernels<float>(8, 64);
  const auto width = static_cast<std::size_t>(vocab);
  const Floats logits = as_rounded<Real>(uniform(tokens * width, 1, 6.0F));
  std::vector<Token> targets;
  for (std::size_t t = 0; t < tokens; ++t) targets.push_back(static_cast<Token>(t * 7 % width));
  const Buffer<Token> gtargets = gpu.tokens(targets);
  Floats lse(tokens), target(tokens), sum{2.0F}, gradient = logits;
  const VocabularyPart all{0, vocab};
  host->loss_forward(lse, target, logits, targets, all);
  host->add_loss(sum, lse, target);
  host->loss_backward(gradient, lse, targets, all, 0.25F);

  const std::vector<VocabularyPart> parts{{0, vocab / 3}, {vocab / 3, vocab - vocab / 3}};
  const auto columns = [&](const Floats& of, const VocabularyPart& part) {
    Floats result;
    for (std::size_t i = 0; i < of.size(); ++i)
      if (part.has(static_cast<Token>(i % width))) result.push_back(of[i]);
    return result;
  };
  Floats most(tokens, -1e9F), targets_sum(tokens, 0.0F), sums(tokens, 0.0F);
  std::vector<Buffer<float>> lses;
  for (const VocabularyPart& part : parts) {
    Buffer<float> logit = gpu->allocate_wide(tokens);
    lses.push_back(gpu->allocate_wide(tokens));
    gpu->loss_forward(lses.back().all(), logit.all(), gpu.numbers(columns(logits, part)).all(),
                      gtargets.all(), part);
    const Floats of_part = gpu.read(lses.back()), logit_of_part = gpu.read(logit);
    for (std::size_t t = 0; t < tokens; ++t) {
      most[t] = std::max(most[t], of_part[t]);
      targets_sum[t] += logit_of_part[t];
    }
  }
  for (Buffer<float>& of_part : lses) {
    gpu->lse_to_sums(of_part.all(), of_part.all(), gpu.wide(most).all());
    const Floats some = gpu.read(of_part);
    for (std::size_t t = 0; t < tokens; ++t) sums[t] += some[t];
  }
  Buffer<float> glse = gpu->allocate_wide(tokens), gsum = gpu.wide({2.0F});
  gpu->sums_to_lse(glse.all(), gpu.wide(most).all(), gpu.wide(sums).all());
  gpu->add_loss(gsum.all(), glse.all(), gpu.wide(targets_sum).all());
  INFO(tokens << " tokens, vocabulary " << vocab);
  CHECK(relative_error(gpu.read(glse), lse) < 1e-6);
  CHECK(targets_sum == target);
  CHECK(relative_error(gpu.read(gsum), sum) < 1e-5);
  for (const VocabularyPart& part : parts) {
    Buffer<Real> of_part = gpu.numbers(columns(logits, part));
    gpu->loss_backward(of_part.all(), glse.all(), gtargets.all(), part, 0.25F);
    CHECK(relative_error(gpu.read(of_part), columns(gradient, part)) < unit_of<Real>);
  }
}

template <class Real>
void check_norm_of_gradients(MakeKernels<Real> make) {
  OnDevice<Real> gpu(make(8, 64));
  const auto host = make_host_kernels<float>(8, 64);
  std::vector<Floats> tensors;
  std::vector<Buffer<float>> there;
  std::vector<std::span<const float>> spans, there_spans;
  for (const std::size_t size : {70000U, 3U, 0U, 64U, 1025U}) {
    tensors.push_back(uniform(size, size + 1, 0.1F));
    there.push_back(gpu.wide(tensors.back()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    spans.emplace_back(tensors[i]);
    there_spans.push_back(std::as_const(there[i]).all());
  }
  const Floats weights{1.0F, 0.5F, 1.0F, 0.0F, 0.25F};
  Floats squares(5), sum(1), factor(1);
  Buffer<float> gsquares = gpu->allocate_wide(5), gsum = gpu->allocate_wide(1),
                gfactor = gpu->allocate_wide(1), gweights = gpu.wide(weights);
  host->sums_of_squares(squares, spans);
  host->weighted_sum(sum, squares, weights);
  for (int repetition = 0; repetition < 2; ++repetition) {
    gpu->sums_of_squares(gsquares.all(), there_spans);
    gpu->weighted_sum(gsum.all(), gsquares.all(), gweights.all());
    CHECK(relative_error(gpu.read(gsquares), squares) < 1e-6);
    CHECK(relative_error(gpu.read(gsum), sum) < 1e-6);
  }
  there_spans[3] = there_spans[4].first(64);  // as many elements of another tensor
  spans[3] = spans[4].first(64);
  gpu->sums_of_squares(gsquares.all(), there_spans);
  host->sums_of_squares(squares, spans);
  CHECK(relative_error(gpu.read(gsquares), squares) < 1e-6);
  for (const float largest : {1.0F, 1e3F}) {  // clipped, and not
    host->clip_factor(factor, sum, largest);
    gpu->clip_factor(gfactor.all(), gsum.all(), largest);
    CHECK((factor[0] == 1.0F) == (largest > 1.0F));
    CHECK(relative_error(gpu.read(gfactor), factor) < 1e-6);
    host->scale_by(tensors[0], factor);
    gpu->scale_by(there[0].all(), gfactor.all());
    CHECK(relative_error(gpu.read(there[0]), tensors[0]) < 1e-6);
  }
}

template <class Real>
void check_unscale(MakeKernels<Real> make) {
  OnDevice<Real> gpu(make(8, 64));
  for (const float odd : {1.0F, INFINITY, -INFINITY, std::nanf(""), 3e38F}) {
    Floats x = uniform(1031, 1);
    x[1030] = odd;
    Buffer<float> there = gpu.wide(x), found = gpu.wide({0.0F});
    gpu->unscale(there.all(), 2.0F, found.all());
    CHECK(gpu.read(found) == Floats{odd == 1.0F ? 0.0F : 1.0F});
    CHECK(gpu.read(there)[7] == 2.0F * x[7]);
  }
}

template <class Real>
void check_adamw(MakeKernels<Real> make) {
  OnDevice<Real> gpu(make(8, 64));
  const auto host = make_host_kernels<float>(8, 64);
  Floats p = uniform(1027, 1), m(p.size()), v(p.size());
  Buffer<float> gp = gpu.wide(p), gm = gpu.wide(m), gv = gpu.wide(v);
  AdamW how{.learning_rate = 1e-2, .weight_decay = 0.1};
  for (how.step = 1; how.step <= 3; ++how.step) {
    const Floats g = uniform(p.size(), 10 + static_cast<std::uint64_t>(how.step));
    host->adamw(p, m, v, g, how);
    gpu->adamw(gp.all(), gm.all(), gv.all(), gpu.wide(g).all(), how);
    CHECK(relative_error(gpu.read(gp), p) < 1e-5);
    CHECK(relative_error(gpu.read(gm), m) < 1e-6);
    CHECK(relative_error(gpu.read(gv), v) < 1e-6);
  }
}

/// What was uploaded may be changed at once; large tensors travel in pieces.
template <class Real>
void check_uploads(MakeKernels<Real> make) {
  OnDevice<Real> gpu(make(8, 64));
  const Floats x = uniform(1'300'001, 1);
  Buffer<float> there = gpu->allocate_wide(x.size());
  Floats host = x;
  gpu->upload(there.all(), host);
  host.assign(host.size(), 0.0F);
  CHECK((gpu.read(there) == x));
}

template <class Real>
struct KernelCase {
  const char* claim;
  std::function<void(MakeKernels<Real>)> check;
};

template <class Real>
std::vector<KernelCase<Real>> kernel_cases() {
  using Make = MakeKernels<Real>;
  return {{"numbers travel and are rounded to nearest even", check_numbers<Real>},
          {"what is uploaded may be changed at once", check_uploads<Real>},
          {"memory is counted as it is handed out", check_memory<Real>},
          {"products", check_products<Real>},
          {"attention",
           [](Make make) {
             for (const AttentionCase& c :
                  {AttentionCase{1, 130, 2, 1, 64, true}, AttentionCase{2, 33, 2, 2, 128, true},
                   AttentionCase{1, 70, 4, 2, 64, false}, AttentionCase{3, 16, 1, 1, 64, true}})
               check_attention<Real>(make, c);
           }},
          {"norms",
           [](Make make) {
             check_norm<Real>(make, 9, 64);
             check_norm<Real>(make, 5, 100);
             check_norm<Real>(make, 33, 31);
           }},
          {"sums and SwiGLU",
           [](Make make) {
             check_elements<Real>(make, 5 * 72, 0);
             check_elements<Real>(make, 2051, 0);
             check_elements<Real>(make, 100, 1);
           }},
          {"rotary positions", check_rope<Real>},
          {"copies of pieces, whatever their sizes, types and places", check_copies<Real>},
          {"the embedding and its gradient, also of a part of the rows",
           [](Make make) {
             for (const VocabularyPart& part : {VocabularyPart{0, 11}, VocabularyPart{4, 5}}) {
               check_embedding<Real>(make, 5, 64, part);
               check_embedding<Real>(make, 290, 33, part);
               check_embedding<Real>(make, 40, 2072, part);
             }
           }},
          {"the loss and its gradient, also of cut rows",
           [](Make make) {
             check_loss<Real>(make, 5, 64);
             check_loss<Real>(make, 37, 301);
           }},
          {"the norm of many gradients, its clipping and scaling", check_norm_of_gradients<Real>},
          {"gradients that are not finite are found", check_unscale<Real>},
          {"AdamW", check_adamw<Real>}};
}

}  // namespace stepcast::validate
