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

const ElementType all_types[] = {ElementType::bf16, ElementType::fp16, ElementType::fp32};

}  // namespace

TEST_CASE("activations, residual, casts and fills agree with the reference, tails included") {
  emulated::device = {};
  const ElementType type = all_types[GENERATE(0, 1, 2)];
  const bool misaligned = GENERATE(false, true);
  const std::int64_t n = GENERATE(1, 2051);
  Tensor a = Tensor::random(type, n, 1, misaligned), b = Tensor::random(type, n, 2, misaligned);
  Tensor gelu(type, n, misaligned), gelu_dx(type, n, misaligned), sum(type, n, misaligned);
  Tensor filled(type, n, misaligned);
  gelu_forward(type, n, a.data(), gelu.data(), nullptr);
  gelu_backward(type, n, a.data(), b.data(), gelu_dx.data(), nullptr);
  residual_add(type, n, a.data(), b.data(), sum.data(), nullptr);
  fill(type, n, 0.5F, filled.data(), nullptr);
  const Row as = a.values(), bs = b.values();
  Row want_gelu, want_dx, want_sum;
  for (std::size_t i = 0; i < as.size(); ++i) {
    want_gelu.push_back(reference::gelu(as[i]));
    want_dx.push_back(bs[i] * reference::gelu_gradient(as[i]));
    want_sum.push_back(as[i] + bs[i]);
  }
  CHECK(relative_error(gelu.values(), want_gelu) < tolerance_of(type));
  CHECK(relative_error(gelu_dx.values(), want_dx) < tolerance_of(type));
  CHECK(relative_error(sum.values(), want_sum) < tolerance_of(type));
  CHECK(filled.values() == Row(as.size(), 0.5));

  for (const ElementType to : all_types) {
    Tensor result(to, n, misaligned);
    cast(type, to, n, a.data(), result.data(), nullptr);
    CHECK(relative_error(result.values(), as) < tolerance_of(to));
  }
}

TEST_CASE("a copy moves every byte and none beside it") {
  emulated::device = {};
  const std::size_t bytes = GENERATE(0U, 1U, 16U, 5000U);
  const std::size_t offset = GENERATE(0U, 3U);
  std::vector<unsigned char> from(bytes + 16), to(bytes + 16, 7);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 31 + 1);
  copy(bytes, from.data() + offset, to.data() + offset, nullptr);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool inside = i >= offset && i < offset + bytes;
    REQUIRE(to[i] == (inside ? from[i] : 7));
  }
}

TEST_CASE("SwiGLU agrees with the reference, of rows side by side and apart") {
  emulated::device = {};
  const Rows shape = GENERATE(Rows{ElementType::bf16, 5, 72}, Rows{ElementType::fp16, 3, 31},
                              Rows{ElementType::fp32, 7, 20});
  const std::int64_t n = shape.rows * shape.width;
  Tensor gate_up = Tensor::random(shape.type, 2 * n, 1), dy = Tensor::random(shape.type, n, 2);
  Tensor y(shape.type, n), d_gate_up(shape.type, 2 * n);
  const GateUp<const void*> x = side_by_side(shape, static_cast<const void*>(gate_up.data()));
  const GateUp<void*> dx = side_by_side(shape, d_gate_up.data());
  swiglu_forward(shape, x, y.data(), nullptr);
  swiglu_backward(shape, x, dy.data(), dx, nullptr);
  const Row in = gate_up.values(), dys = dy.values();
  Row want, want_gradient(in.size());
  for (std::size_t r = 0; r < static_cast<std::size_t>(shape.rows); ++r)
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.width); ++i) {
      const auto width = static_cast<std::size_t>(shape.width);
      const std::size_t gate = r * 2 * width + i, up = gate + width;
      want.push_back(reference::swiglu(in[gate], in[up]));
      const auto gradients = reference::swiglu_gradients(in[gate], in[up], dys[r * width + i]);
      want_gradient[gate] = gradients.gate;
      want_gradient[up] = gradients.up;
    }
  CHECK(relative_error(y.values(), want) < tolerance_of(shape.type));
  CHECK(relative_error(d_gate_up.values(), want_gradient) < tolerance_of(shape.type));

  const auto half = [&](const Row& rows, std::int64_t which) {
    Row result;
    for (std::int64_t i = 0; i < n; ++i)
      result.push_back(rows[static_cast<std::size_t>(i + (i / shape.width + which) * shape.width)]);
    return result;
  };
  Tensor gate = Tensor::of(shape.type, half(in, 0)), up = Tensor::of(shape.type, half(in, 1));
  Tensor apart(shape.type, n), d_gate(shape.type, n), d_up(shape.type, n);
  swiglu_forward(shape, {gate.data(), up.data(), shape.width}, apart.data(), nullptr);
  swiglu_backward(shape, {gate.data(), up.data(), shape.width}, dy.data(),
                  {d_gate.data(), d_up.data(), shape.width}, nullptr);
  CHECK(apart.values() == y.values());
  CHECK(d_gate.values() == half(d_gate_up.values(), 0));
  CHECK(d_up.values() == half(d_gate_up.values(), 1));
}

TEST_CASE("gradients add up and are scaled in fp32, and what is not finite is found") {
  emulated::device = {};
  const bool misaligned = GENERATE(false, true);
  const std::int64_t n = 1027;
  Tensor x = Tensor::random(ElementType::bf16, n, 1, misaligned);
  Tensor sum = Tensor::random(ElementType::fp32, n, 2, misaligned);
  Row want = sum.values();
  const Row more = x.values();
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = 0.25 * (want[i] + more[i]);
  accumulate(ElementType::bf16, n, x.data(), sum.floats(), nullptr);
  float half = 0.5F, found = 0;
  scale_by(n, &half, sum.floats(), nullptr);
  unscale(n, 0.5F, sum.floats(), &found, nullptr);
  CHECK(relative_error(sum.values(), want) < 1e-6);
  CHECK(found == 0);
  sum.floats()[n - 1] = GENERATE(INFINITY, -INFINITY, NAN);
  unscale(n, 0.5F, sum.floats(), &found, nullptr);
  CHECK(found == 1);
}

TEST_CASE("RoPE agrees with the reference, also within a wider token") {
  emulated::device = {};
  const ElementType type = all_types[GENERATE(0, 2)];
  const std::int64_t extra = GENERATE(0, 24), head_dim = GENERATE(12, 64);
  RopeShape shape{.type = type, .batch = 2, .sequence = 5, .heads = 3, .head_dim = head_dim};
  shape.token_stride = shape.heads * head_dim + extra;
  const std::int64_t n = shape.batch * shape.sequence * shape.token_stride;
  const std::int64_t angles = shape.sequence * head_dim / 2;
  Tensor x = Tensor::random(type, n, 1);
  Tensor cosines(ElementType::fp32, angles), sines(ElementType::fp32, angles);
  rope_table(shape.sequence, head_dim, 1e4F, cosines.floats(), sines.floats(), nullptr);
  const Row in = x.values();
  const Pass pass = GENERATE(Pass::forward, Pass::backward);
  rope(shape, pass, x.data(), cosines.floats(), sines.floats(), x.data(), nullptr);
  Row want = in;
  for (std::int64_t token = 0; token < shape.batch * shape.sequence; ++token)
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t first = token * shape.token_stride + head * head_dim;
      const View before =
          View(in).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(head_dim));
      const Row turned =
          reference::rope(before, token % shape.sequence, 1e4, pass == Pass::forward ? 1 : -1);
      std::copy(turned.begin(), turned.end(), want.begin() + first);
    }
  CHECK(relative_error(x.values(), want) < tolerance_of(type));
}
