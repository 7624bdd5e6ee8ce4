// The recipes of our own kernels that are bound by memory, by the names of
// sim/kernels/kernel_names.hpp. References are the host's textbook formulas.
#pragma once

#include "calibrate/cuda/recipe.hpp"
#include "calibrate/kernels/kernels.hpp"

namespace stepcast::calibrate::recipes {

using Content = Tensor::Content;
using Values = std::vector<Doubles>;  // of all tensors, before the launch
using cuda_kernels::ElementType;

struct Shape {
  Element element;
  std::int64_t tokens, width;
  std::int64_t vocabulary = 32000;  // rows of an embedding's table: Llama-2's

  std::int64_t size() const { return tokens * width; }
  ElementType type() const {
    switch (element) {
      case Element::bf16:
        return ElementType::bf16;
      case Element::fp16:
        return ElementType::fp16;
      case Element::fp32:
        return ElementType::fp32;
      case Element::fp8:
        break;
    }
    throw Unsupported("our kernels know bf16, fp16 and fp32");
  }
  cuda_kernels::Rows rows() const { return {.type = type(), .rows = tokens, .width = width}; }
  Tensor input(std::int64_t count) const { return {.element = element, .count = count}; }
  Tensor result(std::int64_t count) const {
    return {.element = element, .count = count, .content = Content::result};
  }
};

inline Tensor floats(std::int64_t count, Content content = Content::result) {
  return {.element = Element::fp32, .count = count, .content = content};
}
inline Tensor scratch(std::size_t size) { return floats(static_cast<std::int64_t>(size) / 4 + 1); }

inline float* as_floats(std::byte* memory) { return reinterpret_cast<float*>(memory); }
inline const std::int32_t* as_ids(const std::byte* memory) {
  return reinterpret_cast<const std::int32_t*>(memory);
}
Recipe rmsnorm(const Shape&);
Recipe rmsnorm_gradient(const Shape&);
Recipe layernorm(const Shape&);
Recipe layernorm_gradient(const Shape&);
Recipe rope(const Shape&, bool backward);
Recipe silu_mul(const Shape&);
Recipe silu_mul_gradient(const Shape&);
Recipe gelu(const Shape&, bool backward);
Recipe residual_add(const Shape&);
Recipe cast(const Shape&);  // to fp32
Recipe embedding(const Shape&, bool backward);
Recipe cross_entropy(const Shape&, bool backward);
Recipe adamw(const Shape&);
Recipe grad_norm(const Shape&);
/// FSDP's copies between a layer's tensors and its flat buffer: into it or out of it.
Recipe flat_copy(const Shape&, bool in);

}  // namespace stepcast::calibrate::recipes
