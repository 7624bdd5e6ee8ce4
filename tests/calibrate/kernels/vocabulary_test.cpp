#include "tests/calibrate/emulated_cuda.hpp"
// It comes first: it gives the names of CUDA.
#include <catch2/catch.hpp>

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
  emulated::device.last_warp_first = GENERATE(false, true);
  const Rows shape = GENERATE(Rows{ElementType::bf16, 6, 64}, Rows{ElementType::fp16, 6, 33},
                              Rows{ElementType::fp32, 300, 8}, Rows{ElementType::bf16, 9, 2200});
  const VocabularyPart part = GENERATE(VocabularyPart{0, 5}, VocabularyPart{2, 2});
  std::vector<std::int32_t> ids{4, 0, 4, 2, 4, 1};
  while (static_cast<std::int64_t>(ids.size()) < shape.rows)
    ids.push_back(static_cast<std::int32_t>(ids.size() * ids.size() % 5));
  Tensor table = Tensor::random(shape.type, part.size * shape.width, 1);
  Tensor dy = Tensor::random(shape.type, shape.rows * shape.width, 2);
  Tensor y(shape.type, shape.rows * shape.width);
  Tensor d_table = Tensor::random(shape.type, part.size * shape.width, 3);
  const Row before = d_table.values();
  embedding_forward(shape, part, table.data(), ids.data(), y.data(), nullptr);
  embedding_backward(shape, part, ids.data(), dy.data(), d_table.data(), nullptr);
  const Row rows = table.values(), ys = y.values(), dys = dy.values(), gradients = d_table.values();
  for (std::int64_t token = 0; token < shape.rows; ++token) {
    const std::int64_t row = ids[static_cast<std::size_t>(token)] - part.first;
    const View got = row_of(ys, token, shape.width);
    if (row >= 0 && row < part.size)
      CHECK(relative_error(got, row_of(rows, row, shape.width)) == 0);
    else
      CHECK(relative_error(got, Row(got.size(), 0.0)) == 0);
  }
  for (std::int64_t row = 0; row < part.size; ++row) {
    Row want = reference::embedding_gradient(ids, dys, shape.width, part.first + row);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += row_of(before, row, shape.width)[i];
    // Rounded once: half a unit of the last place of the largest.
    CHECK(relative_error(row_of(gradients, row, shape.width), want) <
          0.51 * tolerance_of(shape.type));
  }
}

TEST_CASE("the loss and its gradient agree with the reference, of whole rows and of a part") {
  emulated::device = {};
  emulated::device.last_warp_first = GENERATE(false, true);
  const Rows shape = GENERATE(Rows{ElementType::bf16, 3, 1000}, Rows{ElementType::fp32, 2, 5001},
                              Rows{ElementType::fp16, 2, 7});
  const std::int64_t first = GENERATE(0, 3);
  const std::vector<std::int32_t> targets{5, 0, 6};  // 0 is another rank's where first is 3
  const std::int64_t n = shape.rows * shape.width;
  Tensor logits = Tensor::random(shape.type, n, 1);
  Tensor lse(ElementType::fp32, shape.rows), target(ElementType::fp32, shape.rows);
  const Row before = logits.values();
  loss_forward(shape, first, logits.data(), targets.data(), lse.floats(), target.floats(), nullptr);
  loss_backward(shape, first, logits.data(), targets.data(), lse.floats(), 4.0F, nullptr);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const auto row = static_cast<std::size_t>(r);
    const std::int64_t column = targets[row] - first;
    const View x = row_of(before, r, shape.width);
    auto want = reference::cross_entropy(x, std::max<std::int64_t>(column, 0));
    const double logit = x[static_cast<std::size_t>(std::max<std::int64_t>(column, 0))];
    if (column < 0) want.gradient[0] += 1.0;
    for (double& slope : want.gradient) slope *= 4.0;
    CHECK(lse.values()[row] == Approx(want.loss + logit).epsilon(1e-5));
    CHECK(target.values()[row] == (column < 0 ? 0.0 : logit));
    CHECK(relative_error(row_of(logits.values(), r, shape.width), want.gradient) <
          tolerance_of(shape.type));
  }
}

TEST_CASE("columns masked by minus infinity take no part in the loss") {
  emulated::device = {};
  Row values(3000, -std::numeric_limits<double>::infinity());  // whole threads see nothing else
  values[1] = 2.0;
  values[7] = 2.0;
  Tensor logits = Tensor::of(ElementType::fp32, values);
  float lse = 0, logit = 0, sum = 1;
  const std::int32_t target = 7;
  const Rows shape{ElementType::fp32, 1, 3000};
  loss_forward(shape, 0, logits.data(), &target, &lse, &logit, nullptr);
  add_loss(1, &lse, &logit, &sum, nullptr);
  loss_backward(shape, 0, logits.data(), &target, &lse, 1.0F, nullptr);
  CHECK(sum == Approx(1.0 + std::log(2.0)));
  Row want(3000, 0.0);
  want[1] = 0.5;
  want[7] = -0.5;
  CHECK(relative_error(logits.values(), want) < 1e-5);
}
