// What a GPU's tensor cores make of a low-precision recipe: which they can run, and how they want
// its operands.
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

}  // namespace stepcast::sim
