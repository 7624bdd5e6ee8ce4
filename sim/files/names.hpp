// The words of a scenario file for the closed sets of the model: one table per enum, used to read
// and to write.
#pragma once

#include <algorithm>
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
/// What a framework may run; `listed` is an order from a file.
inline constexpr Names<workloads::Schedule, 8> schedule_kind_names{{
    {name_of(workloads::Schedule::gpipe), workloads::Schedule::gpipe},
    {name_of(workloads::Schedule::one_f_one_b), workloads::Schedule::one_f_one_b},
    {name_of(workloads::Schedule::zb_h1), workloads::Schedule::zb_h1},
    {name_of(workloads::Schedule::zb_h2), workloads::Schedule::zb_h2},
    {name_of(workloads::Schedule::zb_v), workloads::Schedule::zb_v},
    {name_of(workloads::Schedule::dualpipe), workloads::Schedule::dualpipe},
    {name_of(workloads::Schedule::dualpipe_v), workloads::Schedule::dualpipe_v},
    {name_of(workloads::Schedule::listed), workloads::Schedule::listed},
}};
/// Of schedules that the program knows; an order from a file has the file's name.
inline constexpr auto schedule_names = [] {
  Names<workloads::Schedule, schedule_kind_names.size() - 1> out{};
  std::copy_n(schedule_kind_names.begin(), out.size(), out.begin());
  return out;
}();
/// The word, or the file's name.
std::string schedule_word(const workloads::ParallelPlan& plan);
inline constexpr Names<workloads::Recompute, 4> recompute_names{{
    {"none", workloads::Recompute::none},
    {"selective", workloads::Recompute::selective},
    {"ops", workloads::Recompute::operators},
    {"full", workloads::Recompute::full},
}};
inline constexpr Names<workloads::Recipe, 6> recipe_names{{
    {name_of(workloads::Recipe::none), workloads::Recipe::none},
    {name_of(workloads::Recipe::fp8_delayed), workloads::Recipe::fp8_delayed},
    {name_of(workloads::Recipe::fp8_current), workloads::Recipe::fp8_current},
    {name_of(workloads::Recipe::fp8_block), workloads::Recipe::fp8_block},
    {name_of(workloads::Recipe::mxfp8), workloads::Recipe::mxfp8},
    {name_of(workloads::Recipe::nvfp4), workloads::Recipe::nvfp4},
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
inline constexpr Names<topology::Network, topology::num_networks> network_names{{
    {"infiniband", topology::Network::infiniband},
    {"roce", topology::Network::roce},
    {"efa", topology::Network::efa},
    {"ethernet", topology::Network::ethernet},
    {"slingshot", topology::Network::slingshot},
    {"omni-path", topology::Network::omni_path},
}};
inline constexpr Names<workloads::Norm, 2> norm_names{{
    {"rmsnorm", workloads::Norm::rmsnorm},
    {"layernorm", workloads::Norm::layernorm},
}};
inline constexpr Names<workloads::Activation, 3> activation_names{{
    {"swiglu", workloads::Activation::swiglu},
    {"gelu", workloads::Activation::gelu},
    {"squared_relu", workloads::Activation::squared_relu},
}};
/// The last two are for --compile; what is written are the first four.
inline constexpr Names<workloads::Fusion, 6> fusion_names{{
    {"eager", workloads::Fusion::eager},
    {"compiled", workloads::Fusion::compiled},
    {"fused", workloads::Fusion::fused},
    {"own", workloads::Fusion::own},
    {"yes", workloads::Fusion::compiled},
    {"no", workloads::Fusion::eager},
}};
inline constexpr Names<workloads::Objective, 2> objective_names{{
    {"next_token", workloads::Objective::next_token},
    {"masked", workloads::Objective::masked},
}};
inline constexpr Names<workloads::TensorOverlap, 3> tensor_overlap_names{{
    {"none", workloads::TensorOverlap::none},
    {"userbuffers", workloads::TensorOverlap::userbuffers},
    {"async_tp", workloads::TensorOverlap::async_tp},
}};
inline constexpr Names<workloads::KernelFamily, 25> kernel_family_names{{
    {"gemm", workloads::KernelFamily::gemm},
    {"grouped_gemm", workloads::KernelFamily::grouped_gemm},
    {"attention_forward", workloads::KernelFamily::attention_forward},
    {"attention_backward", workloads::KernelFamily::attention_backward},
    {"sparse_forward", workloads::KernelFamily::sparse_forward},
    {"sparse_backward", workloads::KernelFamily::sparse_backward},
    {"delta_forward", workloads::KernelFamily::delta_forward},
    {"delta_backward", workloads::KernelFamily::delta_backward},
    {"state_space_forward", workloads::KernelFamily::state_space_forward},
    {"state_space_backward", workloads::KernelFamily::state_space_backward},
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
    {"host_copy", workloads::KernelFamily::host_copy},
    {"host_update", workloads::KernelFamily::host_update},
}};
inline constexpr Names<workloads::LayerModule, 7> layer_module_names{{
    {"attention_core", workloads::LayerModule::attention_core},
    {"norm", workloads::LayerModule::norm},
    {"latent_up", workloads::LayerModule::latent_up},
    {"expert_activation", workloads::LayerModule::expert_activation},
    {"mlp", workloads::LayerModule::mlp},
    {"shared_experts", workloads::LayerModule::shared_experts},
    {"experts", workloads::LayerModule::experts},
}};
inline constexpr Names<workloads::Dispatcher, 4> dispatcher_names{{
    {name_of(workloads::Dispatcher::all_gather), workloads::Dispatcher::all_gather},
    {name_of(workloads::Dispatcher::all_to_all), workloads::Dispatcher::all_to_all},
    {name_of(workloads::Dispatcher::node_aware), workloads::Dispatcher::node_aware},
    {name_of(workloads::Dispatcher::nvlink_domain), workloads::Dispatcher::nvlink_domain},
}};
inline constexpr Names<workloads::RoutingKind, 4> token_routing_names{{
    {"balanced", workloads::RoutingKind::balanced},
    {"uniform", workloads::RoutingKind::uniform},
    {"counts", workloads::RoutingKind::counts},
    {"max_violation", workloads::RoutingKind::max_violation},
}};
inline constexpr Names<workloads::GroupedProducts, 2> grouped_product_names{{
    {"loop", workloads::GroupedProducts::loop},
    {"one_launch", workloads::GroupedProducts::one_launch},
}};
/// Whether the host reads how many rows come before it can launch what takes them.
inline constexpr Names<bool, 2> host_sync_names{{{"auto", true}, {"none", false}}};
inline constexpr Names<workloads::Graphs, 3> graphs_names{{
    {"none", workloads::Graphs::none},
    {"layers", workloads::Graphs::layers},
    {"iteration", workloads::Graphs::iteration},
}};
inline constexpr Names<workloads::OptimizerKernel, 4> optimizer_names{{
    {"foreach", workloads::OptimizerKernel::foreach},
    {"fused", workloads::OptimizerKernel::fused},
    {"per_tensor", workloads::OptimizerKernel::per_tensor},
    {"lamb", workloads::OptimizerKernel::lamb},
}};
inline constexpr Names<workloads::Optimizer, 5> optimizer_form_names{{
    {"adam", workloads::Optimizer::adam},
    {"adam_8bit", workloads::Optimizer::adam_8bit},
    {"adafactor", workloads::Optimizer::adafactor},
    {"muon", workloads::Optimizer::muon},
    {"sgd", workloads::Optimizer::sgd},
}};
inline constexpr Names<workloads::OptimizerStates, 2> optimizer_states_names{{
    {"masters", workloads::OptimizerStates::masters},
    {"deepspeed", workloads::OptimizerStates::deepspeed},
}};
inline constexpr Names<workloads::SelectiveRecompute, 2> selective_names{{
    {"attention_core", workloads::SelectiveRecompute::attention_core},
    {"ops", workloads::SelectiveRecompute::operators},
}};
inline constexpr Names<workloads::LossForm, 4> loss_form_names{{
    {"whole", workloads::LossForm::whole},
    {"chunks", workloads::LossForm::chunks},
    {"checkpointed", workloads::LossForm::checkpointed},
    {"fused_linear", workloads::LossForm::fused_linear},
}};
inline constexpr Names<workloads::LossMemory, 8> loss_memory_names{{
    {"kernels", workloads::LossMemory::kernels},
    {"dropped", workloads::LossMemory::dropped},
    {"widened", workloads::LossMemory::widened},
    {"gradient", workloads::LossMemory::gradient},
    {"gradient_fp32", workloads::LossMemory::gradient_fp32},
    {"in_place", workloads::LossMemory::in_place},
    {"shifted", workloads::LossMemory::shifted},
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
inline constexpr Names<topology::NcclGeneration, 5> nccl_generation_names{{
    {"volta", topology::NcclGeneration::volta},
    {"ampere", topology::NcclGeneration::ampere},
    {"hopper", topology::NcclGeneration::hopper},
    {"blackwell", topology::NcclGeneration::blackwell},
    {"host", topology::NcclGeneration::host},
}};
inline constexpr Names<topology::CollectiveLibrary, 2> collective_library_names{{
    {"nccl", topology::CollectiveLibrary::nccl},
    {"rccl", topology::CollectiveLibrary::rccl},
}};
inline constexpr Names<topology::NodeKind, 3> node_kind_names{{
    {"hybrid_cube_mesh", topology::NodeKind::hybrid_cube_mesh},
    {"nvswitch", topology::NodeKind::nvswitch},
    {"pcie", topology::NodeKind::pcie},
}};
inline constexpr Names<topology::FabricKind, 3> fabric_kind_names{{
    {"rail_optimized", topology::FabricKind::rail_optimized},
    {"fat_tree", topology::FabricKind::fat_tree},
    {"rail_only", topology::FabricKind::rail_only},
}};
inline constexpr Names<topology::Placement, 2> job_placement_names{{
    {"packed", topology::Placement::packed},
    {"random", topology::Placement::random},
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
