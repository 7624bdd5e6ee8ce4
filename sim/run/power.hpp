// Mean power of one GPU over a step, from what its parts do. Knows utilisations, not kernels.
#pragma once

#include "engine/units.hpp"
#include "sim/kernels/power_law.hpp"
#include "topology/specs.hpp"

namespace stepcast::sim {

/// Shares of the step, each 0..1, mean over the GPUs.
struct Utilization {
  double tensor = 0.0;         // of the time, kernels on tensor cores run
  double memory = 0.0;         // HBM bandwidth used by kernels
  double communication = 0.0;  // a collective is resident, moving or waiting
};

/// A kernel on tensor cores draws its full share whatever rate it reaches: GEMM loops sit at TDP at
/// 65 to 80 % of peak (700 W in NVIDIA/cutlass's GEMM measurement guideline; training reaches or
/// passes TDP while it computes, arXiv 2308.12908), and NVML shows the limit, not the rate.
/// P = idle + tensor x 0.80 TDP + memory x 0.20 TDP + communication x 0.125 TDP, at most TDP:
/// the shares are an engineering estimate of 2026-11 (communication 0.10 to 0.15 TDP; low
/// confidence: no public figure of a GPU's power while it only communicates was found). `idle` is
/// what a GPU draws with a context loaded: idle power of an empty card plus 7 % of TDP (112-122 W
/// seen on H100, 65 W on A100, against 70 and 60 W empty). Under a power cap or a locked clock the
/// part of tensor cores shrinks by power_law.hpp, and nothing draws more than the cap.
Watts mean_power(const topology::GpuSpec& gpu, const Utilization& utilization);

}  // namespace stepcast::sim
