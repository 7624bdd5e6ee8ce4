#include "sim/scenario/recipe_gpus.hpp"

namespace stepcast::sim {
namespace {

using workloads::Recipe;
using OnGpu = const RecipeOnGpu&;

bool before_hopper(OnGpu a) {
  using enum topology::Architecture;
  const auto architecture = a.gpu.architecture;
  return architecture == volta || architecture == ampere || architecture == host;
}

bool blackwell(const topology::GpuSpec& gpu) {
  return gpu.architecture == topology::Architecture::blackwell;
}

bool microscaled(OnGpu a) { return a.recipe == Recipe::mxfp8 || a.recipe == Recipe::nvfp4; }

std::string refusal(OnGpu a) {
  return a.gpu.name + " cannot run recipe \"" + std::string(name_of(a.recipe)) + "\"";
}

constexpr workloads::Rule<RecipeOnGpu> on_gpu[] = {
    {"recipe", [](OnGpu a) { return a.recipe != Recipe::none && before_hopper(a); }, refusal,
     [](OnGpu) { return std::string("tensor cores multiply fp8 from Ada and Hopper on"); }},
    {"recipe", [](OnGpu a) { return microscaled(a) && !blackwell(a.gpu); }, refusal,
     [](OnGpu) {
       return std::string(
           "scales of 16 or 32 elements came with Blackwell: take fp8_delayed, "
           "fp8_current or fp8_block");
     }},
    {"recipe", [](OnGpu a) { return a.recipe != Recipe::none && !(a.gpu.fp8_peak.value > 0); },
     refusal, [](OnGpu) { return std::string("its catalogue entry has no fp8_peak"); }},
};

}  // namespace

std::span<const workloads::Rule<RecipeOnGpu>> recipe_gpu_rules() { return on_gpu; }

// Products of eight bits take operands along the summed dimension alone before Blackwell, whose
// tensor cores read either layout; blocks of 128 run there as microscaled ones (Transformer Engine
// docs, fp8 primer and recipes at d0067d0, 2026).
void suit_gpu(workloads::Precision& precision, const topology::GpuSpec& gpu,
              const std::string& where) {
  workloads::check_rules(recipe_gpu_rules(), RecipeOnGpu{precision.recipe, gpu}, where);
  precision.transposes = precision.recipe != Recipe::none && !blackwell(gpu);
  precision.emulates_blocks = precision.recipe == Recipe::fp8_block && blackwell(gpu);
}

}  // namespace stepcast::sim
