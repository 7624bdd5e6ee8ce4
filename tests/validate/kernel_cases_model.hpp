// Claims about the trainer's kernels of a GPU that a model is made of: see kernel_cases.hpp.
#pragma once

#include <array>

#include "tests/validate/on_device.hpp"

namespace stepcast::validate {

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

}  // namespace stepcast::validate
