#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it stands for what the kernels include.
#include <catch2/catch.hpp>

#include "calibrate/cuda_kernels_optimizer.cu"
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

TEST_CASE("the sum of squares takes every element once") {
  emulated::device = {};
  emulated::device.last_warp_first = GENERATE(false, true);
  const std::int64_t n = GENERATE(3, 20011);
  const bool misaligned = GENERATE(false, true);
  Tensor x = Tensor::random(ElementType::bf16, n, 1, misaligned), result(ElementType::fp32, 1);
  Tensor workspace(ElementType::fp32,
                   static_cast<std::int64_t>(sum_of_squares_workspace_bytes() / 4));
  sum_of_squares(ElementType::bf16, n, x.data(), workspace.floats(), result.floats(), nullptr);
  CHECK(result.values()[0] == Approx(reference::sum_of_squares(x.values())).epsilon(1e-5));
}

TEST_CASE("tensors go into a flat buffer and come back, whatever their size and place") {
  emulated::device = {};
  const std::vector<std::int64_t> sizes{0, 40000, 2, 0, 16384, 33, 0};
  std::vector<std::vector<unsigned char>> tensors;
  std::vector<FlatPiece> pieces;
  std::int64_t offset = 0;
  for (const std::int64_t size : sizes) {
    tensors.emplace_back(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < tensors.back().size(); ++i)
      tensors.back()[i] = static_cast<unsigned char>(i * 7 + tensors.size());
    pieces.push_back({.tensor = tensors.back().data(), .offset = offset, .bytes = size});
    offset += size;
  }
  const auto before = tensors;
  std::vector<unsigned char> flat(static_cast<std::size_t>(offset));
  const std::int64_t blocks = number_blocks(pieces);
  CHECK(blocks == 3 + 1 + 1 + 1);
  const auto num_pieces = static_cast<std::int64_t>(pieces.size());
  flat_copy(FlatDirection::copy_in, pieces.data(), num_pieces, blocks, flat.data(), nullptr);
  std::vector<unsigned char> joined;
  for (const auto& tensor : before) joined.insert(joined.end(), tensor.begin(), tensor.end());
  CHECK(flat == joined);
  for (auto& tensor : tensors)
    std::fill(tensor.begin(), tensor.end(), static_cast<unsigned char>(0));
  flat_copy(FlatDirection::copy_out, pieces.data(), num_pieces, blocks, flat.data(), nullptr);
  CHECK(tensors == before);
}
