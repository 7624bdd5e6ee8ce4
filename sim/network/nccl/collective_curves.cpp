#include "sim/network/nccl/collective_curves.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/network/nccl/estimate.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

/// NCCL before 2.18 chose and ran otherwise; a row that states no version is taken.
bool old_nccl(const std::string& version) {
  int major = 0, minor = 0;
  const std::size_t dot = version.find('.');
  if (dot == std::string::npos) return false;
  try {
    major = std::stoi(version.substr(0, dot));
    minor = std::stoi(version.substr(dot + 1));
  } catch (const std::exception&) {
    return false;
  }
  return major < 2 || (major == 2 && minor < 18);
}

/// A figure read from a plot says how well in its source ("digitised +-3 GB/s"). Where that is more
/// than 15 % of the bus bandwidth, the row says nothing that the model does not know better.
bool readable(const CollectiveRow& row, CollectiveKind kind) {
  const double bus = (row.bytes / row.duration).value * bus_factor(kind, row.ranks);
  return reading_error(row).value <= 0.15 * bus;
}

/// The row's nodes are joined by the same kind of network.
bool same_network(const CollectiveRow& row, topology::Network network) {
  for (const auto& [name, kind] : network_names)
    if (row.fabric == name) return kind == network;
  return false;
}

/// A what-if node with other NVLinks is not the machine that was measured.
bool same_nvlink(const CollectiveRow& row, const topology::NodeSpec& node) {
  const auto nvlink = nvlink_of(row.gpu, node.gpu);
  return !nvlink || std::abs(node.gpu.nvlink / *nvlink - 1.0) <= 0.02;
}

/// By which share the NICs of a node carry more or less than those of the row. A NIC takes in no
/// more than its PCIe link gives.
double off_by(const CollectiveRow& row, const topology::NodeSpec& node) {
  const double here = std::min(node.nic, node.pcie).value * static_cast<double>(node.nics);
  return std::abs(row.node_bandwidth.value / here - 1.0);
}

bool applies(const CollectiveRow& row, const topology::NodeSpec& node) {
  if (row.bytes <= Bytes(0) || row.duration <= Duration(0) || row.ranks < 2 || row.nodes < 1)
    return false;
  if (row.source->confidence != "high" && row.source->confidence != "medium") return false;
  const Kinship kin = kinship(row.gpu, node.gpu.name);
  if (kin != Kinship::same && kin != Kinship::same_chip) return false;
  if (old_nccl(row.nccl)) return false;
  if (was_forced(row)) return false;  // not what NCCL does
  if (row.nodes == 1) {
    if (!same_nvlink(row, node)) return false;
    if (!node.low_latency_protocols) return false;  // rows of one node had no plugin to forbid them
    const bool cards = node.kind == topology::NodeKind::pcie && node.peer_access;
    return row.fabric.empty() || row.fabric == "nvlink" || (row.fabric == "pcie" && cards);
  }
  if (!same_network(row, node.network)) return false;
  return off_by(row, node) <= 0.1;
}

/// The very GPU with its NVLinks and, between nodes, the very bandwidth.
bool measured_here(const CollectiveRow& row, const topology::NodeSpec& node) {
  return kinship(row.gpu, node.gpu.name) == Kinship::same && same_nvlink(row, node) &&
         (row.nodes == 1 || off_by(row, node) <= 0.01);
}

bool sums_fp8(const CollectiveRow& row, CollectiveKind kind) {
  return row.dtype.starts_with("fp8") &&
         NcclCall{.kind = kind, .dtype = workloads::Dtype::fp8}.sums_fp8();
}

/// What one run of one benchmark has in common; vendors' prose differs from row to row.
using RunKey = std::tuple<CollectiveKind, bool, std::int64_t, std::int64_t, std::string,
                          std::string, std::string, std::string>;

RunKey key_of(const CollectiveRow& row, CollectiveKind kind) {
  return {kind,       sums_fp8(row, kind),  row.ranks, row.nodes, row.gpu, row.nccl,
          row.timing, row.source->reference};
}

void make_curve(CollectiveCurve& curve) {
  std::sort(curve.points.begin(), curve.points.end(), [](const CurvePoint& a, const CurvePoint& b) {
    return std::tie(a.bytes, a.duration) < std::tie(b.bytes, b.duration);
  });
  // Of two figures for one size the first in order, the shorter, stays.
  const auto last =
      std::unique(curve.points.begin(), curve.points.end(),
                  [](const CurvePoint& a, const CurvePoint& b) { return a.bytes == b.bytes; });
  curve.points.erase(last, curve.points.end());
  Duration longest{};
  for (CurvePoint& point : curve.points)
    longest = point.duration = std::max(point.duration, longest);
}

/// A figure or two is no curve.
bool is_curve(const CollectiveCurve& curve) {
  return curve.points.size() >= 3 && curve.largest().value >= 4 * curve.smallest().value;
}

/// The better of two runs of one collective over one shape.
bool better(const CollectiveCurve& a, const CollectiveCurve& b, const std::string& gpu) {
  const bool a_same = kinship(a.gpu, gpu) == Kinship::same;
  const bool b_same = kinship(b.gpu, gpu) == Kinship::same;
  if (a_same != b_same) return a_same;
  return a.points.size() > b.points.size();
}

}  // namespace

bool CollectiveCurve::has_point(Bytes bytes) const {
  return std::any_of(points.begin(), points.end(),
                     [&](const CurvePoint& p) { return p.bytes == bytes; });
}

Duration CollectiveCurve::at(Bytes bytes) const {
  expects(covers(bytes), "a size within the measured ones");
  const auto above = std::lower_bound(points.begin(), points.end(), bytes,
                                      [](const CurvePoint& p, Bytes b) { return p.bytes < b; });
  if (above->bytes == bytes) return above->duration;
  const CurvePoint& low = *(above - 1);
  const double position = std::log(bytes / low.bytes) / std::log(above->bytes / low.bytes);
  const double growth = seconds(above->duration) / seconds(low.duration);
  return to_duration(seconds(low.duration) * std::pow(growth, position));
}

std::optional<std::pair<CurvePoint, CurvePoint>> CollectiveCurve::hole_at(Bytes bytes) const {
  constexpr double widest = 16.0;
  if (!covers(bytes) || has_point(bytes)) return std::nullopt;
  const auto above = std::upper_bound(points.begin(), points.end(), bytes,
                                      [](Bytes b, const CurvePoint& p) { return b < p.bytes; });
  const CurvePoint& low = *(above - 1);
  if (above->bytes / low.bytes <= widest) return std::nullopt;
  return std::pair{low, *above};
}

CollectiveCurves::CollectiveCurves(const std::vector<CollectiveRow>& rows,
                                   const topology::NodeSpec& node,
                                   const MeasurementConstants& measuring) {
  std::map<RunKey, CollectiveCurve> runs;
  for (const CollectiveRow& row : rows) {
    if (!applies(row, node)) continue;
    const auto kind = collective_kind(row);
    if (!kind || !readable(row, *kind)) continue;
    const auto duration = device_time(row, measuring);
    if (!duration) continue;
    CollectiveCurve& curve = runs[key_of(row, *kind)];
    curve.gpu = row.gpu;
    curve.kind = *kind;
    curve.ranks = row.ranks;
    curve.nodes = row.nodes;
    if (curve.source.empty()) curve.source = row.source->source;
    curve.points.push_back({row.bytes, *duration});
    curve.fp8_sums = sums_fp8(row, *kind);
    curve.here = curve.here && measured_here(row, node);
  }
  for (auto& [key, curve] : runs) {
    make_curve(curve);
    if (!is_curve(curve)) continue;
    const auto rival = std::find_if(curves_.begin(), curves_.end(), [&](const CollectiveCurve& c) {
      return c.kind == curve.kind && c.fp8_sums == curve.fp8_sums && c.ranks == curve.ranks &&
             c.nodes == curve.nodes;
    });
    if (rival == curves_.end())
      curves_.push_back(std::move(curve));
    else if (better(curve, *rival, node.gpu.name))
      *rival = std::move(curve);
  }
}

const CollectiveCurve* CollectiveCurves::find(CollectiveKind kind, const GroupShape& shape,
                                              bool fp8_sums) const {
  for (const CollectiveCurve& curve : curves_)
    if (curve.kind == kind && curve.fp8_sums == fp8_sums && curve.ranks == shape.ranks &&
        curve.nodes == shape.nodes)
      return &curve;
  return nullptr;
}

CollectiveCurves::Neighbours CollectiveCurves::neighbours(CollectiveKind kind,
                                                          const GroupShape& shape,
                                                          bool fp8_sums) const {
  Neighbours found;
  if (shape.nodes < 3) return found;
  for (const CollectiveCurve& curve : curves_) {
    if (curve.kind != kind || curve.fp8_sums != fp8_sums || curve.nodes < 3) continue;
    if (curve.ranks * shape.nodes != shape.ranks * curve.nodes) continue;
    if (curve.nodes <= shape.nodes && (!found.fewer || curve.nodes > found.fewer->nodes))
      found.fewer = &curve;
    if (curve.nodes >= shape.nodes && (!found.more || curve.nodes < found.more->nodes))
      found.more = &curve;
  }
  return found;
}

}  // namespace stepcast::sim
