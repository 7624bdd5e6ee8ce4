#include "sim/scenario/machine_rules.hpp"

namespace stepcast::sim {
namespace {

using workloads::Recipe;
using OnGpu = const RecipeOnGpu&;

bool microscaled(OnGpu a) { return a.recipe == Recipe::mxfp8 || a.recipe == Recipe::nvfp4; }

std::string refusal(OnGpu a) {
  return a.gpu.name + " cannot run recipe \"" + std::string(name_of(a.recipe)) + "\"";
}

constexpr workloads::Rule<RecipeOnGpu> on_gpu[] = {
    {"recipe", [](OnGpu a) { return a.recipe != Recipe::none && !a.gpu.architecture.fp8; }, refusal,
     [](OnGpu) { return std::string("tensor cores multiply fp8 from Ada and Hopper on"); }},
    {"recipe", [](OnGpu a) { return microscaled(a) && !a.gpu.architecture.microscales; }, refusal,
     [](OnGpu) {
       return std::string(
           "scales of 16 or 32 elements came with Blackwell: take fp8_delayed, "
           "fp8_current or fp8_block");
     }},
    {"recipe", [](OnGpu a) { return a.recipe != Recipe::none && !(a.gpu.fp8_peak.value > 0); },
     refusal, [](OnGpu) { return std::string("its catalogue entry has no fp8_peak"); }},
};

using workloads::TensorOverlap;
using On = const PlanOnNode&;

bool overlaps(On a) { return a.plan.tensor_overlap != TensorOverlap::none && a.plan.tensor > 1; }
bool on_host(On a) { return a.node.gpu.architecture.host; }
bool offloads(On a) { return a.plan.offload.activations > 0.0 || a.plan.offload.optimizer > 0.0; }

std::string overlap_text(On a) {
  return "tensor_overlap = \"" + std::string(name_of(a.plan.tensor_overlap)) + "\"";
}

constexpr workloads::Rule<PlanOnNode> on_node[] = {
    {"tensor_overlap",
     [](On a) {
       return overlaps(a) &&
              (a.node.kind == topology::NodeKind::pcie || a.node.gpus % a.plan.tensor != 0);
     },
     [](On a) {
       return overlap_text(a) + " of " + std::to_string(a.plan.tensor) + " tensor ranks on " +
              a.node.name;
     },
     [](On) { return std::string("its ranks must share one NVLink domain"); }},
    // On Hopper kernels of both streams are kept in order by CUDA_DEVICE_MAX_CONNECTIONS = 1, with
    // which exchanges between experts cannot run beside compute (Megatron core, 2026).
    {"tensor_overlap",
     [](On a) {
       return overlaps(a) && a.plan.tensor_overlap == TensorOverlap::userbuffers &&
              (a.plan.expert.overlap || a.plan.expert.shared_overlap) &&
              a.node.gpu.architecture.one_connection;
     },
     [](On a) { return overlap_text(a) + " beside overlap of experts on " + a.node.gpu.name; },
     [](On) {
       return std::string(
           "before Blackwell user buffers need CUDA_DEVICE_MAX_CONNECTIONS=1, which forbids it");
     }},
    {"dispatcher",
     [](On a) {
       using enum workloads::Dispatcher;
       const workloads::ExpertPlan& expert = a.plan.expert;
       const bool own_kernels =
           expert.dispatcher == node_aware || expert.dispatcher == nvlink_domain;
       return own_kernels && expert.degree * a.plan.expert_tensor() > 1 &&
              (a.node.kind == topology::NodeKind::pcie || a.node.gpu.nvlink.value <= 0.0);
     },
     [](On a) {
       return "dispatcher \"" + std::string(name_of(a.plan.expert.dispatcher)) +
              "\" needs NVLink between the GPUs of a node";
     },
     [](On) { return std::string("take dispatcher = \"all_to_all\""); }},
    {"activation_offload", [](On a) { return offloads(a) && on_host(a); },
     [](On a) { return "offload from " + a.node.name + ", which is the host itself"; },
     [](On) { return std::string("only a GPU's memory can be spared"); }},
    {"optimizer_offload",
     [](On a) { return a.plan.offload.optimizer > 0.0 && !(a.node.host_memory.value > 0); },
     [](On a) { return "optimizer_offload on " + a.node.name + ", whose host is not known"; },
     [](On) {
       return std::string(
           "[cluster.node] host_memory = \"614 GB/s\" are two sockets of eight DDR5-4800 channels");
     }},
};

}  // namespace

std::span<const workloads::Rule<RecipeOnGpu>> recipe_gpu_rules() { return on_gpu; }

// Products of eight bits take operands along the summed dimension alone before Blackwell, whose
// tensor cores read either layout; blocks of 128 run there as microscaled ones (Transformer Engine
// docs, fp8 primer and recipes at d0067d0, 2026).
void suit_gpu(workloads::Precision& precision, const topology::GpuSpec& gpu,
              const std::string& where) {
  workloads::check_rules(recipe_gpu_rules(), RecipeOnGpu{precision.recipe, gpu}, where);
  precision.transposes = precision.recipe != Recipe::none && !gpu.architecture.transposed_fp8;
  precision.emulates_blocks = precision.recipe == Recipe::fp8_block && gpu.architecture.microscales;
}

std::span<const workloads::Rule<PlanOnNode>> plan_node_rules() { return on_node; }

}  // namespace stepcast::sim
