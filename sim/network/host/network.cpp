#include "sim/network/host/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "engine/units_text.hpp"
#include "sim/files/names.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/network/nccl/estimate.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

// Beyond the measured sizes a line is still a line for a while: shorter ones cost no more than the
// shortest, longer ones go on at its bandwidth; further than this it is no longer interpolation.
constexpr std::int64_t comparable = 2;

struct Read {
  Duration duration{};
  Provenance provenance{};
};

Read read(const CollectiveCurve& curve, Bytes bytes) {
  if (curve.covers(bytes))
    return {curve.at(bytes),
            curve.has_point(bytes) ? Provenance::measured : Provenance::interpolated};
  if (bytes < curve.smallest()) return {curve.points.front().duration, Provenance::interpolated};
  const double longer = bytes / curve.largest();
  return {to_duration(seconds(curve.points.back().duration) * longer),
          longer <= static_cast<double>(comparable) ? Provenance::interpolated
                                                    : Provenance::extrapolated};
}

/// A row that does not say is of one machine.
std::int64_t nodes_of(const CollectiveRow& row) { return std::max<std::int64_t>(row.nodes, 1); }

}  // namespace

InputError not_measured(const std::string& where, const std::string& what) {
  return InputError(where, "no measured time of " + what,
                    "measure it: stepcast-calibrate run --device host --for SCENARIO.toml --out "
                    "FILE.h5, and name FILE.h5 in [calibration] tables");
}

HostNetwork::HostNetwork(const topology::GpuSpec& core, const std::vector<CollectiveRow>& rows,
                         std::string origin, BetweenHosts between)
    : core_(core.name), origin_(std::move(origin)), between_(std::move(between)) {
  using Key = std::tuple<CollectiveKind, std::int64_t, std::int64_t, std::string>;
  std::map<Key, std::map<Bytes, Duration>> measured;
  for (const CollectiveRow& row : rows) {
    const auto kind = collective_kind(row);
    if (kind && row.bytes.value > 0 && kinship(row.gpu, core_) == Kinship::same)
      measured[{*kind, row.ranks, nodes_of(row), is_reduction(*kind) ? row.dtype : ""}][row.bytes] =
          row.duration;  // later rows win
  }
  for (const auto& [key, points] : measured) {
    CollectiveCurve curve{
        core_, std::get<0>(key), std::get<1>(key), std::get<2>(key), "this machine", {}};
    Duration longest{};
    for (const auto& [bytes, duration] : points) {
      longest = std::max(longest, duration);  // a dip is noise
      curve.points.push_back({bytes, longest});
    }
    curves_.push_back({std::move(curve), std::get<3>(key)});
  }
}

/// Of this type, else of another.
const HostNetwork::Measured& HostNetwork::measured(CollectiveKind kind, const GroupShape& shape,
                                                   const std::string& dtype) const {
  const Measured* found = nullptr;
  for (const Measured& one : curves_)
    if (one.curve.kind == kind && one.curve.ranks == shape.ranks &&
        one.curve.nodes == shape.nodes && (found == nullptr || one.dtype == dtype))
      found = &one;
  if (found != nullptr) return *found;
  const std::string where = shape.nodes > 1 ? fmt::format(" on {} nodes", shape.nodes) : "";
  throw not_measured(origin_,
                     fmt::format("{} over {} ranks of {}{}", word_for(collective_names, kind),
                                 shape.ranks, core_, where));
}

/// What a rank sends at the speed of its NIC, which buffers on the way may beat in short messages:
/// they would make all of a group's transfers look as fast (links/picture.cpp).
Duration HostNetwork::on_nic(CollectiveKind kind, Bytes bytes, const GroupShape& shape) const {
  if (shape.nodes < 2 || between_.nic.value <= 0.0) return {};
  const double sent = bus_factor(kind, shape.ranks) * static_cast<double>(bytes.value);
  return to_duration(sent / between_.nic.value);
}

CollectiveTime HostNetwork::time_of(const workloads::Collective& collective,
                                    const GroupShape& shape) const {
  const auto [kind, bytes, dtype] = std::tuple(collective.kind, collective.bytes, collective.dtype);
  CollectiveTime time;
  time.algorithm = Algorithm::p2p;
  time.protocol = Protocol::simple;
  time.channels = time.ctas = 0;
  time.provenance = Provenance::measured;
  if (shape.ranks < 2 || bytes.value == 0) return time;
  const std::string type = is_reduction(kind) ? word_for(dtype_names, dtype) : "";
  const auto& [curve, measured_type] = measured(kind, shape, type);
  const Read found = read(curve, bytes);
  time.duration = time.transfer = std::max(found.duration, on_nic(kind, bytes, shape));
  // A core takes another time to sum other numbers.
  time.provenance =
      measured_type == type ? found.provenance : without_measurements_of_its_own(found.provenance);
  time.rests_on = curve.source;
  if (time.duration > Duration{}) {
    time.algbw = bytes / time.duration;
    time.busbw = time.algbw * bus_factor(kind, shape.ranks);
  }
  return time;
}

/// Sums are scattered, then gathered: every rank sends every other its n-th part in each pass.
std::vector<LinkLoad> HostNetwork::loads_of(const Delivery& delivery,
                                            const std::vector<std::int64_t>& ranks) const {
  if (!between_.links) return {};
  const CollectiveKind kind = delivery.kind;
  const bool pair = kind == CollectiveKind::send_receive;
  auto loads =
      between_.links->of({pair ? kind : CollectiveKind::all_to_all, Algorithm::p2p}, ranks);
  if (kind == CollectiveKind::all_reduce)
    for (LinkLoad& load : loads) load.bytes_per_byte *= 2.0;
  return loads;
}

}  // namespace stepcast::sim
