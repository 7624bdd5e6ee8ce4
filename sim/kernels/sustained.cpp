#include "sim/kernels/sustained.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/check.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

// Published kernels are timed in short runs; a training step holds the GPU at its power limit for
// minutes, and Hopper lowers its clocks then. What is left of the tensor cores' short-run rate was
// read off compute-bound training runs on H100, whose communication is hidden and whose
// memory-bound kernels are few: MPT 13B, 30B and 70B with full recompute on 128 to 512 GPUs (9
// rows, MosaicML llm-foundry 8c8dd48, 2023) take 7 to 13 % longer than with short-run rates;
// Llama-2 7B to 70B under FSDP (pytorch.org and fms-fsdp, 2024) and the MFU of arXiv 2411.13055
// miss in the same direction by 10 to 25 %. A100 needs none: LLaMA 13B on 32 A100 (arXiv
// 2311.05610, tensor and pipeline 1) is met within 1 %. Global for Hopper and for products and
// attention alike. Those shares gave 0.90, with all of vidur's products taken 8 % slower than they
// are published; now that only its down projections are (gemm_times.cpp), steps of the study on
// H100 come out 1 to 4 % shorter, and 0.86 holds their level. Rows of stepcast-calibrate need none:
// each kernel runs for half a second and more on random data right after the last one, so at the
// power limit. Newer libraries may reach more (2026-11).
constexpr double hopper_sustained = 0.86;

// A V100's rows are DeepBench's, hundreds of runs of a millisecond each at up to 0.9 of the peak at
// 1,530 MHz, so at its boost clock. Under fp16 load without a pause it is held by its power limit:
// 1,065, 1,147 and 1,252 MHz at least at 175, 200 and 250 W (bradrlaw/ai-server
// docs/data/comfyui-power-sweep-t2i-20260804.csv, lowest clock of three runs), and by the cube root
// 1,330 MHz at its 300 W.
constexpr double volta_sustained = 1330.0 / 1530.0;

// Ampere keeps its rate: an A100 at 400 W holds 257 TFLOP/s at 8192^3 on random data, 295 on zeros
// (thonking.ai "Strangely, Matrix Multiplications on GPUs Run Faster", 2024); its rows, vidur's,
// promise 262 there.
constexpr double ampere_sustained = 1.0;

// One set of fp8 grouped products runs 2.0 times as fast as on an H100 on a B200 held to 750 W and
// 2.8 times on a GB200 at 1,200 W (pytorch/FBGEMM pull request 4172, 2025): 1.36 times an SM for
// 1.56 times its watts. The peaks of the two, 1.11 apart, are clocks that neither holds.
constexpr double blackwell_exponent = 0.70;

// The part of each generation that its rows were measured on: what a step holds of their rate at
// its power limit, the limit of an SM, the peak of an SM.
struct PowerReference {
  double sustained;
  double watts_per_sm;
  double peak_per_sm;
  double exponent = 1.0 / 3.0;  // of the watts of an SM, which the rate of an SM follows
  double highest_clock = 1.0;   // stated of its parts, as a multiple; a what-if beyond is faster
};

std::optional<PowerReference> power_reference(topology::Architecture architecture) {
  switch (architecture) {
    case topology::Architecture::volta:
      return PowerReference{volta_sustained, 300.0 / 80, 125e12 / 80};
    case topology::Architecture::ampere:
      return PowerReference{ampere_sustained, 400.0 / 108, 312e12 / 108};
    case topology::Architecture::hopper:
      return PowerReference{hopper_sustained, 700.0 / 132, 989.4e12 / 132};
    case topology::Architecture::blackwell:
      return PowerReference{blackwell_sustained, 1000.0 / 148, 2250e12 / 148, blackwell_exponent,
                            (2500e12 / 152) / (2250e12 / 148)};
    case topology::Architecture::host:
      return std::nullopt;
  }
  throw BrokenPromise("unknown architecture");
}

}  // namespace

/// What is left of the short-run rate of tensor cores at a part's own power limit. Near it, power
/// is clock x voltage^2 and voltage follows the clock, so the clock follows the cube root of the
/// watts of an SM. Measured: a V100 (compute-bound image model) at 175, 200, 250 W runs 1 : 1.05
/// : 1.13 (bradrlaw/ai-server PR 32, 2026), the cube root 1 : 1.05 : 1.13; an A100 PCIe of 250 W
/// loses a third of an SXM's rate in CUTLASS (NVIDIA/cutlass issue 956, 2023). Blackwell follows
/// the watts more closely. What is left is told as a share of the part's own peak.
double sustained_share(const topology::GpuSpec& gpu) {
  const auto reference = power_reference(gpu.architecture);
  if (!reference) return 1.0;
  if (gpu.tdp.value <= 0.0) return reference->sustained;
  const auto sms = static_cast<double>(gpu.sms);
  const double watts = gpu.tdp.value / sms / reference->watts_per_sm;
  const double clock =
      std::min(reference->highest_clock, gpu.tensor_peak.value / sms / reference->peak_per_sm);
  return std::min(1.0, reference->sustained * std::pow(watts, reference->exponent) / clock);
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
