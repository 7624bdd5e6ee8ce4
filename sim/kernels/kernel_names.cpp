#include "sim/kernels/kernel_names.hpp"

#include <array>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using workloads::Kernel;
using workloads::KernelFamily;

bool has(const Kernel& kernel, std::string_view part) {
  return kernel.name.find(part) != std::string::npos;
}

/// Kernels of eager code that widen or narrow a tensor and do nothing else.
bool is_cast(const Kernel& kernel) {
  for (const std::string_view end : {"cast", "upcast", "widen", "cast.backward", "upcast.backward"})
    if (kernel.name.ends_with(end)) return true;
  return false;
}

/// Sums of two tensors: reads two, writes one.
bool is_sum(const Kernel& kernel) {
  for (const std::string_view part :
       {"residual", "gradient_sum", "tied_sum", "positions", "layer.experts.sum.backward"})
    if (kernel.name.ends_with(part)) return true;
  return false;
}

ElementwiseUse optimizer_use(const Kernel& kernel) {
  if (kernel.name == "adamw.fused") return {"adamw"};
  if (kernel.name == "gradients.norm") return {"grad_norm"};
  return {"residual_add", false, false};
}

/// Rows of tokens on their way to their experts and back, in the words of our own trainer.
ElementwiseUse permute_use(const Kernel& kernel) {
  const bool backward = kernel.name.ends_with(".backward");
  if (kernel.name.starts_with("layer.experts.permute."))
    return {backward ? "unpermute" : "permute", false, true, "copy_in"};
  if (kernel.name.starts_with("layer.experts.unpermute."))
    return {backward ? "permute" : "unpermute", false, true, "copy_in"};
  if (kernel.name.starts_with("layer.experts.sort.") ||
      kernel.name.starts_with("layer.experts.unsort."))
    return {"sort_rows", false, true, "copy_in"};
  return {"copy_in", false, false};
}

}  // namespace

std::string_view gemm_layout(const Kernel& kernel) {
  expects(kernel.family == KernelFamily::gemm || kernel.family == KernelFamily::grouped_gemm,
          "a product");
  if (kernel.batch > 1) return "";
  if (kernel.name.ends_with(".forward")) return "NT";
  if (kernel.name.ends_with(".dgrad")) return "NN";
  if (kernel.name.ends_with(".wgrad")) return "TN";
  return "";
}

ElementwiseUse elementwise_use(const Kernel& kernel) {
  using enum KernelFamily;
  const bool backward = has(kernel, ".backward");
  switch (kernel.family) {
    case norm:
      return {"rmsnorm", false};
    case norm_backward:
      return {"rmsnorm", true};
    case rope:
      if (is_cast(kernel)) return {"cast"};
      return {"rope", backward, !kernel.name.ends_with(".multiply")};
    case activation:
      if (kernel.name.starts_with("layer.experts.activation."))
        return {"weighted_silu_mul", backward, true, "silu_mul"};
      return {has(kernel, "gelu") ? "gelu" : "silu_mul", backward};
    case pointwise:
      if (is_cast(kernel)) return {"cast"};
      return {"residual_add", false, is_sum(kernel)};
    case softmax:
      return {"cross_entropy", backward,
              kernel.name == "loss.forward" || kernel.name == "loss.backward"};
    case reduction:
      return {"grad_norm", false, false};
    case embedding:
      return {"embedding", backward};
    case copy:
      if (kernel.name.ends_with("copy_out")) return {"copy_out"};
      return {"copy_in", false, kernel.name.ends_with("copy_in")};
    case optimizer:
      return optimizer_use(kernel);
    case quantize:
      return {"cast", false, false};
    case permute:
      return permute_use(kernel);
    case router:
      if (kernel.name.starts_with("layer.experts.choice."))
        return {"router", backward, true, "copy_in"};
      return {"copy_in", false, false};
    case host_copy:
      return {"host_copy", false, false};
    case host_update:
      return {"host_update", false, false};
    case gemm:
    case grouped_gemm:
    case attention_forward:
    case attention_backward:
    case sparse_forward:
    case sparse_backward:
    case delta_forward:
    case delta_backward:
    case state_space_forward:
    case state_space_backward:
      break;
  }
  expects(false, "a kernel that moves bytes");
  return {};
}

std::int64_t bytes_per_element(std::string_view kind, bool backward, workloads::Dtype dtype) {
  struct Traffic {
    std::string_view kind;
    std::int64_t forward, backward;  // in elements
  };
  constexpr std::array<Traffic, 9> traffic{{{"rmsnorm", 2, 3},
                                            {"layernorm", 2, 3},
                                            {"rope", 2, 2},
                                            {"silu_mul", 3, 5},
                                            {"gelu", 2, 3},
                                            {"residual_add", 3, 3},
                                            {"embedding", 2, 3},
                                            {"cross_entropy", 2, 2},
                                            {"copy", 2, 2}}};
  const std::int64_t e = workloads::bytes_per_element(dtype);
  if (kind == "cast") return e + 4;
  if (kind == "adamw") return 28;
  if (kind == "grad_norm") return 4;
  if (kind.starts_with("copy_")) kind = "copy";
  for (const Traffic& t : traffic)
    if (t.kind == kind) return e * (backward ? t.backward : t.forward);
  return 0;
}

}  // namespace stepcast::sim
