#include "sim/network/measured_time.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "sim/files/collective_words.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

/// PyTorch's collectives on lists of tensors gather into, or scatter from, one buffer, and copy.
Duration copies_of(const CollectiveRow& row, const MeasurementConstants& constants) {
  const bool lists = row.timing == "wall of lists";
  return to_duration(
      lists ? seconds(constants.list_copy) * 1e-6 * static_cast<double>(row.bytes.value) : 0.0);
}

bool one_process(const CollectiveRow& row) {
  return row.processes == "1" && row.timing != "kernel" && row.ranks > 1;
}

/// Sends and receives that one process starts for a call on all its GPUs.
double tasks_of(const CollectiveRow& row) {
  const auto ranks = static_cast<double>(row.ranks);
  if (row.collective == "alltoall") return 2 * ranks * ranks;
  return row.collective == "sendrecv" ? 2 * ranks : 0.0;
}

Duration launches_of(const CollectiveRow& row, const MeasurementConstants& constants) {
  return to_duration(static_cast<double>(row.ranks) * seconds(constants.launch) +
                     tasks_of(row) * seconds(constants.launch_p2p));
}

}  // namespace

bool was_forced(const CollectiveRow& row) {
  return !row.algorithm.empty() ||
         (!row.protocol.empty() && row.protocol.find('(') == std::string::npos);
}

std::optional<CollectiveKind> collective_kind(const CollectiveRow& row) {
  return collective_named(row.collective);
}

Duration as_measured(Duration device, const CollectiveRow& row,
                     const MeasurementConstants& constants) {
  if (row.timing == "kernel") return std::max(device - constants.kernel_timer, device / 2);
  if (!one_process(row)) return device + copies_of(row, constants);
  return std::max(device + constants.single_process, launches_of(row, constants));
}

std::optional<Duration> device_time(const CollectiveRow& row,
                                    const MeasurementConstants& constants) {
  if (row.timing == "kernel") return row.duration + constants.kernel_timer;
  if (!one_process(row)) {
    const Duration device = row.duration - copies_of(row, constants);
    return device > Duration(0) ? std::optional(device) : std::nullopt;
  }
  // Launches vary from call to call by a tenth or so: what is that close to them says little else.
  if (seconds(row.duration) < 1.15 * seconds(launches_of(row, constants))) return std::nullopt;
  return row.duration - constants.single_process;
}

BytesPerSecond reading_error(const CollectiveRow& row) {
  constexpr std::string_view mark = "digitised +-";
  const std::size_t at = row.source->source.find(mark);
  double gigabytes = 0.0;
  if (at == std::string::npos ||
      std::sscanf(row.source->source.c_str() + at + mark.size(), "%lf GB/s", &gigabytes) != 1)
    return {};
  return BytesPerSecond(gigabytes * 1e9);
}

}  // namespace stepcast::sim
