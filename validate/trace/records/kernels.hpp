// What a GPU kernel does, told by its name: the kinds that a trace and the simulator have in
// common. Knows no times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "workloads/step/step_program.hpp"

namespace stepcast::validate {

/// Coarser than workloads::KernelFamily: the name of a fused or templated kernel tells no more.
enum class TraceKind : std::uint8_t {
  gemm,
  attention_forward,
  attention_backward,
  norm,
  pointwise,  // activation and RoPE included
  reduction,
  softmax,  // and the loss
  embedding,
  copy,
  optimizer,  // and the norm of the gradients
  host_copy,  // between host and GPU: beside the step, not compute
  other,
};

std::string_view name_of(TraceKind);

/// Of a kernel that is no collective.
TraceKind kind_of_kernel(std::string_view name);
/// The kind under which a simulated kernel is compared.
TraceKind kind_of(workloads::KernelFamily);

/// Whether kernels of this name move data between GPUs.
bool is_communication(std::string_view name);
/// The collective that such a kernel runs ("ncclDevKernel_AllGather_RING_LL(...)", or the
/// profiler's "_allgather_base"); send_receive also stands for all-to-all, which NCCL sends as
/// messages. None: another kind of communication.
std::optional<workloads::CollectiveKind> collective_of(std::string_view name);

/// A kernel's name and what it tells, asked once for the many kernels of that name.
struct KernelName {
  std::string text;
  bool communication = false;
  TraceKind kind = TraceKind::other;                         // of one that is no communication
  std::optional<workloads::CollectiveKind> collective = {};  // of one that is, where it tells
  bool part = false;  // of a product in several kernels, the one that sums

  friend bool operator==(const KernelName&, const KernelName&) = default;
};

/// As the profiler gives it.
KernelName named_kernel(std::string name);

}  // namespace stepcast::validate
