// The kernels bound by memory, by the name that the step program gives them.
#include <algorithm>
#include <map>

#include "calibrate/cuda/kernel_task.hpp"
#include "calibrate/cuda/recipes.hpp"
#include "sim/kernels/kernel_names.hpp"

namespace stepcast::calibrate {
namespace {

using namespace recipes;

/// Elements that a float64 reference is asked for.
constexpr std::int64_t most_checked = 1 << 18;

Recipe recipe_of(const ElementwiseTask& task, const Shape& s) {
  const bool back = task.backward;
  const std::map<std::string, std::function<Recipe()>> kinds{
      {"rmsnorm", [&] { return back ? rmsnorm_gradient(s) : rmsnorm(s); }},
      {"layernorm", [&] { return back ? layernorm_gradient(s) : layernorm(s); }},
      {"rope", [&] { return rope(s, back); }},
      {"silu_mul", [&] { return back ? silu_mul_gradient(s) : silu_mul(s); }},
      {"gelu", [&] { return gelu(s, back); }},
      {"residual_add", [&] { return residual_add(s); }},
      {"embedding", [&] { return embedding(s, back); }},
      {"cross_entropy", [&] { return cross_entropy(s, back); }},
      {"cast", [&] { return cast(s); }},
      {"adamw", [&] { return adamw(s); }},
      {"grad_norm", [&] { return grad_norm(s); }},
      {"copy_in", [&] { return flat_copy(s, true); }},
      {"copy_out", [&] { return flat_copy(s, false); }},
  };
  const auto found = kinds.find(task.kind);
  if (found == kinds.end()) throw Unsupported("no kernel of ours is called " + task.kind);
  return found->second();
}

workloads::Dtype program_dtype(Element element) {
  switch (element) {
    case Element::bf16:
      return workloads::Dtype::bf16;
    case Element::fp16:
      return workloads::Dtype::fp16;
    case Element::fp32:
    case Element::fp8:
      break;
  }
  return workloads::Dtype::fp32;
}

}  // namespace

std::unique_ptr<CudaTask> make_cuda_elementwise(CudaContext& context, const ElementwiseTask& task,
                                                std::uint64_t seed) {
  if (task.width < 1) throw Unsupported("an element-wise kernel has a width");
  const bool fp32_alone = task.kind == "adamw";
  const Shape whole{fp32_alone ? Element::fp32 : element_of(task.dtype),
                    std::max<std::int64_t>(1, task.tokens), task.width};
  Shape part = whole;
  part.vocabulary = 64;
  if (whole.tokens > 1)
    part.tokens = std::clamp<std::int64_t>(most_checked / whole.width, 1, whole.tokens);
  else
    part.width = std::min(whole.width, most_checked);
  Recipe timed = recipe_of(task, whole);
  timed.bytes = Bytes(whole.size() * sim::bytes_per_element(task.kind, task.backward,
                                                            program_dtype(whole.element)));
  return make_cuda_recipe(context, std::move(timed), recipe_of(task, part),
                          tolerance_of(whole.element), seed);
}

}  // namespace stepcast::calibrate
