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
#include "sim/kernels/launch_floor.hpp"
#include "sim/kernels/operand_types.hpp"
#include "sim/kernels/power_law.hpp"
#include "sim/kernels/sustained.hpp"
#include "sim/network/host/network.hpp"

namespace stepcast::sim {
namespace {

using workloads::Kernel;
using workloads::KernelFamily;

Duration shortest_kernel(const topology::GpuSpec& gpu) { return to_duration(launch_floor_of(gpu)); }

// Of attention to keys that an index chose, backward over forward: DeepSeek V4's on MI355X (Primus
// fd1eeab, 2026).
constexpr double sparse_backward_share = 0.5;

// Of a link's rate, copies of pinned memory: 55 of 63 GB/s over PCIe 5.0 x16
// (Azure/AI-benchmarking-guide, collected 2026); taken for every link.
constexpr double host_copy_reach = 0.87;

// Of the nominal bandwidth of a host's memory, an update that streams through it: what STREAM's
// triad reaches on servers of two sockets (recalled, 2026).
constexpr double host_memory_reach = 0.8;

/// A tensor-core kernel's time within a training step, from the time that its rows say; `Time` is
/// that of a product or of attention.
template <class Time>
Duration sustained(const Time& time, double share, double pace) {
  const double stretched = 1.0 + time.short_run * (1.0 / share - 1.0);
  return to_duration(seconds(time.duration) * stretched / pace);
}

/// A time that was corrected is not the measured one any more.
template <class Time>
Provenance corrected(const Time& time, double share, double pace) {
  const bool touched = pace < 1.0 || (share < 1.0 && time.short_run > 0);
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

/// Of the units that run a kernel of this type: those of 16 bits where others have none of their
/// own.
FlopsPerSecond tensor_peak(const topology::GpuSpec& gpu, workloads::Dtype dtype) {
  const bool low = workloads::bits_per_element(dtype) < 16;
  const FlopsPerSecond peak = low ? peak_of(gpu, dtype) : gpu.tensor_peak;
  return peak.value > 0 ? peak : gpu.tensor_peak;
}

}  // namespace

CalibratedKernels::CalibratedKernels(const CalibrationTable& table, const topology::GpuSpec& gpu,
                                     const workloads::Software& software,
                                     const topology::HostShare& host)
    : gpu_(gpu),
      software_(software),
      gemms_(table.gemm, gpu),
      grouped_(table.gemm, gpu, gemms_),
      attentions_(table.attention, gpu),
      recurrences_(table.attention, gpu),
      elementwise_(table.elementwise, gpu, software.fusion),
      copy_fraction_(sim::copy_fraction(table.copies, gpu)),
      host_(host),
      sustained_share_(sustained_share(gpu)),
      pace_(held_back(gpu).pace) {
  expects(gpu.memory_bandwidth.value > 0, "a GPU with memory bandwidth");
}

KernelTime CalibratedKernels::time_of(const Kernel& kernel) const {
  using enum KernelFamily;
  switch (kernel.family) {
    case gemm:
      return this->gemm(kernel);
    case grouped_gemm:
      return grouped(kernel);
    case attention_forward:
    case attention_backward:
      return attention(kernel);
    case sparse_forward:
    case sparse_backward:
      return sparse(kernel);
    case delta_forward:
    case delta_backward:
    case state_space_forward:
    case state_space_backward:
      return recurrence(kernel);
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
    case host_copy:
    case host_update:
      return on_host(kernel);
  }
  expects(false, "a known kernel family");
  return {};
}

/// A processor core has no published rows and no peak that a guess could rest on.
void CalibratedKernels::refuse_on_host(const Kernel& kernel) const {
  if (gpu_.architecture.host) throw not_measured("kernel " + kernel.name, "it on " + gpu_.name);
}

/// Alike products on several streams fill the SMs like one of all their rows.
KernelTime CalibratedKernels::gemm(const Kernel& kernel) const {
  const GemmShape shape{kernel.m * kernel.streams, kernel.n, kernel.k, kernel.batch};
  const std::string_view layout = gemm_layout(kernel);
  auto time = gemms_.time_of(shape, kernel.dtype, {layout, kernel.accumulate});
  if (!time || time->provenance == Provenance::datasheet) refuse_on_host(kernel);
  expects(time.has_value(), "a GPU that has a peak for this dtype");
  const bool aligned = rows_are_aligned(kernel.m, kernel.n, kernel.k, layout, kernel.dtype);
  if (!aligned && time->provenance != Provenance::measured) {  // rows that answer are aligned
    time->duration = to_duration(seconds(time->duration) * gpu_.architecture.misaligned);
    time->provenance = Provenance::derived;
  }
  time->duration = time->duration / kernel.streams;
  return product(kernel, *time);
}

KernelTime CalibratedKernels::grouped(const Kernel& kernel) const {
  if (gpu_.architecture.host) return one_by_one(kernel);
  const GroupedCall call{
      {kernel.m, kernel.n, kernel.k, kernel.batch}, kernel.accumulate, kernel.one_launch};
  const auto time = grouped_.time_of(call, kernel.dtype, gemms_);
  if (!time || time->provenance == Provenance::datasheet) refuse_on_host(kernel);
  expects(time.has_value(), "a GPU that has a peak for this dtype");
  return product(kernel, *time);
}

/// A core multiplies for one expert after the other.
KernelTime CalibratedKernels::one_by_one(const Kernel& kernel) const {
  Kernel each = kernel;
  each.batch = 1;
  auto time =
      gemms_.time_of({each.m, each.n, each.k}, each.dtype, {gemm_layout(each), each.accumulate});
  if (!time || time->provenance == Provenance::datasheet) refuse_on_host(kernel);
  expects(time.has_value(), "a host that has a peak for this dtype");
  time->duration = time->duration * kernel.batch;
  time->tiles *= kernel.batch;
  return product(kernel, *time);
}

/// At the rate that a step holds, and no faster than its bytes.
KernelTime CalibratedKernels::product(const Kernel& kernel, const GemmTime& time) const {
  const double flops = GemmShape{kernel.m, kernel.n, kernel.k, kernel.batch}.flops();
  const Bytes bytes = std::max(least_bytes(kernel), kernel.bytes);
  const Duration moved =
      bytes / (gpu_.memory_bandwidth *
               bandwidth_fraction(kernel.family, software_.fusion, gpu_.architecture));
  const bool known = time.provenance != Provenance::datasheet;
  const Duration computed = known ? sustained(time, sustained_share_, pace_)
                                  : to_duration(seconds(time.duration) / pace_);
  KernelTime out{.duration = computed,
                 .provenance = corrected(time, sustained_share_, pace_),
                 .tiles = time.tiles};
  // Measured as it is called, memory and all, unless its time is that of other calls.
  if (!time.this_call && moved > computed) {
    out.duration = moved;
    out.provenance = Provenance::derived;
  }
  return finished(out, flops, bytes, multiplied_as(kernel.dtype, gpu_.architecture));
}

KernelTime CalibratedKernels::attention(const Kernel& kernel) const {
  const std::int64_t head_dim = padded_head_dim(kernel.head_dim);
  const AttentionShape shape{.batch = kernel.batch,
                             .heads = kernel.heads,
                             .sequence = kernel.sequence,
                             .head_dim = head_dim,
                             .causal = kernel.causal,
                             .backward = kernel.family == KernelFamily::attention_backward,
                             .value_dim = kernel.value_dim,
                             .window = kernel.window,
                             .dtype = kernel.dtype};
  KernelTime out{.tiles = shape.blocks()};
  if (const auto time = attentions_.time_of(shape, software_.attention.kernel)) {
    out.duration = sustained(*time, sustained_share_, pace_);
    out.provenance = corrected(*time, sustained_share_, pace_);
    if (head_dim != kernel.head_dim) out.provenance = Provenance::derived;
  } else {
    refuse_on_host(kernel);
    const Duration moved = kernel.bytes / gpu_.memory_bandwidth;
    out.duration = std::max({shortest_kernel(gpu_), moved,
                             to_duration(shape.flops() / gpu_.tensor_peak.value /
                                         gpu_.architecture.attention_reach / pace_)});
    out.provenance = Provenance::datasheet;
  }
  return finished(out, shape.flops(), kernel.bytes, kernel.dtype);
}

/// By its FLOPs at a share of the peak, as attention that nobody has measured.
KernelTime CalibratedKernels::by_share(const Kernel& kernel, double share,
                                       Provenance provenance) const {
  refuse_on_host(kernel);
  const Duration moved = kernel.bytes / gpu_.memory_bandwidth;
  KernelTime out{.duration = std::max(
                     {shortest_kernel(gpu_), moved,
                      to_duration(kernel.flops.value / gpu_.tensor_peak.value / share / pace_)}),
                 .provenance = provenance,
                 .tiles = kernel.batch * kernel.heads * ((kernel.sequence + 127) / 128)};
  return finished(out, kernel.flops.value, kernel.bytes, kernel.dtype);
}

KernelTime CalibratedKernels::sparse(const Kernel& kernel) const {
  const double forward = gpu_.architecture.sparse_reach;
  const bool backward = kernel.family == KernelFamily::sparse_backward;
  return by_share(kernel, backward ? forward * sparse_backward_share : forward,
                  Provenance::derived);
}

KernelTime CalibratedKernels::recurrence(const Kernel& kernel) const {
  const auto time = recurrences_.time_of(kernel);
  if (!time) return by_share(kernel, gpu_.architecture.recurrence_reach, Provenance::datasheet);
  refuse_on_host(kernel);
  KernelTime out{.duration = std::max(time->duration, kernel.bytes / gpu_.memory_bandwidth),
                 .provenance = time->provenance,
                 .tiles = kernel.batch * kernel.heads};
  return finished(out, kernel.flops.value, kernel.bytes, kernel.dtype);
}

KernelTime CalibratedKernels::bytes_moved(const Kernel& kernel) const {
  if (const auto time = elementwise_.time_of(kernel))
    return finished({.duration = time->duration, .provenance = time->provenance},
                    kernel.flops.value, kernel.bytes, kernel.dtype);
  refuse_on_host(kernel);
  double fraction = kernel.family == KernelFamily::quantize
                        ? quantize_fraction(kernel.dtype)
                        : bandwidth_fraction(kernel.family, software_.fusion, gpu_.architecture);
  if (kernel.family == KernelFamily::copy) fraction = copy_fraction_.value_or(fraction);
  const Duration moved = kernel.bytes / (gpu_.memory_bandwidth * fraction);
  return finished(
      {.duration = std::max(shortest_kernel(gpu_), moved), .provenance = Provenance::derived},
      kernel.flops.value, kernel.bytes, kernel.dtype);
}

/// A copy draws from the GPU's memory what its link carries, an update nothing.
KernelTime CalibratedKernels::on_host(const Kernel& kernel) const {
  const bool copy = kernel.family == KernelFamily::host_copy;
  const BytesPerSecond rate =
      copy ? host_.link * host_copy_reach : host_.memory * host_memory_reach;
  expects(rate.value > 0, "a node that says how fast its host is");
  const Duration moved = std::max(shortest_kernel(gpu_), kernel.bytes / rate);
  KernelTime time{.duration = moved, .provenance = Provenance::derived};
  if (copy) time.memory_fraction = std::min(1.0, (kernel.bytes / moved) / gpu_.memory_bandwidth);
  return time;
}

KernelTime CalibratedKernels::finished(KernelTime time, double flops, Bytes bytes,
                                       workloads::Dtype dtype) const {
  time.memory_fraction = std::min(1.0, (bytes / time.duration) / gpu_.memory_bandwidth);
  if (time.tiles > 0)
    time.tensor_fraction =
        std::min(1.0, flops / seconds(time.duration) / tensor_peak(gpu_, dtype).value);
  return time;
}

}  // namespace stepcast::sim
