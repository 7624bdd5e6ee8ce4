// What a machine must be able to do: recipes of low precision that a GPU's tensor cores can run and
// how they want operands; what of a plan a node can do: overlap of tensor ranks and exchanges of
// experts over its NVLinks, offload to its host.
#pragma once

#include <span>
#include <string>

#include "topology/specs.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/rules.hpp"

namespace stepcast::sim {

struct RecipeOnGpu {
  workloads::Recipe recipe{};
  const topology::GpuSpec& gpu;
};
std::span<const workloads::Rule<RecipeOnGpu>> recipe_gpu_rules();

/// Says in `precision` what differs by GPU. Throws InputError at `where` for a recipe that the GPU
/// cannot run.
void suit_gpu(workloads::Precision& precision, const topology::GpuSpec& gpu,
              const std::string& where);

struct PlanOnNode {
  const workloads::ParallelPlan& plan;
  const topology::NodeSpec& node;
};
std::span<const workloads::Rule<PlanOnNode>> plan_node_rules();

}  // namespace stepcast::sim
