// What is left of tensor cores' short-run rate while a training step holds a GPU at its power
// limit. Knows no kernel.
#pragma once

#include <string_view>

#include "topology/specs.hpp"

namespace stepcast::sim {

// A B200 that ran hundreds of products (SimuMax configs/system/b200_bf16_ceperm.json, 2025; about
// 100 us to 100 ms each) did some at 1,430 TFLOP/s, as others do in short runs (1,444 at 2048 x
// 4096 x 4096, vLLM pull request 19566), and most alike ones at 1,100: two states of one machine,
// of which the second is what is left at the power limit. The module's 1,000 W are assumed.
inline constexpr double blackwell_sustained = 1100.0 / 1430.0;

/// At the part's own power limit; at most 1.
double sustained_share(const topology::GpuSpec&);
/// The same of the GPU that a row was measured on, a relative of `gpu` in the catalogue; that of
/// `gpu` where it has none of this name.
double sustained_share_of(std::string_view measured, const topology::GpuSpec& gpu);

}  // namespace stepcast::sim
