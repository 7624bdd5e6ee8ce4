#include "sim/network/nccl/network.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "engine/check.hpp"
#include "sim/program/cache.hpp"

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

struct CollectiveTimes::Group {
  NcclMachine planned;
  NcclMachine limited;  // whatever limits the CTAs
};

struct CollectiveTimes::Modelled {
  NcclOption option;
  NcclTime time;

  bool same_way(const Modelled& other) const {
    return option.algorithm == other.option.algorithm && option.protocol == other.option.protocol;
  }
};

struct CollectiveTimes::Memory {
  /// A size that slowest_below() has gone through: NCCL's way there, and the longest time up to it.
  struct Size {
    std::int64_t bytes = 1;
    Modelled modelled;
    Duration longest{};
  };
  using Question = std::tuple<GroupShape, CollectiveKind, workloads::Dtype>;
  static constexpr std::size_t most_groups = 64, most_questions = 256;

  Cache<GroupShape, Group> groups{most_groups};
  std::mutex mutex;                                 // of what follows
  std::map<Question, std::vector<Size>> sizes;      // ascending, from one byte on
  std::map<const CollectiveCurve*, double> ratios;  // mean_ratio()
};

CollectiveTimes::CollectiveTimes(topology::NodeSpec node, NcclFacts nccl,
                                 const std::vector<CollectiveRow>& rows, NcclOverrides overrides)
    : node_(std::move(node)),
      tuning_(std::move(nccl.tuning)),
      constants_(std::move(nccl.constants)),
      curves_(rows, node_, constants_.measurement),
      overrides_(std::move(overrides)),
      memory_(std::make_shared<Memory>()) {}

std::shared_ptr<const CollectiveTimes::Group> CollectiveTimes::group_of(
    const GroupShape& shape) const {
  return memory_->groups.get(shape, [&] {
    NcclMachine planned = planned_machine(node_, shape, overrides_);
    NcclMachine limited = limited_machine(planned, tuning_, overrides_);
    return Group{std::move(planned), std::move(limited)};
  });
}

CollectiveTimes::Modelled CollectiveTimes::model(const NcclCall& call, const Group& group) const {
  const auto [kind, bytes] = std::pair(call.kind, call.bytes);
  const auto& [machine, limited] = group;
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
  return way(call, group, nccl_choice(tuning_, machine, call, overrides_));
}

CollectiveTimes::Modelled CollectiveTimes::way(const NcclCall& call, const Group& group,
                                               const NcclOption& option) const {
  const NcclOption running =
      nccl_option(tuning_, group.limited, call, option.algorithm, option.protocol);
  return {option, nccl_time(tuning_, group.limited, call.kind, call.bytes, running, constants_)};
}

std::int64_t CollectiveTimes::ctas_of(const NcclCall& call, const Group& group,
                                      const NcclOption& option) const {
  if (option.algorithm == Algorithm::copy_engine) return 0;
  if (call.kind == CollectiveKind::all_to_all && group.planned.shape.nodes > 1)
    return all_to_all_ctas(group.planned, group.limited, overrides_);
  if (!has_choice(call.kind)) return point_to_point_ctas(group.planned, overrides_);
  return nccl_channels(tuning_, group.limited, call, option.algorithm, option.protocol, overrides_);
}

namespace {

/// NCCL's estimates are straight lines between powers of two, where Tree's share jumps: the size
/// at which to look after `bytes`.
std::int64_t next_size(std::int64_t bytes) {
  const auto octave =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes) + 1));
  const std::int64_t middle = octave / 2 * 3 / 2;
  return bytes < middle ? middle : bytes < octave - 1 ? octave - 1 : octave;
}

}  // namespace

/// NCCL may leave an algorithm that we take for slower at some size. A longer message is then not
/// faster than the last one before the change: the longest time just before any change below
/// the call's bytes.
Duration CollectiveTimes::slowest_below(const NcclCall& call, const Group& group,
                                        const Modelled& at_its_bytes) const {
  using Size = Memory::Size;
  NcclCall asked = call;
  const auto model_of = [&](std::int64_t bytes) {
    asked.bytes = Bytes(bytes);
    return model(asked, group);
  };
  const auto longest_before = [&](const Size& low, std::int64_t bytes, const Modelled& there) {
    if (low.modelled.same_way(there)) return low.longest;
    std::int64_t before = low.bytes, after = bytes;
    while (after - before > 1) {
      const std::int64_t middle = before + (after - before) / 2;
      (low.modelled.same_way(model_of(middle)) ? before : after) = middle;
    }
    return std::max(low.longest, model_of(before).time.total());
  };
  Size low;
  {
    const std::lock_guard lock(memory_->mutex);
    if (memory_->sizes.size() >= Memory::most_questions) memory_->sizes.clear();
    std::vector<Size>& sizes = memory_->sizes[{group.planned.shape, call.kind, call.dtype}];
    if (sizes.empty()) sizes.push_back({1, model_of(1), {}});
    for (std::int64_t bytes = next_size(sizes.back().bytes); bytes < call.bytes.value;
         bytes = next_size(bytes)) {
      const Modelled there = model_of(bytes);
      const Duration longest = longest_before(sizes.back(), bytes, there);
      sizes.push_back({bytes, there, std::max(longest, there.time.total())});
    }
    const auto end = std::ranges::lower_bound(sizes, call.bytes.value, {}, &Size::bytes);
    if (end == sizes.begin()) return {};  // of one byte
    low = end[-1];
  }
  return longest_before(low, call.bytes.value, at_its_bytes);
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
  const std::shared_ptr<const Group> group = group_of(shape);
  const Modelled modelled = model(call, *group);
  CollectiveTime out = described(call, *group, modelled);
  out.duration = monotone(call, *group, modelled);
  correct(out, call, shape);
  out.latency = out.duration - out.transfer;
  out.algbw = bytes / out.duration;
  out.busbw = out.algbw * bus_factor(kind, shape.ranks);
  out.memory_traffic = memory_traffic(kind, out.algorithm, shape.ranks, bytes) / out.duration;
  return out;
}

CollectiveTime CollectiveTimes::time_of_way(const NcclCall& call, const NcclMachine& machine,
                                            const NcclOption& option) const {
  const Group group{machine, limited_machine(machine, tuning_, overrides_)};
  CollectiveTime out = described(call, group, way(call, group, option));
  out.latency = out.duration - out.transfer;
  return out;
}

CollectiveTime CollectiveTimes::described(const NcclCall& call, const Group& group,
                                          const Modelled& modelled) const {
  const NcclTime& time = modelled.time;
  CollectiveTime out;
  out.provenance = Provenance::model;
  out.algorithm = modelled.option.algorithm;
  out.protocol = modelled.option.protocol;
  out.nccl_estimate = modelled.option.estimate;
  out.ctas = ctas_of(call, group, modelled.option);
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

Duration CollectiveTimes::monotone(const NcclCall& call, const Group& group,
                                   const Modelled& modelled) const {
  const Duration alone = modelled.time.total();
  return has_choice(call.kind) ? std::max(alone, slowest_below(call, group, modelled)) : alone;
}

/// The curve's own group. Beyond its sizes the model of it, times the ratio at the nearest end; in
/// a hole of it the model times a ratio that goes from one edge's to the other's.
Duration CollectiveTimes::extended(const CollectiveCurve& curve, Bytes bytes) const {
  const std::shared_ptr<const Group> group = group_of(curve.shape());
  const auto modelled = [&](Bytes b) {
    const NcclCall call = call_of(curve, b);
    return seconds(monotone(call, *group, model(call, *group)));
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
  {
    const std::lock_guard lock(memory_->mutex);
    if (const auto known = memory_->ratios.find(&curve); known != memory_->ratios.end())
      return known->second;
  }
  const std::shared_ptr<const Group> group = group_of(curve.shape());
  double sum = 0.0;
  for (const CurvePoint& point : curve.points) {
    const NcclCall call = call_of(curve, point.bytes);
    sum += std::log(seconds(point.duration) / seconds(monotone(call, *group, model(call, *group))));
  }
  const double ratio = std::exp(sum / static_cast<double>(curve.points.size()));
  const std::lock_guard lock(memory_->mutex);
  memory_->ratios.emplace(&curve, ratio);
  return ratio;
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
