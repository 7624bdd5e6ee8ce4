#include "sim/kernels/sustained.hpp"

#include <algorithm>
#include <cmath>

#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {

// Published kernels are timed in short runs; a training step holds the GPU at its power limit for
// minutes. What it then keeps of the rate was read off one part of each generation
// (scenarios/architectures, with its source).

/// What is left of the short-run rate of tensor cores at a part's own power limit. Near it, power
/// is clock x voltage^2 and voltage follows the clock, so the clock follows the cube root of the
/// watts of an SM. Measured: a V100 (compute-bound image model) at 175, 200, 250 W runs 1 : 1.05
/// : 1.13 (bradrlaw/ai-server PR 32, 2026), the cube root 1 : 1.05 : 1.13; an A100 PCIe of 250 W
/// loses a third of an SXM's rate in CUTLASS (NVIDIA/cutlass issue 956, 2023). Blackwell follows
/// the watts more closely. What is left is told as a share of the part's own peak.
double sustained_share(const topology::GpuSpec& gpu) {
  const topology::Architecture& a = gpu.architecture;
  if (a.sustained_sms == 0) return a.sustained;
  if (gpu.tdp.value <= 0.0) return a.sustained;
  const auto sms = static_cast<double>(gpu.sms), read_on = static_cast<double>(a.sustained_sms);
  const double watts = gpu.tdp.value / sms / (a.sustained_tdp.value / read_on);
  const double clock =
      std::min(a.highest_clock, gpu.tensor_peak.value / sms / (a.sustained_peak.value / read_on));
  return std::min(1.0, a.sustained * std::pow(watts, a.sustained_exponent) / clock);
}

double sustained_share_of(std::string_view measured, const topology::GpuSpec& gpu) {
  topology::GpuSpec other = gpu;
  if (const topology::GpuRelative* relative = relative_of(measured, gpu)) {
    other.tensor_peak = relative->tensor_peak;
    other.tdp = relative->tdp;
    other.sms = relative->sms;
  }
  return sustained_share(other);
}

}  // namespace stepcast::sim
