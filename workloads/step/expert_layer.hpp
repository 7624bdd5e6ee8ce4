// The experts of one layer by themselves, as benchmarks time them: no attention, no step round
// them.
#pragma once

#include "workloads/pieces/piece.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::workloads {

/// Kernels of the program that stand before forward and before backward.
inline constexpr const char* before_layer_forward = "benchmark.product";
inline constexpr const char* before_layer_backward = "benchmark.gradient";

/// One iteration of Megatron-LM's benchmark of a layer (tests/functional_tests/test_cases/common/
/// moe_perf/__main__.py, read 2026-11): a long product, under which the host launches ahead;
/// forward with the casts of its weights; an output gradient drawn at random; backward; and the
/// host waits for the device. No gradient is reduced, no hook called.
StepProgram make_expert_layer_program(const StepInputs&);

}  // namespace stepcast::workloads
