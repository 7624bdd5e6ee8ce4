#include "sim/kernels/recurrence_times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/arithmetic.hpp"
#include "sim/kernels/launch_floor.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

using workloads::Kernel;
using workloads::KernelFamily;

// The libraries that trainers call: Megatron core, torchtitan and transformers have
// flash-linear-attention's Triton kernels and mamba's (read 2026-08). Their rows are of these and
// of copies in TensorRT-LLM and SGLang. FlashInfer has no backward; FlashQLA (2026-08) has one, and
// nobody calls it yet.
constexpr std::string_view delta_library = "fla_delta";
constexpr std::string_view state_space_library = "mamba_state_space";

// Rate of a backward where none was measured, over the forward's: median of 12 shapes of
// flash-linear-attention 0.5 on H200 and GB200, 2.5 times the FLOPs in 3.1 times as long
// (FlashQLA's comparison, c18a486, 2026-08).
constexpr double backward_over_forward = 0.80;

// Rates go with the memory bandwidth to this power where a GPU's generation has no row: the delta
// rule's forward on L40S, RTX PRO 6000 and H100 against H200 and B200, within 40 % (derived,
// 2026-11).
constexpr double power_of_bandwidth = 0.7;

/// A GPU that stands for those of other generations, and the bandwidth of its entry.
struct Reference {
  std::string_view gpu;
  BytesPerSecond bandwidth;
};
constexpr Reference delta_reference{"H200-SXM-141GB", BytesPerSecond(4.8e12)};
constexpr Reference state_space_reference{"B200-SXM-180GB", BytesPerSecond(8.0e12)};

bool is_state_space(KernelFamily family) {
  return family == KernelFamily::state_space_forward ||
         family == KernelFamily::state_space_backward;
}

}  // namespace

bool is_recurrence(const AttentionRow& row) {
  return row.implementation.ends_with("_delta") || row.implementation.ends_with("_state_space");
}

RecurrenceTimes::RecurrenceTimes(const std::vector<AttentionRow>& rows,
                                 const topology::GpuSpec& gpu)
    : floor_(launch_floor_of(gpu)) {
  for (const bool state_space : {false, true}) {
    const std::string_view library = state_space ? state_space_library : delta_library;
    const Reference& reference = state_space ? state_space_reference : delta_reference;
    Kinship closest = Kinship::foreign;
    for (const AttentionRow& row : rows)
      if (row.implementation == library) closest = std::min(closest, kinship(row.gpu, gpu));
    const bool foreign = closest == Kinship::foreign;
    const double scale =
        foreign ? std::pow(gpu.memory_bandwidth / reference.bandwidth, power_of_bandwidth) : 1.0;
    for (const AttentionRow& row : rows) {
      if (row.implementation != library) continue;
      if (foreign ? row.gpu != reference.gpu : kinship(row.gpu, gpu) != closest) continue;
      points_.push_back({.state_space = state_space,
                         .backward = row.pass == "backward",
                         .sequence = static_cast<double>(row.sequence),
                         .sequences_heads = static_cast<double>(row.batch * row.heads),
                         .rate = row.rate.value * scale,
                         .provenance = closest <= Kinship::same_chip ? Provenance::interpolated
                                       : foreign                     ? Provenance::derived
                                                                     : Provenance::extrapolated});
    }
  }
}

/// At the rate of the shapes that are most alike; a longer or a wider one does more of the same.
std::optional<RecurrenceTime> RecurrenceTimes::nearest(const Kernel& kernel, bool backward) const {
  const bool state_space = is_state_space(kernel.family);
  const auto away = [&](const Point& p) {
    return std::abs(std::log(p.sequence / static_cast<double>(kernel.sequence))) +
           std::abs(std::log(p.sequences_heads / static_cast<double>(kernel.batch * kernel.heads)));
  };
  double least = std::numeric_limits<double>::infinity();
  for (const Point& p : points_)
    if (p.state_space == state_space && p.backward == backward) least = std::min(least, away(p));
  if (!(least < std::numeric_limits<double>::infinity())) return std::nullopt;
  std::vector<double> rates;
  Provenance provenance{};
  constexpr double same = 1e-9;
  for (const Point& p : points_) {
    if (p.state_space != state_space || p.backward != backward || away(p) > least + same) continue;
    rates.push_back(p.rate);
    provenance = p.provenance;
  }
  return RecurrenceTime{to_duration(floor_ + kernel.flops.value / median(std::move(rates))),
                        provenance};
}

std::optional<RecurrenceTime> RecurrenceTimes::time_of(const Kernel& kernel) const {
  const bool backward = workloads::mixes_backward(kernel.family);
  if (auto time = nearest(kernel, backward)) return time;
  auto time = nearest(kernel, !backward);
  if (!time) return std::nullopt;
  time->duration = to_duration(seconds(time->duration) / backward_over_forward);
  time->provenance = Provenance::derived;
  return time;
}

}  // namespace stepcast::sim
