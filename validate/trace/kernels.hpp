// What a GPU kernel does, told by its name: the kinds that a trace and the simulator have in
// common. Knows no times.
#pragma once

#include <cstdint>
#include <optional>
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

}  // namespace stepcast::validate
