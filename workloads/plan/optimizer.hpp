// Which parameters each form of optimizer takes, and how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "workloads/plan/plan.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {

constexpr std::string_view name_of(Optimizer optimizer) {
  constexpr std::string_view names[] = {"adam", "adam_8bit", "adafactor", "muon", "sgd"};
  return names[static_cast<std::size_t>(optimizer)];
}

/// Muon takes the matrices of layers, AdamW embedding, head and vectors
/// (is_managed_by_layer_wise_optimizer() of Megatron core optimizer/layer_wise_optimizer.py at
/// d98e8a6, read 2026-11).
inline bool by_muon(const ParameterTensor& p) {
  return p.matrix() && p.matmul && p.name != "head" && !p.frozen;
}

/// bitsandbytes keeps moments of smaller tensors in fp32 (optim/optimizer.py init_state() at
/// 06029dd6, read 2026-11).
inline constexpr std::int64_t least_of_8bit = 4096;

/// Of the moments of so many elements.
inline bool in_8bit(const ParameterTensor& p, std::int64_t elements, bool wide_embedding) {
  return elements >= least_of_8bit && !(wide_embedding && p.name == "embedding");
}

}  // namespace stepcast::workloads
