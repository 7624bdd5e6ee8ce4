#include "sim/network/nccl/network.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

bool has_choice(CollectiveKind kind) {
  return kind != CollectiveKind::send_receive && kind != CollectiveKind::all_to_all;
}

/// Channels to one peer: two per NVLink of the path, a power of two up to 16; two per NIC
/// (nccl@v2.28.9-1 paths.cc:817-886).
std::int64_t point_to_point_channels(const NcclMachine& machine) {
  if (machine.shape.nodes > 1) return 2;
  const std::int64_t links = std::max<std::int64_t>(1, nvlinks_within(machine.node, 2));
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::min<std::int64_t>(16, 2 * links))));
}

/// The call that a curve shows. All types that NCCL sums in the same ways stand for each other.
NcclCall call_of(const CollectiveCurve& curve, Bytes bytes) {
  return {.kind = curve.kind,
          .bytes = bytes,
          .dtype = curve.fp8_sums ? workloads::Dtype::fp8 : workloads::Dtype::bf16};
}

std::int64_t point_to_point_ctas(const NcclMachine& machine, const NcclOverrides& overrides) {
  const std::int64_t most = overrides.most_p2p_ctas;
  return std::clamp(point_to_point_channels(machine), std::min(overrides.least_p2p_ctas, most),
                    most);
}

/// Peers share the channels of the communicator, rounded up to a power of two (same place).
std::int64_t all_to_all_ctas(const NcclMachine& machine, const NcclMachine& limited,
                             const NcclOverrides& overrides) {
  const auto shared =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(limited.ring.ctas)));
  const std::int64_t wanted = (machine.shape.ranks - 1) * point_to_point_channels(machine);
  const std::int64_t most = overrides.most_p2p_ctas;
  return std::clamp(std::min(shared, wanted), std::min(overrides.least_p2p_ctas, most), most);
}

}  // namespace

struct CollectiveTimes::Modelled {
  NcclOption option;
  NcclTime time;
};

CollectiveTimes::CollectiveTimes(topology::NodeSpec node, NcclFacts nccl,
                                 const std::vector<CollectiveRow>& rows, NcclOverrides overrides)
    : node_(std::move(node)),
      tuning_(std::move(nccl.tuning)),
      constants_(std::move(nccl.constants)),
      curves_(rows, node_, constants_.measurement),
      overrides_(std::move(overrides)) {}

CollectiveTimes::Modelled CollectiveTimes::model(const NcclCall& call,
                                                 const NcclMachine& machine) const {
  const auto [kind, bytes] = std::pair(call.kind, call.bytes);
  const NcclMachine limited = limited_machine(machine, tuning_, overrides_);
  if (runs_on_copy_engines(tuning_, machine, kind, overrides_)) {
    // Every member copies its share to every other one, in AllGather as in AlltoAll.
    const NcclTime time =
        point_to_point_time(limited, CollectiveKind::all_to_all, bytes, constants_);
    return {{Algorithm::copy_engine, Protocol::simple, time.total(), time.bandwidth}, time};
  }
  if (!has_choice(kind)) {
    NcclTime time = point_to_point_time(limited, kind, bytes, constants_);
    const double planned = static_cast<double>(point_to_point_channels(machine));
    const double share = static_cast<double>(point_to_point_ctas(machine, overrides_)) / planned;
    if (share < 1.0) {
      time.transfer = to_duration(seconds(time.transfer) / share);
      time.bandwidth = time.bandwidth * share;
    }
    return {{Algorithm::p2p, Protocol::simple, time.total(), time.bandwidth}, time};
  }
  // NCCL plans with all channels that its search found, whatever limits the CTAs afterwards.
  return way(call, limited, nccl_choice(tuning_, machine, call, overrides_));
}

CollectiveTimes::Modelled CollectiveTimes::way(const NcclCall& call, const NcclMachine& limited,
                                               const NcclOption& option) const {
  const NcclOption running = nccl_option(tuning_, limited, call, option.algorithm, option.protocol);
  return {option, nccl_time(tuning_, limited, call.kind, call.bytes, running, constants_)};
}

std::int64_t CollectiveTimes::ctas_of(const NcclCall& call, const NcclMachine& machine,
                                      const NcclOption& option) const {
  if (option.algorithm == Algorithm::copy_engine) return 0;
  if (call.kind == CollectiveKind::all_to_all && machine.shape.nodes > 1)
    return all_to_all_ctas(machine, limited_machine(machine, tuning_, overrides_), overrides_);
  if (!has_choice(call.kind)) return point_to_point_ctas(machine, overrides_);
  return nccl_channels(tuning_, limited_machine(machine, tuning_, overrides_), call,
                       option.algorithm, option.protocol, overrides_);
}

/// NCCL may leave an algorithm that we take for slower at some size. A longer message is then not
/// faster than the last one before the change: the longest time just before any change below
/// the call's bytes.
Duration CollectiveTimes::slowest_below(NcclCall call, const NcclMachine& machine) const {
  const Bytes bytes = call.bytes;
  const auto model_of = [&](std::int64_t size) {
    call.bytes = Bytes(size);
    return model(call, machine);
  };
  const auto same = [](const NcclOption& a, const NcclOption& b) {
    return a.algorithm == b.algorithm && a.protocol == b.protocol;
  };
  Duration longest{};
  Modelled low = model_of(1);
  std::int64_t from = 1;
  // NCCL's estimates are straight lines between powers of two, where Tree's share jumps.
  for (std::int64_t octave = 2; from < bytes.value; octave *= 2) {
    for (const std::int64_t end : {octave / 2 * 3 / 2, octave - 1, octave}) {
      const std::int64_t to = std::min(end, bytes.value);
      if (to <= from) continue;
      const Modelled high = model_of(to);
      if (!same(low.option, high.option)) {
        std::int64_t before = from, after = to;
        while (after - before > 1) {
          const std::int64_t middle = before + (after - before) / 2;
          const Modelled between = model_of(middle);
          (same(between.option, low.option) ? before : after) = middle;
        }
        longest = std::max(longest, model_of(before).time.total());
      }
      if (to < bytes.value) longest = std::max(longest, high.time.total());
      low = high;
      from = to;
    }
  }
  return longest;
}

CollectiveTime CollectiveTimes::time_of(const NcclCall& call, const GroupShape& shape) const {
  const auto [kind, bytes] = std::pair(call.kind, call.bytes);
  expects(bytes >= Bytes(0), "a collective of at least no bytes");
  if (shape.ranks < 2 || bytes == Bytes(0)) {
    CollectiveTime nothing;
    nothing.provenance = Provenance::model;
    return nothing;
  }
  expects(shape.ranks_per_node <= node_.gpus, "no more members on a node than it has GPUs");
  const NcclMachine machine = planned_machine(node_, shape, overrides_);
  CollectiveTime out = described(call, machine, model(call, machine));
  out.duration = monotone_model(call, machine);
  correct(out, call, shape);
  out.latency = out.duration - out.transfer;
  out.algbw = bytes / out.duration;
  out.busbw = out.algbw * bus_factor(kind, shape.ranks);
  out.memory_traffic = memory_traffic(kind, out.algorithm, shape.ranks, bytes) / out.duration;
  return out;
}

CollectiveTime CollectiveTimes::time_of_way(const NcclCall& call, const NcclMachine& machine,
                                            const NcclOption& option) const {
  const NcclMachine limited = limited_machine(machine, tuning_, overrides_);
  CollectiveTime out = described(call, machine, way(call, limited, option));
  out.latency = out.duration - out.transfer;
  return out;
}

CollectiveTime CollectiveTimes::described(const NcclCall& call, const NcclMachine& machine,
                                          const Modelled& modelled) const {
  const NcclTime& time = modelled.time;
  CollectiveTime out;
  out.provenance = Provenance::model;
  out.algorithm = modelled.option.algorithm;
  out.protocol = modelled.option.protocol;
  out.nccl_estimate = modelled.option.estimate;
  out.ctas = ctas_of(call, machine, modelled.option);
  out.channels = out.ctas;
  out.hops = time.hops;
  out.network_hops = time.network_hops;
  out.start = time.start;
  out.fill = time.fill;
  out.hop_in_node = time.hop_in_node;
  out.hop_between_nodes = time.hop_between_nodes;
  out.transfer = time.transfer;
  out.messages = time.messages;
  out.duration = time.total();
  return out;
}

Duration CollectiveTimes::monotone_model(const NcclCall& call, const NcclMachine& machine) const {
  const Duration alone = model(call, machine).time.total();
  return has_choice(call.kind) ? std::max(alone, slowest_below(call, machine)) : alone;
}

/// The curve's own group. Beyond its sizes the model of it, times the ratio at the nearest end; in
/// a hole of it the model times a ratio that goes from one edge's to the other's.
Duration CollectiveTimes::extended(const CollectiveCurve& curve, Bytes bytes) const {
  const NcclMachine machine =
      planned_machine(node_, {curve.ranks, curve.nodes, curve.ranks / curve.nodes, 1}, overrides_);
  const auto modelled = [&](Bytes b) {
    return seconds(monotone_model(call_of(curve, b), machine));
  };
  if (const auto hole = curve.hole_at(bytes)) {
    const auto& [low, high] = *hole;
    const double place = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
    const double first = seconds(low.duration) / modelled(low.bytes);
    const double second = seconds(high.duration) / modelled(high.bytes);
    const Duration between = to_duration(modelled(bytes) * first * std::pow(second / first, place));
    return std::clamp(between, low.duration, high.duration);
  }
  if (curve.covers(bytes)) return curve.at(bytes);
  const Bytes end = std::clamp(bytes, curve.smallest(), curve.largest());
  return to_duration(modelled(bytes) * seconds(curve.at(end)) / modelled(end));
}

/// Measured over model, the geometric mean over the sizes of a curve.
double CollectiveTimes::mean_ratio(const CollectiveCurve& curve) const {
  const NcclMachine machine =
      planned_machine(node_, {curve.ranks, curve.nodes, curve.ranks / curve.nodes, 1}, overrides_);
  double sum = 0.0;
  for (const CurvePoint& point : curve.points)
    sum += std::log(seconds(point.duration) /
                    seconds(monotone_model(call_of(curve, point.bytes), machine)));
  return std::exp(sum / static_cast<double>(curve.points.size()));
}

/// Between two measured node counts, log-log in nodes; outside them the model, corrected by the
/// nearest curve as a whole, and on the right side of it. Both never fall with bytes or nodes.
Duration CollectiveTimes::between_nodes(const CollectiveCurves::Neighbours& curves, Bytes bytes,
                                        std::int64_t nodes, Duration modelled) const {
  const auto& [fewer, more] = curves;
  if (fewer && more) {
    const double low = seconds(extended(*fewer, bytes));
    const double high = std::max(low, seconds(extended(*more, bytes)));
    const double place =
        std::log(static_cast<double>(nodes) / static_cast<double>(fewer->nodes)) /
        std::log(static_cast<double>(more->nodes) / static_cast<double>(fewer->nodes));
    return to_duration(low * std::pow(high / low, place));
  }
  const CollectiveCurve& nearest = fewer ? *fewer : *more;
  const Duration corrected = to_duration(seconds(modelled) * mean_ratio(nearest));
  const Duration beside = extended(nearest, bytes);
  return fewer ? std::max({corrected, beside, longest_of_fewer(nearest, bytes)})
               : std::min(corrected, beside);
}

/// What curves of fewer nodes say of a size that this one does not cover: more nodes are not
/// faster.
Duration CollectiveTimes::longest_of_fewer(const CollectiveCurve& curve, Bytes bytes) const {
  Duration longest{};
  for (const CollectiveCurve& other : curves_.all())
    if (other.kind == curve.kind && other.fp8_sums == curve.fp8_sums && other.nodes >= 3 &&
        other.nodes < curve.nodes && other.ranks / other.nodes == curve.ranks / curve.nodes)
      longest = std::max(longest, extended(other, bytes));
  return longest;
}

void CollectiveTimes::correct(CollectiveTime& out, const NcclCall& call,
                              const GroupShape& shape) const {
  const Bytes bytes = call.bytes;
  const Duration modelled = out.duration;
  if (overrides_.pins_anything()) return;  // curves were measured without
  if (const CollectiveCurve* curve = curves_.find(call.kind, shape, call.sums_fp8())) {
    out.rests_on = curve->source;
    out.duration = extended(*curve, bytes);
    if (!curve->covers(bytes))
      out.duration = std::max(out.duration, longest_of_fewer(*curve, bytes));
    out.provenance = curve->hole_at(bytes)     ? Provenance::model
                     : !curve->covers(bytes)   ? Provenance::extrapolated
                     : curve->has_point(bytes) ? Provenance::measured
                                               : Provenance::interpolated;
    if (!curve->here) out.provenance = without_measurements_of_its_own(out.provenance);
  } else if (const auto near = curves_.neighbours(call.kind, shape, call.sums_fp8());
             near.fewer || near.more) {
    const bool within =
        near.fewer && near.more && near.fewer->covers(bytes) && near.more->covers(bytes);
    out.rests_on = (near.fewer ? near.fewer : near.more)->source;
    out.duration = between_nodes(near, bytes, shape.nodes, modelled);
    out.provenance = within ? Provenance::interpolated : Provenance::model;
    if ((near.fewer && !near.fewer->here) || (near.more && !near.more->here))
      out.provenance = without_measurements_of_its_own(out.provenance);
  }
  out.correction = seconds(out.duration) / seconds(modelled);
  out.transfer = to_duration(seconds(out.transfer) * out.correction);
  out.messages = to_duration(seconds(out.messages) * out.correction);
}

namespace {

/// The rank that most bytes go to, so many times the mean, decides.
CollectiveTime slowed(CollectiveTime time, double fullest) {
  if (fullest == 1.0 || time.duration == Duration{}) return time;
  const Duration before = time.duration;
  time.transfer = to_duration(seconds(time.transfer) * fullest);
  time.duration = time.latency + time.transfer;
  const double share = seconds(before) / seconds(time.duration);
  time.memory_traffic = time.memory_traffic * share;
  time.algbw = time.algbw * share;
  time.busbw = time.busbw * share;
  return time;
}

NcclOverrides with_sharp(NcclOverrides overrides, const topology::Cluster& cluster) {
  overrides.fabric_has_sharp = cluster.fabric().sharp;
  return overrides;
}

}  // namespace

NcclNetwork::NcclNetwork(const topology::Cluster& cluster, const topology::Router& router,
                         NcclFacts nccl, const std::vector<CollectiveRow>& rows,
                         NcclOverrides overrides)
    : times_(cluster.node(), nccl, rows, with_sharp(std::move(overrides), cluster)),
      exchanges_(cluster.node(), std::move(nccl.exchanges)),
      paths_(cluster, router),
      loads_(cluster, router) {}

CollectiveTime NcclNetwork::time_of(const workloads::Collective& collective,
                                    const GroupShape& shape) const {
  if (is_node_aware(collective)) return exchanges_.time_of(collective, shape);
  const auto [kind, bytes] = std::pair(collective.kind, collective.bytes);
  const NcclCall call{.kind = kind, .bytes = bytes, .dtype = collective.dtype};
  const CollectiveTime even = paths_.added_to(times_.time_of(call, shape), kind, bytes, shape);
  return kind == CollectiveKind::all_to_all ? slowed(even, collective.tokens.fullest) : even;
}

std::vector<LinkLoad> NcclNetwork::loads_of(const Delivery& delivery,
                                            const std::vector<std::int64_t>& ranks) const {
  return loads_.of(delivery, ranks);
}

}  // namespace stepcast::sim
