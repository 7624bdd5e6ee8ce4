#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it gives the names of CUDA.
#include <catch2/catch.hpp>

#include "tests/calibrate/kernel_tensor.hpp"

using namespace stepcast::calibrate;
using namespace stepcast::calibrate::cuda_kernels;
using reference::relative_error;
using reference::Row;
using reference::View;

TEST_CASE("AdamW agrees with the reference") {
  emulated::device = {};
  const std::int64_t n = 1030;
  const ElementType gradient_type = GENERATE(ElementType::fp32, ElementType::bf16);
  const bool rounded = GENERATE(true, false), misaligned = GENERATE(true, false);
  Tensor gradient = Tensor::random(gradient_type, n, 1, misaligned);
  Tensor w = Tensor::random(ElementType::fp32, n, 2), m = Tensor::random(ElementType::fp32, n, 3);
  Row squares = Tensor::random(ElementType::fp32, n, 4).values();
  for (double& x : squares) x *= x;
  Tensor v = Tensor::of(ElementType::fp32, squares), parameters(ElementType::bf16, n);
  const Row gs = gradient.values(), ws = w.values(), ms = m.values(), vs = v.values();
  adamw({.learning_rate = 0.01F,
         .beta1 = 0.9F,
         .beta2 = 0.95F,
         .epsilon = 1e-8F,
         .weight_decay = 0.1F,
         .step = 3,
         .gradient_scale = 0.5F},
        {.gradient = gradient.data(),
         .gradient_type = gradient_type,
         .master = w.floats(),
         .first_moment = m.floats(),
         .second_moment = v.floats(),
         .parameters = rounded ? parameters.data() : nullptr},
        n, nullptr);
  Row want_w, want_m, want_v;
  for (std::size_t i = 0; i < gs.size(); ++i) {
    const auto after = reference::adamw({.learning_rate = 0.01,
                                         .beta1 = 0.9,
                                         .beta2 = 0.95,
                                         .epsilon = 1e-8,
                                         .weight_decay = 0.1,
                                         .step = 3},
                                        {ws[i], ms[i], vs[i]}, 0.5 * gs[i]);
    want_w.push_back(after.weight);
    want_m.push_back(after.first_moment);
    want_v.push_back(after.second_moment);
  }
  CHECK(relative_error(w.values(), want_w) < 1e-5);
  CHECK(relative_error(m.values(), want_m) < 1e-5);
  CHECK(relative_error(v.values(), want_v) < 1e-5);
  if (rounded) CHECK(relative_error(parameters.values(), want_w) < tolerance_of(ElementType::bf16));
}

TEST_CASE("the sums of squares take every element of their tensors once") {
  emulated::device = {};
  emulated::device.last_warp_first = GENERATE(false, true);
  const bool misaligned = GENERATE(false, true);
  const ElementType type = GENERATE(ElementType::bf16, ElementType::fp32);
  std::vector<Tensor> tensors;
  std::vector<SquaresPiece> pieces;
  for (const std::int64_t n : {0, 3, 65536 + 20011, 0, 65536, 8}) {
    tensors.push_back(Tensor::random(type, n, pieces.size() + 1, misaligned));
    pieces.push_back({.tensor = tensors.back().data(), .elements = n});
  }
  const std::int64_t blocks = number_blocks(std::span(pieces));
  CHECK(blocks == 0 + 1 + 2 + 0 + 1 + 1);
  Tensor partial(ElementType::fp32, blocks), results(ElementType::fp32, 6);
  sums_of_squares(type, {pieces.data(), 6, blocks}, partial.floats(), results.floats(), nullptr);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(results.values()[i] ==
          Approx(reference::sum_of_squares(tensors[i].values())).epsilon(1e-5));
}

TEST_CASE("tensors go into a flat buffer and come back, whatever their size, type and place") {
  emulated::device = {};
  const auto [kind, flat_kind] = GENERATE(std::pair{ElementType::fp16, ElementType::fp16},
                                          std::pair{ElementType::fp32, ElementType::fp32},
                                          std::pair{ElementType::bf16, ElementType::fp32});
  std::vector<Tensor> tensors;
  Row joined;
  for (const std::int64_t n : {0, 20000, 1, 0, 8192, 33, 0}) {
    tensors.push_back(Tensor::random(kind, n, tensors.size() + 1));
    const Row values = tensors.back().values();
    joined.insert(joined.end(), values.begin(), values.end());
  }
  const auto size = static_cast<std::int64_t>(joined.size());
  Tensor flat(flat_kind, size), back(kind, size);
  std::vector<CopyPiece> in, out;
  std::int64_t first = 0;
  for (Tensor& tensor : tensors) {
    const auto n = static_cast<std::int64_t>(tensor.values().size());
    const auto place = [&](Tensor& of, ElementType type) {
      return static_cast<char*>(of.data()) + first * static_cast<std::int64_t>(bytes_of(type));
    };
    in.push_back({.to = place(flat, flat_kind), .from = tensor.data(), .elements = n});
    out.push_back({.to = place(back, kind), .from = place(flat, flat_kind), .elements = n});
    first += n;
  }
  const std::int64_t blocks = number_blocks(std::span(in));
  CHECK(blocks == 3 + 1 + 1 + 1);
  number_blocks(std::span(out));
  copies(kind, flat_kind, {in.data(), 7, blocks}, nullptr);
  CHECK(flat.values() == joined);
  copies(flat_kind, kind, {out.data(), 7, blocks}, nullptr);
  CHECK(back.values() == joined);
}
