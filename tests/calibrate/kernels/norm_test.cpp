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

TEST_CASE("the norm kernels agree with the reference") {
  // In packs; a width without packs; more rows than blocks; wider than 512 threads of a pack each.
  const Rows shape = GENERATE(Rows{ElementType::bf16, 3, 256}, Rows{ElementType::fp16, 9, 100},
                              Rows{ElementType::fp32, 20, 64}, Rows{ElementType::fp32, 2, 2200});
  emulated::device = {};
  emulated::device.last_warp_first = GENERATE(false, true);
  const std::int64_t n = shape.rows * shape.width;
  const float epsilon = 1e-5F;
  Tensor x = Tensor::random(shape.type, n, 1), weight = Tensor::random(shape.type, shape.width, 2);
  Tensor bias = Tensor::random(shape.type, shape.width, 3), dy = Tensor::random(shape.type, n, 4);
  Tensor rms(shape.type, n), layer(shape.type, n), rms_dx(shape.type, n), layer_dx(shape.type, n);
  Tensor mean(ElementType::fp32, shape.rows), inverse(ElementType::fp32, shape.rows);
  Tensor dweight(ElementType::fp32, shape.width), layer_dweight(ElementType::fp32, shape.width);
  Tensor dbias(ElementType::fp32, shape.width);
  Tensor workspace(ElementType::fp32, static_cast<std::int64_t>(norm_workspace_bytes(shape) / 4));

  rmsnorm_forward(shape, x.data(), weight.data(), epsilon, rms.data(), inverse.floats(), nullptr);
  NormBackward backward{.x = x.data(),
                        .weight = weight.data(),
                        .dy = dy.data(),
                        .inverse = inverse.floats(),
                        .dx = rms_dx.data(),
                        .dweight = dweight.floats(),
                        .workspace = workspace.floats()};
  rmsnorm_backward(shape, backward, nullptr);
  layernorm_forward(shape, x.data(), weight.data(), bias.data(), epsilon, layer.data(),
                    mean.floats(), inverse.floats(), nullptr);
  backward.mean = mean.floats();
  backward.dx = layer_dx.data();
  backward.dweight = layer_dweight.floats();
  backward.dbias = dbias.floats();
  layernorm_backward(shape, backward, nullptr);

  const Row xs = x.values(), ws = weight.values(), bs = bias.values(), dys = dy.values();
  Row want_rms, want_layer, want_rms_dx, want_layer_dx;
  Row want_dweight(ws.size()), want_layer_dweight(ws.size()), want_dbias(ws.size());
  const auto append = [](Row& to, const Row& row) { to.insert(to.end(), row.begin(), row.end()); };
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const View x_row = row_of(xs, r, shape.width), dy_row = row_of(dys, r, shape.width);
    append(want_rms, reference::rmsnorm(x_row, ws, epsilon));
    append(want_layer, reference::layernorm(x_row, ws, bs, epsilon));
    const auto of_rms = reference::rmsnorm_gradients(x_row, ws, dy_row, epsilon);
    const auto of_layer = reference::layernorm_gradients(x_row, ws, dy_row, epsilon);
    append(want_rms_dx, of_rms.dx);
    append(want_layer_dx, of_layer.dx);
    for (std::size_t i = 0; i < ws.size(); ++i) {
      want_dweight[i] += of_rms.dweight[i];
      want_layer_dweight[i] += of_layer.dweight[i];
      want_dbias[i] += of_layer.dbias[i];
    }
  }
  const double tolerance = tolerance_of(shape.type);
  CHECK(relative_error(rms.values(), want_rms) < tolerance);
  CHECK(relative_error(layer.values(), want_layer) < tolerance);
  CHECK(relative_error(rms_dx.values(), want_rms_dx) < tolerance);
  CHECK(relative_error(layer_dx.values(), want_layer_dx) < tolerance);
  CHECK(relative_error(dweight.values(), want_dweight) < 1e-5);
  CHECK(relative_error(layer_dweight.values(), want_layer_dweight) < 1e-5);
  CHECK(relative_error(dbias.values(), want_dbias) < 1e-5);
}
