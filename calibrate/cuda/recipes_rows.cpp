// Kernels of whole rows: norms, rope, activations.
#include "calibrate/cuda/recipes.hpp"
#include "calibrate/host/reference.hpp"

namespace stepcast::calibrate::recipes {
namespace {

constexpr float epsilon = 1e-5F;

}  // namespace

/// tensors: x, weight, y, inverse
Recipe rmsnorm(const Shape& s) {
  return {.tensors = {s.input(s.size()), s.input(s.width), s.result(s.size()), floats(s.tokens)},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::rmsnorm_forward(s.rows(), t[0], t[1], epsilon, t[2], as_floats(t[3]),
                                              stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            return {{2, host::reference_rmsnorm(v[0], v[1], static_cast<double>(epsilon))}};
          }};
}

/// tensors: x, weight, dy, dx, dweight, inverse, y, scratch
Recipe rmsnorm_gradient(const Shape& s) {
  return {.tensors = {s.input(s.size()), s.input(s.width), s.input(s.size()), s.result(s.size()),
                      floats(s.width), floats(s.tokens), s.result(s.size()),
                      scratch(cuda_kernels::norm_workspace_bytes(s.rows()))},
          .prepare =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::rmsnorm_forward(s.rows(), t[0], t[1], epsilon, t[6], as_floats(t[5]),
                                              stream);
              },
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::rmsnorm_backward(s.rows(),
                                               {.x = t[0],
                                                .weight = t[1],
                                                .dy = t[2],
                                                .inverse = as_floats(t[5]),
                                                .dx = t[3],
                                                .dweight = as_floats(t[4]),
                                                .workspace = as_floats(t[7])},
                                               stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            const auto g =
                host::reference_rmsnorm_backward(v[2], v[0], v[1], static_cast<double>(epsilon));
            return {{3, g.dx}, {4, g.dw}};
          }};
}

/// tensors: x, weight, bias, y, mean, inverse
Recipe layernorm(const Shape& s) {
  return {.tensors = {s.input(s.size()), s.input(s.width), s.input(s.width), s.result(s.size()),
                      floats(s.tokens), floats(s.tokens)},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::layernorm_forward(s.rows(), t[0], t[1], t[2], epsilon, t[3],
                                                as_floats(t[4]), as_floats(t[5]), stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            return {{3, host::reference_layernorm(v[0], v[1], v[2], static_cast<double>(epsilon))}};
          }};
}

/// tensors: x, weight, bias, dy, dx, dweight, dbias, mean, inverse, y, scratch
Recipe layernorm_gradient(const Shape& s) {
  return {.tensors = {s.input(s.size()), s.input(s.width), s.input(s.width), s.input(s.size()),
                      s.result(s.size()), floats(s.width), floats(s.width), floats(s.tokens),
                      floats(s.tokens), s.result(s.size()),
                      scratch(cuda_kernels::norm_workspace_bytes(s.rows()))},
          .prepare =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::layernorm_forward(s.rows(), t[0], t[1], t[2], epsilon, t[9],
                                                as_floats(t[7]), as_floats(t[8]), stream);
              },
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::layernorm_backward(s.rows(),
                                                 {.x = t[0],
                                                  .weight = t[1],
                                                  .dy = t[3],
                                                  .mean = as_floats(t[7]),
                                                  .inverse = as_floats(t[8]),
                                                  .dx = t[4],
                                                  .dweight = as_floats(t[5]),
                                                  .dbias = as_floats(t[6]),
                                                  .workspace = as_floats(t[10])},
                                                 stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            const auto g =
                host::reference_layernorm_backward(v[3], v[0], v[1], static_cast<double>(epsilon));
            return {{4, g.dx}, {5, g.dw}, {6, g.db}};
          }};
}

namespace {

/// A task names no head: 128 elements as in Llama, else 64, else one head.
std::int64_t head_dim_of(std::int64_t width) {
  if (width % 2 != 0) throw Unsupported("rope turns pairs: its width is even");
  return width % 128 == 0 ? 128 : width % 64 == 0 ? 64 : width;
}

}  // namespace

/// tensors: x, y, cosines, sines
Recipe rope(const Shape& s, bool backward) {
  const std::int64_t dim = head_dim_of(s.width), heads = s.width / dim;
  const std::int64_t sequence = s.tokens % 4096 == 0 ? 4096 : s.tokens;
  const cuda_kernels::RopeShape shape{.type = s.type(),
                                      .batch = s.tokens / sequence,
                                      .sequence = sequence,
                                      .heads = heads,
                                      .head_dim = dim};
  const auto pass = backward ? cuda_kernels::Pass::backward : cuda_kernels::Pass::forward;
  Recipe recipe;
  recipe.tensors = {s.input(s.size()), s.result(s.size()), floats(sequence * dim / 2),
                    floats(sequence * dim / 2)};
  recipe.prepare = [=](Pointers t, cudaStream_t stream) {
    cuda_kernels::rope_table(sequence, dim, 10000.0F, as_floats(t[2]), as_floats(t[3]), stream);
  };
  recipe.launch = [=](Pointers t, cudaStream_t stream) {
    cuda_kernels::rope(shape, pass, t[0], as_floats(t[2]), as_floats(t[3]), t[1], stream);
  };
  recipe.reference = [=](const Values& v) -> std::vector<Wanted> {
    return {{1, host::reference_rope(v[0], heads, dim, sequence, backward ? -1 : 1)}};
  };
  return recipe;
}

namespace {

/// A row's first or second half, of all rows.
Doubles half_of(const Doubles& rows, std::size_t width, std::size_t which) {
  Doubles half;
  for (std::size_t start = which * width; start < rows.size(); start += 2 * width)
    half.insert(half.end(), rows.begin() + static_cast<std::ptrdiff_t>(start),
                rows.begin() + static_cast<std::ptrdiff_t>(start + width));
  return half;
}

Doubles side_by_side(const Doubles& a, const Doubles& b, std::size_t width) {
  Doubles both;
  for (std::size_t start = 0; start < a.size(); start += width)
    for (const Doubles* from : {&a, &b})
      both.insert(both.end(), from->begin() + static_cast<std::ptrdiff_t>(start),
                  from->begin() + static_cast<std::ptrdiff_t>(start + width));
  return both;
}

cuda_kernels::GateUp<const void*> inputs(const Shape& s, const void* gate_up) {
  return cuda_kernels::side_by_side(s.rows(), gate_up);
}

}  // namespace

/// tensors: gate and up, y
Recipe silu_mul(const Shape& s) {
  return {.tensors = {s.input(2 * s.size()), s.result(s.size())},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::swiglu_forward(s.rows(), inputs(s, t[0]), t[1], stream);
              },
          .reference = [s](const Values& v) -> std::vector<Wanted> {
            const auto w = static_cast<std::size_t>(s.width);
            return {{1, host::reference_silu_mul(half_of(v[0], w, 0), half_of(v[0], w, 1))}};
          }};
}

/// tensors: gate and up, dy, their gradients
Recipe silu_mul_gradient(const Shape& s) {
  return {.tensors = {s.input(2 * s.size()), s.input(s.size()), s.result(2 * s.size())},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::swiglu_backward(
                    s.rows(), inputs(s, t[0]), t[1],
                    cuda_kernels::side_by_side(s.rows(), static_cast<void*>(t[2])), stream);
              },
          .reference = [s](const Values& v) -> std::vector<Wanted> {
            const auto w = static_cast<std::size_t>(s.width);
            const auto g =
                host::reference_silu_mul_backward(v[1], half_of(v[0], w, 0), half_of(v[0], w, 1));
            return {{2, side_by_side(g.first, g.second, w)}};
          }};
}

/// tensors: x, y; or x, dy, dx
Recipe gelu(const Shape& s, bool backward) {
  if (!backward)
    return {.tensors = {s.input(s.size()), s.result(s.size())},
            .launch =
                [s](Pointers t, cudaStream_t stream) {
                  cuda_kernels::gelu_forward(s.type(), s.size(), t[0], t[1], stream);
                },
            .reference = [](const Values& v) -> std::vector<Wanted> {
              return {{1, host::reference_gelu(v[0])}};
            }};
  return {.tensors = {s.input(s.size()), s.input(s.size()), s.result(s.size())},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::gelu_backward(s.type(), s.size(), t[0], t[1], t[2], stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            return {{2, host::reference_gelu_backward(v[1], v[0])}};
          }};
}

}  // namespace stepcast::calibrate::recipes
