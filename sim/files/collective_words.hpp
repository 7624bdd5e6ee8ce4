// The words for collectives, for NCCL's algorithms and protocols and for number types, each once
// with its other spellings; and nccl-tests' bus factor. Knows no file format.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/files/nccl_names.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// In the order of the enum; the first num_choices are those that NCCL chooses an algorithm for.
/// NCCL's word in small letters is that of rows and of nccl-tests ("sendrecv").
inline constexpr std::array<Word<workloads::CollectiveKind>, 7> collective_words{{
    {workloads::CollectiveKind::all_reduce, "all_reduce", "AllReduce"},
    {workloads::CollectiveKind::all_gather, "all_gather", "AllGather"},
    {workloads::CollectiveKind::reduce_scatter, "reduce_scatter", "ReduceScatter"},
    {workloads::CollectiveKind::broadcast, "broadcast", "Broadcast"},
    {workloads::CollectiveKind::reduce, "reduce", "Reduce"},
    {workloads::CollectiveKind::all_to_all, "all_to_all", "AlltoAll"},
    {workloads::CollectiveKind::send_receive, "send_receive", "SendRecv"},
}};
inline constexpr auto collective_names = names_of(collective_words);

inline constexpr Names<workloads::Dtype, 8> dtype_names{{
    {"fp32", workloads::Dtype::fp32},
    {"tf32", workloads::Dtype::tf32},
    {"bf16", workloads::Dtype::bf16},
    {"fp16", workloads::Dtype::fp16},
    {"fp8", workloads::Dtype::fp8},
    {"fp8_block", workloads::Dtype::fp8_block},
    {"mxfp8", workloads::Dtype::mxfp8},
    {"nvfp4", workloads::Dtype::nvfp4},
}};

/// In any spelling: "all_reduce", "AllReduce", "allreduce", "send_receive", "sendrecv".
std::optional<workloads::CollectiveKind> collective_named(std::string_view word);
/// The collective whose word stands anywhere in a text, as in names of kernels and files; the
/// longest where several do ("ReduceScatter" holds "Reduce").
std::optional<workloads::CollectiveKind> collective_within(std::string_view text);
/// "allreduce", as rows and nccl-tests call it.
std::string row_word(workloads::CollectiveKind);

/// Of a number type, in any spelling of NCCL, PyTorch or our own: "float", "bfloat16", "fp8_e4m3".
std::optional<workloads::Dtype> dtype_named(std::string_view word);

/// Busbw of nccl-tests over algbw (doc/PERFORMANCE.md): 2(n-1)/n for AllReduce, (n-1)/n for
/// AllGather, ReduceScatter and AlltoAll, 1 for the rest.
double bus_factor(workloads::CollectiveKind, std::int64_t ranks);

}  // namespace stepcast::sim
