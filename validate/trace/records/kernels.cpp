#include "validate/trace/records/kernels.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>

#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"

namespace stepcast::validate {
namespace {

using workloads::CollectiveKind;
using workloads::KernelFamily;

struct Rule {
  std::string_view part;  // of the name in lower case
  TraceKind kind;
};

// Names as PyTorch 1.13 to 2.9, apex, Transformer Engine, cuBLAS 11 to 13, CUTLASS, cuDNN 8 and 9
// and FlashAttention 1 to 3 give them. The first rule that applies counts: attention kernels are
// built on CUTLASS, and split-K products reduce.
constexpr Rule rules[] = {
    {"memcpy htod", TraceKind::host_copy},
    {"memcpy dtoh", TraceKind::host_copy},
    {"memcpy", TraceKind::copy},
    {"memset", TraceKind::copy},
    {"flash", TraceKind::attention_forward},
    {"fmha", TraceKind::attention_forward},
    {"sdpa", TraceKind::attention_forward},
    {"multi_tensor_apply", TraceKind::optimizer},
    {"adam", TraceKind::optimizer},
    {"lamb", TraceKind::optimizer},
    {"lpnorm", TraceKind::optimizer},
    {"l2norm", TraceKind::optimizer},
    {"chunk_cat", TraceKind::copy},
    {"split_with_sizes", TraceKind::copy},
    {"catarray", TraceKind::copy},
    {"layer_norm", TraceKind::norm},
    {"layernorm", TraceKind::norm},
    {"rms_norm", TraceKind::norm},
    {"rmsnorm", TraceKind::norm},
    {"ln_fwd", TraceKind::norm},
    {"ln_bwd", TraceKind::norm},
    {"gammabeta", TraceKind::norm},
    {"gradinput", TraceKind::norm},
    {"softmax", TraceKind::softmax},
    {"nll_loss", TraceKind::softmax},
    {"cross_entropy", TraceKind::softmax},
    {"crossentropy", TraceKind::softmax},
    {"embedding", TraceKind::embedding},
    {"indexselect", TraceKind::embedding},
    {"index_select", TraceKind::embedding},
    {"index_put", TraceKind::embedding},
    {"indexing_backward", TraceKind::embedding},
    {"gather_kernel", TraceKind::embedding},
    {"radixsort", TraceKind::embedding},
    {"sum_and_scatter", TraceKind::embedding},
    {"gemm", TraceKind::gemm},
    {"gemv", TraceKind::gemm},
    {"nvjet", TraceKind::gemm},
    {"xmma", TraceKind::gemm},
    {"cublas", TraceKind::gemm},
    {"cutlass", TraceKind::gemm},
    {"splitk", TraceKind::gemm},
    {"elementwise", TraceKind::pointwise},
    {"rope", TraceKind::pointwise},
    {"rotary", TraceKind::pointwise},
    {"swiglu", TraceKind::pointwise},
    {"gelu", TraceKind::pointwise},
    {"silu", TraceKind::pointwise},
    {"dropout", TraceKind::pointwise},
    {"cast", TraceKind::pointwise},
    {"reduce", TraceKind::reduction},
    {"cub::", TraceKind::reduction},
};

// torch.compile names a kernel after its shape and the operations that it fuses.
constexpr Rule compiled_rules[] = {
    {"triton_tem", TraceKind::gemm},      {"softmax", TraceKind::softmax},
    {"nll_loss", TraceKind::softmax},     {"embedding", TraceKind::embedding},
    {"layer_norm", TraceKind::norm},      {"rms_norm", TraceKind::norm},
    {"rsqrt", TraceKind::norm},           {"triton_for", TraceKind::optimizer},
    {"triton_red", TraceKind::reduction}, {"triton_per", TraceKind::reduction},
    {"triton_poi", TraceKind::pointwise},
};

constexpr std::string_view backward_parts[] = {"bwd",        "bprop",    "backward", "cutlassb",
                                               "convert_dq", "dot_do_o", "dkdv",     "dq_dk_dv"};

std::string lower(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TraceKind first_match(std::string_view text, std::span<const Rule> table) {
  for (const Rule& rule : table)
    if (has(text, rule.part)) return rule.kind;
  return TraceKind::other;
}

/// "all_gather", "AllGather" and "_allgather_base" alike: letters alone, in lower case.
std::string letters(std::string_view name) {
  std::string out;
  for (const char c : lower(name))
    if (c >= 'a' && c <= 'z') out += c;
  return out;
}

}  // namespace

std::string_view name_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::gemm:
      return "gemm";
    case TraceKind::attention_forward:
      return "attention forward";
    case TraceKind::attention_backward:
      return "attention backward";
    case TraceKind::norm:
      return "norm";
    case TraceKind::pointwise:
      return "pointwise";
    case TraceKind::reduction:
      return "reduction";
    case TraceKind::softmax:
      return "softmax and loss";
    case TraceKind::embedding:
      return "embedding";
    case TraceKind::copy:
      return "copy";
    case TraceKind::optimizer:
      return "optimizer";
    case TraceKind::host_copy:
      return "copies to and from the host";
    case TraceKind::other:
      return "other";
  }
  throw BrokenPromise("a kind without a name");
}

TraceKind kind_of_kernel(std::string_view name) {
  const std::string text = lower(name);
  if (text.starts_with("triton_")) return first_match(text, compiled_rules);
  // FSDP's copy-in and Megatron's parameter copies are foreach kernels too.
  if (has(text, "multi_tensor_apply") && has(text, "copy")) return TraceKind::copy;
  const TraceKind kind = first_match(text, rules);
  if (kind != TraceKind::attention_forward) return kind;
  const bool backward =
      std::ranges::any_of(backward_parts, [&](std::string_view part) { return has(text, part); });
  return backward ? TraceKind::attention_backward : kind;
}

TraceKind kind_of(KernelFamily family) {
  switch (family) {
    case KernelFamily::gemm:
    case KernelFamily::grouped_gemm:
      return TraceKind::gemm;
    case KernelFamily::attention_forward:
    case KernelFamily::sparse_forward:
    case KernelFamily::delta_forward:
    case KernelFamily::state_space_forward:
      return TraceKind::attention_forward;
    case KernelFamily::attention_backward:
    case KernelFamily::sparse_backward:
    case KernelFamily::delta_backward:
    case KernelFamily::state_space_backward:
      return TraceKind::attention_backward;
    case KernelFamily::norm:
    case KernelFamily::norm_backward:
      return TraceKind::norm;
    case KernelFamily::pointwise:
    case KernelFamily::rope:
    case KernelFamily::activation:
    case KernelFamily::quantize:
    case KernelFamily::router:
      return TraceKind::pointwise;
    case KernelFamily::reduction:
      return TraceKind::reduction;
    case KernelFamily::softmax:
      return TraceKind::softmax;
    case KernelFamily::embedding:
      return TraceKind::embedding;
    case KernelFamily::copy:
    case KernelFamily::permute:
    case KernelFamily::host_copy:
      return TraceKind::copy;
    case KernelFamily::optimizer:
    case KernelFamily::host_update:
      return TraceKind::optimizer;
  }
  throw BrokenPromise("a kernel family without a kind");
}

bool is_communication(std::string_view name) {
  const std::string text = lower(name);
  return text.starts_with("nccl") || has(text, "nvshmem") || has(text, "deep_ep::") ||
         has(text, "multimem_all_") || has(text, "one_shot_all_reduce") ||
         has(text, "two_shot_all_reduce");
}

std::optional<CollectiveKind> collective_of(std::string_view name) {
  const std::string text = letters(name.substr(0, name.find('(')));
  if (const auto kind = sim::collective_within(text)) return kind;
  const bool pair = has(text, "send") || has(text, "recv");
  return pair ? std::optional(CollectiveKind::send_receive) : std::nullopt;
}

KernelName named_kernel(std::string name) {
  KernelName out{std::move(name)};
  out.communication = is_communication(out.text);
  if (out.communication)
    out.collective = collective_of(out.text);
  else
    out.kind = kind_of_kernel(out.text);
  out.part = out.kind == TraceKind::gemm && has(lower(out.text), "reduce");
  return out;
}

}  // namespace stepcast::validate
