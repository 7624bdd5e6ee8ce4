#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it stands for what the kernels include.
#include <catch2/catch.hpp>

#include "calibrate/cuda_kernels_vocabulary.cu"
#include "tests/calibrate/kernel_tensor.hpp"

using namespace stepcast::calibrate;
using namespace stepcast::calibrate::cuda_kernels;
using reference::relative_error;
using reference::Row;
using reference::View;

namespace {

View row_of(const Row& tensor, std::int64_t row, std::int64_t width) {
  return View(tensor).subspan(static_cast<std::size_t>(row * width),
                              static_cast<std::size_t>(width));
}

}  // namespace

TEST_CASE("the embedding reads its rows and adds their gradients") {
  emulated::device = {};
  const Rows shape = GENERATE(Rows{ElementType::bf16, 6, 64}, Rows{ElementType::fp16, 6, 33});
  const std::vector<std::int64_t> ids{4, 0, 4, 2, 4, 1};
  const std::int64_t vocabulary = 5;
  Tensor table = Tensor::random(shape.type, vocabulary * shape.width, 1);
  Tensor dy = Tensor::random(shape.type, shape.rows * shape.width, 2);
  Tensor y(shape.type, shape.rows * shape.width);
  Tensor d_table =
      Tensor::of(ElementType::fp32, Row(static_cast<std::size_t>(vocabulary * shape.width), 0.0));
  embedding_forward(shape, table.data(), ids.data(), y.data(), nullptr);
  embedding_backward(shape, ids.data(), dy.data(), d_table.floats(), nullptr);
  const Row rows = table.values(), ys = y.values(), dys = dy.values(), gradients = d_table.values();
  for (std::int64_t token = 0; token < shape.rows; ++token)
    CHECK(relative_error(row_of(ys, token, shape.width),
                         row_of(rows, ids[static_cast<std::size_t>(token)], shape.width)) == 0);
  for (std::int64_t id = 0; id < vocabulary; ++id)
    CHECK(relative_error(row_of(gradients, id, shape.width),
                         reference::embedding_gradient(ids, dys, shape.width, id)) < 1e-6);
}

TEST_CASE("the loss and its gradient agree with the reference") {
  emulated::device = {};
  emulated::device.last_warp_first = GENERATE(false, true);
  const bool in_place = GENERATE(false, true);
  const Rows shape = GENERATE(Rows{ElementType::bf16, 3, 1000}, Rows{ElementType::fp32, 2, 5001},
                              Rows{ElementType::fp16, 2, 7});
  const std::vector<std::int64_t> targets{5, 0, 6};
  const std::int64_t n = shape.rows * shape.width;
  Tensor logits = Tensor::random(shape.type, n, 1);
  Tensor gradients(shape.type, n), losses(ElementType::fp32, shape.rows);
  const Row before = logits.values();
  Tensor& to = in_place ? logits : gradients;
  cross_entropy(shape, logits.data(), targets.data(), 4.0F, losses.floats(), to.data(), nullptr);
  const Row got = to.values(), got_losses = losses.values();
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const auto row = static_cast<std::size_t>(r);
    auto want = reference::cross_entropy(row_of(before, r, shape.width), targets[row]);
    for (double& x : want.gradient) x *= 4.0;
    CHECK(got_losses[row] == Approx(want.loss).epsilon(1e-5));
    CHECK(relative_error(row_of(got, r, shape.width), want.gradient) < tolerance_of(shape.type));
  }
}

TEST_CASE("columns masked by minus infinity take no part in the loss") {
  emulated::device = {};
  Row values(3000, -std::numeric_limits<double>::infinity());  // whole threads see nothing else
  values[1] = 2.0;
  values[7] = 2.0;
  Tensor logits = Tensor::of(ElementType::fp32, values);
  Tensor losses(ElementType::fp32, 1);
  const std::int64_t target = 7;
  cross_entropy({ElementType::fp32, 1, 3000}, logits.data(), &target, 1.0F, losses.floats(),
                logits.data(), nullptr);
  CHECK(losses.values()[0] == Approx(std::log(2.0)));
  Row want(3000, 0.0);
  want[1] = 0.5;
  want[7] = -0.5;
  CHECK(relative_error(logits.values(), want) < 1e-5);
}
