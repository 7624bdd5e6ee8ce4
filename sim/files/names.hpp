// The words of a scenario file for the closed sets of the model: one table per enum, used to read
// and to write.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/check.hpp"
#include "engine/jitter.hpp"
#include "sim/files/collective_words.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

inline constexpr Names<workloads::DataParallel, 4> data_parallel_names{{
    {name_of(workloads::DataParallel::ddp), workloads::DataParallel::ddp},
    {name_of(workloads::DataParallel::zero1), workloads::DataParallel::zero1},
    {name_of(workloads::DataParallel::zero2), workloads::DataParallel::zero2},
    {name_of(workloads::DataParallel::zero3), workloads::DataParallel::zero3},
}};
inline constexpr Names<workloads::Schedule, 2> schedule_names{{
    {"gpipe", workloads::Schedule::gpipe},
    {"1f1b", workloads::Schedule::one_f_one_b},
}};
inline constexpr Names<workloads::Recompute, 3> recompute_names{{
    {"none", workloads::Recompute::none},
    {"selective", workloads::Recompute::selective},
    {"full", workloads::Recompute::full},
}};
inline constexpr Names<workloads::ReduceWhen, 2> reduce_names{{
    {"last", workloads::ReduceWhen::last},
    {"each", workloads::ReduceWhen::each},
}};
inline constexpr Names<workloads::StageSplit, 5> stage_split_names{{
    {"blocks", workloads::StageSplit::blocks},
    {"embeddings", workloads::StageSplit::embeddings},
    {"modules", workloads::StageSplit::modules},
    {"parameters", workloads::StageSplit::parameters},
    {"products", workloads::StageSplit::products},
}};
inline constexpr Names<topology::Network, 4> network_names{{
    {"infiniband", topology::Network::infiniband},
    {"roce", topology::Network::roce},
    {"efa", topology::Network::efa},
    {"ethernet", topology::Network::ethernet},
}};
inline constexpr Names<workloads::Norm, 2> norm_names{{
    {"rmsnorm", workloads::Norm::rmsnorm},
    {"layernorm", workloads::Norm::layernorm},
}};
inline constexpr Names<workloads::Activation, 2> activation_names{{
    {"swiglu", workloads::Activation::swiglu},
    {"gelu", workloads::Activation::gelu},
}};
inline constexpr Names<workloads::Fusion, 4> fusion_names{{
    {"eager", workloads::Fusion::eager},
    {"compiled", workloads::Fusion::compiled},
    {"fused", workloads::Fusion::fused},
    {"own", workloads::Fusion::own},
}};
inline constexpr Names<workloads::Objective, 2> objective_names{{
    {"next_token", workloads::Objective::next_token},
    {"masked", workloads::Objective::masked},
}};
inline constexpr Names<workloads::KernelFamily, 17> kernel_family_names{{
    {"gemm", workloads::KernelFamily::gemm},
    {"grouped_gemm", workloads::KernelFamily::grouped_gemm},
    {"attention_forward", workloads::KernelFamily::attention_forward},
    {"attention_backward", workloads::KernelFamily::attention_backward},
    {"pointwise", workloads::KernelFamily::pointwise},
    {"quantize", workloads::KernelFamily::quantize},
    {"permute", workloads::KernelFamily::permute},
    {"router", workloads::KernelFamily::router},
    {"norm", workloads::KernelFamily::norm},
    {"norm_backward", workloads::KernelFamily::norm_backward},
    {"rope", workloads::KernelFamily::rope},
    {"activation", workloads::KernelFamily::activation},
    {"reduction", workloads::KernelFamily::reduction},
    {"softmax", workloads::KernelFamily::softmax},
    {"embedding", workloads::KernelFamily::embedding},
    {"copy", workloads::KernelFamily::copy},
    {"optimizer", workloads::KernelFamily::optimizer},
}};
inline constexpr Names<workloads::OptimizerKernel, 4> optimizer_names{{
    {"foreach", workloads::OptimizerKernel::foreach},
    {"fused", workloads::OptimizerKernel::fused},
    {"per_tensor", workloads::OptimizerKernel::per_tensor},
    {"lamb", workloads::OptimizerKernel::lamb},
}};
inline constexpr Names<workloads::OptimizerStates, 2> optimizer_states_names{{
    {"masters", workloads::OptimizerStates::masters},
    {"deepspeed", workloads::OptimizerStates::deepspeed},
}};
inline constexpr Names<workloads::LossMemory, 3> loss_memory_names{{
    {"kernels", workloads::LossMemory::kernels},
    {"in_place", workloads::LossMemory::in_place},
    {"low", workloads::LossMemory::low},
}};
inline constexpr Names<workloads::Allocator, 2> allocator_names{{
    {"caching", workloads::Allocator::caching},
    {"planned", workloads::Allocator::planned},
}};
inline constexpr Names<workloads::FlatParameters, 3> flat_parameters_names{{
    {"fsdp1", workloads::FlatParameters::fsdp1},
    {"fsdp2", workloads::FlatParameters::fsdp2},
    {"buckets", workloads::FlatParameters::buckets},
}};
inline constexpr Names<workloads::AttentionKernel, 10> attention_names{{
    {"flash1", workloads::AttentionKernel::flash1},
    {"flash2", workloads::AttentionKernel::flash2},
    {"flash3", workloads::AttentionKernel::flash3},
    {"flash4", workloads::AttentionKernel::flash4},
    {"cudnn", workloads::AttentionKernel::cudnn},
    {"memory_efficient", workloads::AttentionKernel::memory_efficient},
    {"own_flash", workloads::AttentionKernel::own_flash},
    {"host", workloads::AttentionKernel::host},
    {"fused_softmax", workloads::AttentionKernel::fused_softmax},
    {"unfused", workloads::AttentionKernel::unfused},
}};
inline constexpr Names<workloads::ContextExchange, 3> context_exchange_names{{
    {"ring", workloads::ContextExchange::ring},
    {"all_gather", workloads::ContextExchange::all_gather},
    {"all_to_all", workloads::ContextExchange::all_to_all},
}};
inline constexpr Names<workloads::ZeroExchange, 2> zero_exchange_names{{
    {"slices", workloads::ZeroExchange::slices},
    {"owner", workloads::ZeroExchange::owner},
}};
inline constexpr Names<topology::Architecture, 5> architecture_names{{
    {"volta", topology::Architecture::volta},
    {"ampere", topology::Architecture::ampere},
    {"hopper", topology::Architecture::hopper},
    {"blackwell", topology::Architecture::blackwell},
    {"host", topology::Architecture::host},
}};
inline constexpr Names<topology::NodeKind, 3> node_kind_names{{
    {"hybrid_cube_mesh", topology::NodeKind::hybrid_cube_mesh},
    {"nvswitch", topology::NodeKind::nvswitch},
    {"pcie", topology::NodeKind::pcie},
}};
inline constexpr Names<topology::FabricKind, 2> fabric_kind_names{{
    {"rail_optimized", topology::FabricKind::rail_optimized},
    {"fat_tree", topology::FabricKind::fat_tree},
}};
inline constexpr Names<topology::Routing, 3> routing_names{{
    {"destination", topology::Routing::destination},
    {"ecmp", topology::Routing::ecmp},
    {"spray", topology::Routing::spray},
}};
inline constexpr Names<engine::Distribution, 2> distribution_names{{
    {"lognormal", engine::Distribution::lognormal},
    {"exponential", engine::Distribution::exponential},
}};
/// Whose host time of a launch: the software's own, or the tables' (Scenario::measured_launch).
inline constexpr Names<bool, 2> launch_names{{{"software", false}, {"measured", true}}};

/// What a word of one of the tables means.
template <class E, std::size_t n>
std::optional<E> meaning_of(const Names<E, n>& names, std::string_view word) {
  for (const auto& [name, meaning] : names)
    if (name == word) return meaning;
  return std::nullopt;
}

/// The word for a value of one of the tables above.
template <class E, std::size_t n>
std::string word_for(const Names<E, n>& names, E value) {
  for (const auto& [name, meaning] : names)
    if (meaning == value) return std::string(name);
  throw BrokenPromise("an enum value without a name");
}

}  // namespace stepcast::sim
