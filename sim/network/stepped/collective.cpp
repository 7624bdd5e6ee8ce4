#include "sim/network/stepped/collective.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/check.hpp"
#include "engine/fluid.hpp"
#include "sim/network/stepped/expansion.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

std::vector<BytesPerSecond> capacities_of(const topology::Cluster& cluster) {
  std::vector<BytesPerSecond> out;
  for (const topology::Link& link : cluster.links()) out.push_back(link.bandwidth);
  return out;
}

/// The collective as one flow with its mean rate, over all the links that it loads.
Duration through_links(const CollectiveTime& time, Bytes bytes, const std::vector<LinkLoad>& loads,
                       const std::vector<BytesPerSecond>& capacities) {
  std::vector<engine::LinkLoad> weights;
  for (const LinkLoad& load : loads) weights.push_back({load.link, load.bytes_per_byte});
  const BytesPerSecond mean = bytes / time.duration;
  // Only a link that is too narrow for the mean rate counts: a rate is rounded, a duration is not.
  if (engine::rate_alone(mean, weights, capacities) >= mean * (1 - 1e-9)) return time.duration;
  const Time end =
      engine::end_alone(Time{}, static_cast<double>(bytes.value), mean, weights, capacities);
  return end.time_since_epoch();
}

Duration scaled(Duration d, double factor) { return to_duration(seconds(d) * factor); }

/// What the one-variable form counts for a pipeline that is written out chunk by chunk here. The
/// ramp of a single message is part of its start in both.
Duration filling_of(const CollectiveTime& time) {
  return time.algorithm == Algorithm::p2p ? Duration{} : scaled(time.fill, time.correction);
}

/// A measured curve stretches all its terms alike; wires beside the catalogue's stay as long.
Duration hop_in_node(const CollectiveTime& time) {
  return scaled(time.hop_in_node, time.correction) + time.path_in_node;
}
Duration hop_between_nodes(const CollectiveTime& time) {
  return scaled(time.hop_between_nodes, time.correction) + time.path_between_nodes;
}

/// The hops of the one-variable form.
Duration hops_of(const CollectiveTime& time) {
  return (time.hops - time.network_hops) * hop_in_node(time) +
         time.network_hops * hop_between_nodes(time);
}

void find_busiest(SteppedCollective& out, const TransferGraph& graph,
                  const std::vector<BytesPerSecond>& capacities, Duration moving) {
  const std::vector<double> bytes = graph.bytes_on_links(capacities.size());
  for (topology::LinkId link = 0; link < bytes.size(); ++link) {
    const double use = bytes[link] / (capacities[link].value * seconds(moving));
    if (use <= out.busiest_use) continue;
    out.busiest_use = use;
    out.busiest = link;
  }
}

const char* reason_for_hops(const CollectiveTime& time, CollectiveKind kind) {
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce)
    return "the chain's hops one after another";
  if (time.algorithm == Algorithm::tree || time.algorithm == Algorithm::nvls_tree)
    return "levels of the trees as built; one variable counts log2 of the nodes, rounded down";
  if (time.network_hops == 0) return "a last loop that is not full has as many steps as the others";
  return "the dearest way of a chunk crosses between nodes once more or less than the mean";
}

std::vector<SteppedTerm> terms_of(const SteppedCollective& both, CollectiveKind kind, Duration bare,
                                  Duration with_hops) {
  const CollectiveTime& time = both.alone;
  const Duration hops = hops_of(time);
  const Duration start = both.transfers_start;
  std::vector<SteppedTerm> out{
      {"start", start, start, ""},
      {"hops", hops, with_hops - bare, reason_for_hops(time, kind)},
      {"bytes", time.transfer - time.messages, time.transfer - time.messages, ""},
      {"messages", time.messages, time.messages, ""},
      {"filling", filling_of(time), bare - time.transfer,
       "chunk by chunk through every member; one variable counts rounds of all channels"},
      {"shared links", both.one_variable - time.duration, both.stepped - start - with_hops,
       "transfers meet on links that cannot carry them at once; one variable counts a link's mean "
       "load"}};
  for (SteppedTerm& term : out) {
    const Duration difference = term.stepped - term.one_variable;
    if (std::abs(seconds(difference)) < 1e-4 * seconds(both.one_variable)) term.reason.clear();
  }
  return out;
}

}  // namespace

SteppedCollective step_collective(const topology::Cluster& cluster, const topology::Router& router,
                                  const NetworkModel& network, CollectiveKind kind, Bytes bytes,
                                  workloads::Dtype dtype, const std::vector<std::int64_t>& ranks) {
  SteppedCollective out;
  out.alone = network.time_of(plain_collective(kind, bytes, dtype), shape_of(cluster, ranks));
  if (ranks.size() < 2 || bytes == Bytes(0)) return out;
  const auto capacities = capacities_of(cluster);
  const bool many_pairs = kind == CollectiveKind::send_receive && ranks.size() > 2;
  out.one_variable =
      many_pairs ? out.alone.duration
                 : through_links(out.alone, bytes,
                                 network.loads_of({kind, out.alone.algorithm}, ranks), capacities);

  const SteppedLayout layout(cluster, router, ranks);
  const TransferGraph graph = expand(layout, {.kind = kind,
                                              .algorithm = out.alone.algorithm,
                                              .protocol = out.alone.protocol,
                                              .bytes = bytes,
                                              .transfer = out.alone.transfer,
                                              .hop_in_node = hop_in_node(out.alone),
                                              .hop_between_nodes = hop_between_nodes(out.alone),
                                              .channels = out.alone.channels,
                                              .hops = out.alone.hops});
  const Duration bare =
      makespan(run_transfers(graph, capacities, {.share_links = false, .hops = false}));
  const Duration with_hops = makespan(run_transfers(graph, capacities, {.share_links = false}));
  out.step_ends = run_transfers(graph, capacities);
  const Duration moving = makespan(out.step_ends);
  out.transfers_start = out.alone.latency - hops_of(out.alone) - filling_of(out.alone);
  out.stepped = out.transfers_start + moving;
  for (Duration& end : out.step_ends) end += out.transfers_start;
  out.transfers = static_cast<std::int64_t>(graph.size());
  find_busiest(out, graph, capacities, moving);
  const topology::Link& busiest = cluster.links()[out.busiest];
  out.busiest_name = cluster.name_of(busiest.from) + " > " + cluster.name_of(busiest.to);
  out.terms = terms_of(out, kind, bare, with_hops);
  return out;
}

}  // namespace stepcast::sim
