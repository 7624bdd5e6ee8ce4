// Attention by our own kernels, or by cuDNN's, as a recipe. The reference computes whole matrices
// of probabilities and so sees a shorter sequence and fewer heads, with the same head size, mask
// and grouping.
#include <algorithm>
#include <cmath>
#include <memory>

#include "calibrate/cuda/cudnn.hpp"
#include "calibrate/cuda/kernel_task.hpp"
#include "calibrate/cuda/recipes.hpp"
#include "calibrate/host/reference.hpp"

namespace stepcast::calibrate {
namespace {

using cuda_kernels::AttentionShape;
using cuda_kernels::Pass;
using recipes::as_floats;
using recipes::floats;
using recipes::scratch;
using recipes::Shape;
using recipes::Values;

/// Long enough for several tiles of 64 to 128 keys, and no multiple of them.
constexpr std::int64_t checked_sequence = 328;

AttentionShape shape_of(const AttentionTask& task) {
  return {.type = Shape{element_of(task.dtype), 1, 1}.type(),
          .batch = task.batch,
          .sequence = task.sequence,
          .heads = task.heads,
          .kv_heads = task.kv_heads,
          .head_dim = task.head_dim,
          .causal = task.causal,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(task.head_dim)))};
}

host::AttentionSizes sizes_of(const AttentionTask& task) {
  return {.batch = task.batch,
          .sequence = task.sequence,
          .heads = task.heads,
          .kv_heads = task.kv_heads,
          .head_dim = task.head_dim,
          .causal = task.causal};
}

struct Counts {
  std::int64_t q, kv, rows;
  explicit Counts(const AttentionTask& t)
      : q(t.batch * t.sequence * t.heads * t.head_dim),
        kv(t.batch * t.sequence * t.kv_heads * t.head_dim),
        rows(t.batch * t.sequence * t.heads) {}
};

/// tensors: q, k, v, o, lse
Recipe forward(const AttentionTask& task) {
  const Counts counts(task);
  const Shape s{element_of(task.dtype), 1, 1};
  const AttentionShape shape = shape_of(task);
  Recipe recipe;
  recipe.tensors = {s.input(counts.q), s.input(counts.kv), s.input(counts.kv), s.result(counts.q),
                    floats(counts.rows)};
  recipe.launch = [shape](Pointers t, cudaStream_t stream) {
    cuda_kernels::attention_forward(shape, t[0], t[1], t[2], t[3], as_floats(t[4]), stream);
  };
  recipe.reference = [sizes = sizes_of(task)](const Values& v) -> std::vector<Wanted> {
    return {{3, host::reference_attention(v[0], v[1], v[2], sizes)}};
  };
  return recipe;
}

/// tensors: q, k, v, o, lse, do, dq, dk, dv, scratch
Recipe backward(const AttentionTask& task) {
  const Counts counts(task);
  const Shape s{element_of(task.dtype), 1, 1};
  const AttentionShape shape = shape_of(task);
  Recipe recipe = forward(task);
  recipe.prepare = recipe.launch;
  for (const Tensor& more :
       {s.input(counts.q), s.result(counts.q), s.result(counts.kv), s.result(counts.kv),
        scratch(cuda_kernels::attention_workspace_bytes(shape))})
    recipe.tensors.push_back(more);
  recipe.launch = [shape](Pointers t, cudaStream_t stream) {
    cuda_kernels::attention_backward(shape,
                                     {.q = t[0],
                                      .k = t[1],
                                      .v = t[2],
                                      .o = t[3],
                                      .d_o = t[5],
                                      .lse = as_floats(t[4]),
                                      .dq = t[6],
                                      .dk = t[7],
                                      .dv = t[8],
                                      .workspace = t[9]},
                                     stream);
  };
  recipe.reference = [sizes = sizes_of(task)](const Values& v) -> std::vector<Wanted> {
    const auto g = host::reference_attention_backward(v[5], v[0], v[1], v[2], sizes);
    return {{6, g.dq}, {7, g.dk}, {8, g.dv}};
  };
  return recipe;
}

/// The same tensors and results by cuDNN's kernel; behind them its workspace.
Recipe by_cudnn(const AttentionTask& task) {
  if (task.causal) throw Unsupported("cuDNN's attention is measured without a mask alone");
  CudnnAttentionShape wanted{.batch = task.batch,
                             .sequence = task.sequence,
                             .heads = task.heads,
                             .kv_heads = task.kv_heads,
                             .head_dim = task.head_dim,
                             .bf16 = element_of(task.dtype) == Element::bf16,
                             .scale = shape_of(task).scale};
  const auto plan = [&](bool backward) {
    wanted.backward = backward;
    return std::make_shared<CudnnAttention>(wanted);
  };
  const auto forward_plan = plan(false);
  const auto backward_plan = task.backward ? plan(true) : nullptr;
  Recipe recipe = task.backward ? backward(task) : forward(task);
  std::size_t workspace = forward_plan->workspace_bytes();
  if (task.backward) workspace = std::max(workspace, backward_plan->workspace_bytes());
  const std::size_t last = task.backward ? 9 : 5;
  if (task.backward) recipe.tensors.pop_back();  // our own kernel's
  recipe.tensors.push_back(scratch(workspace));
  const auto launch = [last](const std::shared_ptr<CudnnAttention>& attention) {
    return [attention, last](Pointers t, cudaStream_t stream) {
      attention->launch(t, t[last], stream);
    };
  };
  recipe.launch = launch(task.backward ? backward_plan : forward_plan);
  if (task.backward) recipe.prepare = launch(forward_plan);
  return recipe;
}

/// Two groups of query heads, or as many as there are.
AttentionTask checked_part(AttentionTask task) {
  const std::int64_t group = task.heads / task.kv_heads;
  task.batch = 1;
  task.kv_heads = std::min<std::int64_t>(task.kv_heads, 2);
  task.heads = group * task.kv_heads;
  task.sequence = std::min(task.sequence, checked_sequence);
  return task;
}

Recipe recipe_of(const AttentionTask& task) {
  if (task.implementation == "cudnn") return by_cudnn(task);
  return task.backward ? backward(task) : forward(task);
}

}  // namespace

std::unique_ptr<CudaTask> make_cuda_attention(CudaContext& context, const AttentionTask& task,
                                              std::uint64_t seed) {
  if (task.implementation != "own_flash" && task.implementation != "cudnn")
    throw Unsupported("no attention called " + task.implementation + " here");
  if (task.batch < 1 || task.heads < 1 || task.kv_heads < 1 || task.sequence < 1 ||
      task.heads % task.kv_heads != 0)
    throw Unsupported("no attention of that shape");
  const auto pass = task.backward ? Pass::backward : Pass::forward;
  const auto obstacle = cuda_kernels::attention_obstacle(shape_of(task), pass);
  if (obstacle && task.implementation == "own_flash") throw Unsupported(*obstacle);
  Recipe timed = recipe_of(task);
  const Counts counts(task);
  // 4 B H S^2 d forward, half of it under the mask; 2.5 times that backward.
  timed.flops = 4.0 * static_cast<double>(counts.q) * static_cast<double>(task.sequence) *
                (task.causal ? 0.5 : 1.0) * (task.backward ? 2.5 : 1.0);
  // Each tensor once: q, k, v, o; backward reads those and do, and writes dq, dk, dv.
  const std::int64_t elements =
      task.backward ? 4 * counts.q + 4 * counts.kv : 2 * counts.q + 2 * counts.kv;
  const Element element = element_of(task.dtype);
  timed.bytes = Bytes(elements * size_of(element));
  return make_cuda_recipe(context, std::move(timed), recipe_of(checked_part(task)),
                          tolerance_of(element), seed);
}

}  // namespace stepcast::calibrate
