#include "sim/kernels/calibrated_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "engine/check.hpp"
#include "sim/kernels/alignment.hpp"
#include "sim/kernels/bandwidth_fractions.hpp"
#include "sim/kernels/kernel_names.hpp"
#include "sim/network/host/network.hpp"

namespace stepcast::sim {
namespace {

using workloads::Kernel;
using workloads::KernelFamily;

// A kernel that moves next to nothing still takes 2-4 us on the device (recalled, 2026).
constexpr Duration shortest_kernel = 3_us;

// Of the tensor peak, where no attention kernel was measured on a GPU: between FlashAttention-2 on
// A100 (0.6) and FlashAttention-3's backward on H100 (0.45), causal, head dimension 128 (published
// table, 2026-11).
constexpr double attention_reach = 0.5;

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

// The part of each generation that its rows were measured on: what a step holds of their rate at
// its power limit, the limit of an SM, the peak of an SM.
struct PowerReference {
  double sustained;
  double watts_per_sm;
  double peak_per_sm;
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
    case topology::Architecture::host:
      return std::nullopt;
  }
  throw BrokenPromise("unknown architecture");
}

/// What is left of the short-run rate of tensor cores at a part's own power limit. Near it, power
/// is clock x voltage^2 and voltage follows the clock, so the clock follows the cube root of the
/// watts of an SM. Measured: a V100 (compute-bound image model) at 175, 200, 250 W runs 1 : 1.05
/// : 1.13 (bradrlaw/ai-server PR 32, 2026), the cube root 1 : 1.05 : 1.13; an A100 PCIe of 250 W
/// loses a third of an SXM's rate in CUTLASS (NVIDIA/cutlass issue 956, 2023). A part whose peak is
/// stated at a lower clock has given that already.
double sustained_share(const topology::GpuSpec& gpu) {
  const auto reference = power_reference(gpu.architecture);
  if (!reference) return 1.0;
  if (gpu.tdp.value <= 0.0) return reference->sustained;
  const auto sms = static_cast<double>(gpu.sms);
  const double watts = gpu.tdp.value / sms / reference->watts_per_sm;
  const double clock = std::min(1.0, gpu.tensor_peak.value / sms / reference->peak_per_sm);
  return std::min(1.0, reference->sustained * std::cbrt(watts) / clock);
}

/// A tensor-core kernel's time within a training step, from the time that its rows say; `Time` is
/// that of a product or of attention.
template <class Time>
Duration sustained(const Time& time, double share) {
  return to_duration(seconds(time.duration) * (1.0 + time.short_run * (1.0 / share - 1.0)));
}

/// A time that was corrected is not the measured one any more.
template <class Time>
Provenance corrected(const Time& time, double share) {
  const bool touched = share < 1.0 && time.short_run > 0;
  return time.provenance == Provenance::measured && touched ? Provenance::interpolated
                                                            : time.provenance;
}

/// What a product must read and write: A and B once, C once, in 16 bits at least, or twice in fp32
/// where it adds to fp32 gradients. Operands of fewer bits are read with their scales, 1/32 of the
/// bytes or less, which are left out.
Bytes least_bytes(const Kernel& k) {
  const std::int64_t bits = workloads::bits_per_element(k.dtype);
  const std::int64_t per_output = k.accumulate ? 8 : std::max<std::int64_t>(2, bits / 8);
  return Bytes(k.batch * ((k.m * k.k + k.k * k.n) * bits / 8 + k.m * k.n * per_output));
}

}  // namespace

CalibratedKernels::CalibratedKernels(const CalibrationTable& table, const topology::GpuSpec& gpu,
                                     const workloads::Software& software)
    : gpu_(gpu),
      software_(software),
      gemms_(table.gemm, gpu),
      attentions_(table.attention, gpu),
      elementwise_(table.elementwise, gpu),
      copy_fraction_(sim::copy_fraction(table.copies, gpu)),
      sustained_share_(sustained_share(gpu)) {
  expects(gpu.memory_bandwidth.value > 0, "a GPU with memory bandwidth");
}

KernelTime CalibratedKernels::time_of(const Kernel& kernel) const {
  using enum KernelFamily;
  switch (kernel.family) {
    case gemm:
    case grouped_gemm:
      return this->gemm(kernel);
    case attention_forward:
    case attention_backward:
      return attention(kernel);
    case quantize:
    case permute:
    case router:
    case pointwise:
    case norm:
    case norm_backward:
    case rope:
    case activation:
    case reduction:
    case softmax:
    case embedding:
    case copy:
    case optimizer:
      return bytes_moved(kernel);
  }
  expects(false, "a known kernel family");
  return {};
}

/// A processor core has no published rows and no peak that a guess could rest on.
void CalibratedKernels::refuse_on_host(const Kernel& kernel) const {
  if (gpu_.architecture == topology::Architecture::host)
    throw not_measured("kernel " + kernel.name, "it on " + gpu_.name);
}

KernelTime CalibratedKernels::gemm(const Kernel& kernel) const {
  const GemmShape shape{kernel.m, kernel.n, kernel.k, kernel.batch};
  const std::string_view layout = gemm_layout(kernel);
  auto time = gemms_.time_of(shape, kernel.dtype, {layout, kernel.accumulate});
  if (!time || time->provenance == Provenance::datasheet) refuse_on_host(kernel);
  expects(time.has_value(), "a GPU that has a peak for this dtype");
  const bool aligned = rows_are_aligned(kernel.m, kernel.n, kernel.k, layout, kernel.dtype);
  if (!aligned && time->provenance != Provenance::measured) {  // rows that answer are aligned
    time->duration = to_duration(seconds(time->duration) * misaligned_stretch(gpu_.architecture));
    time->provenance = Provenance::derived;
  }
  const Bytes bytes = std::max(least_bytes(kernel), kernel.bytes);
  const Duration moved =
      bytes / (gpu_.memory_bandwidth *
               bandwidth_fraction(kernel.family, software_.fusion, gpu_.architecture));
  if (time->this_call)  // measured as it is called, memory and all
    return finished({.duration = sustained(*time, sustained_share_),
                     .provenance = corrected(*time, sustained_share_),
                     .tiles = time->tiles},
                    shape.flops(), bytes);
  const bool known = time->provenance != Provenance::datasheet;
  const Duration computed = known ? sustained(*time, sustained_share_) : time->duration;
  KernelTime out{
      .duration = std::max(computed, moved),
      .provenance = moved > computed ? Provenance::derived : corrected(*time, sustained_share_),
      .tiles = time->tiles};
  return finished(out, shape.flops(), bytes);
}

KernelTime CalibratedKernels::attention(const Kernel& kernel) const {
  const std::int64_t head_dim = padded_head_dim(kernel.head_dim);
  const AttentionShape shape{.batch = kernel.batch,
                             .heads = kernel.heads,
                             .sequence = kernel.sequence,
                             .head_dim = head_dim,
                             .causal = kernel.causal,
                             .backward = kernel.family == KernelFamily::attention_backward};
  KernelTime out{.tiles = shape.blocks()};
  if (const auto time = attentions_.time_of(shape, software_.attention.kernel)) {
    out.duration = sustained(*time, sustained_share_);
    out.provenance = corrected(*time, sustained_share_);
    if (head_dim != kernel.head_dim) out.provenance = Provenance::derived;
  } else {
    refuse_on_host(kernel);
    const Duration moved = kernel.bytes / gpu_.memory_bandwidth;
    out.duration =
        std::max({shortest_kernel, moved,
                  to_duration(shape.flops() / gpu_.tensor_peak.value / attention_reach)});
    out.provenance = Provenance::datasheet;
  }
  return finished(out, shape.flops(), kernel.bytes);
}

KernelTime CalibratedKernels::bytes_moved(const Kernel& kernel) const {
  if (const auto time = elementwise_.time_of(kernel))
    return finished({.duration = time->duration, .provenance = time->provenance},
                    kernel.flops.value, kernel.bytes);
  refuse_on_host(kernel);
  double fraction = bandwidth_fraction(kernel.family, software_.fusion, gpu_.architecture);
  if (kernel.family == KernelFamily::copy) fraction = copy_fraction_.value_or(fraction);
  const Duration moved = kernel.bytes / (gpu_.memory_bandwidth * fraction);
  return finished({.duration = std::max(shortest_kernel, moved), .provenance = Provenance::derived},
                  kernel.flops.value, kernel.bytes);
}

KernelTime CalibratedKernels::finished(KernelTime time, double flops, Bytes bytes) const {
  time.memory_fraction = std::min(1.0, (bytes / time.duration) / gpu_.memory_bandwidth);
  if (time.tiles > 0)
    time.tensor_fraction = std::min(1.0, flops / seconds(time.duration) / gpu_.tensor_peak.value);
  return time;
}

}  // namespace stepcast::sim
