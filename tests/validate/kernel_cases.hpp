// Claims about the trainer's kernels of a GPU: each does what the host's do in fp32 on the same
// numbers, up to the rounding of its results. For emulated kernels and for those of a real GPU.
#pragma once

#include <functional>

#include "tests/validate/kernel_cases_model.hpp"

namespace stepcast::validate {

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
