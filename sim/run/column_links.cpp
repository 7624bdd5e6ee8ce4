#include "sim/run/column_links.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "engine/check.hpp"
#include "sim/network/links/group_links.hpp"
#include "sim/network/links/load_sum.hpp"
#include "sim/network/links/picture.hpp"
#include "topology/wires.hpp"

namespace stepcast::sim {
namespace {

using topology::LinkId;
using workloads::GroupKind;

std::uint64_t hash_of(const std::vector<GroupUse>& uses) {
  std::uint64_t hash = 1469598103934665603U;
  for (const GroupUse& use : uses)
    for (const std::uint64_t value : {std::uint64_t{use.group}, std::uint64_t{use.column},
                                      std::bit_cast<std::uint64_t>(use.weight)})
      hash = (hash ^ value ^ value >> 29) * 1099511628211U;
  return hash ^ hash >> 31;
}

/// Finds links by what loads them.
class ByUses {
 public:
  explicit ByUses(std::vector<ColumnLink>& links) : links_(links) {
    for (std::uint32_t i = 0; i < links_.size(); ++i) numbers_.emplace(hash_of(links_[i].uses), i);
  }
  std::optional<std::uint32_t> find(const std::vector<GroupUse>& uses) const {
    const auto [from, to] = numbers_.equal_range(hash_of(uses));
    for (auto at = from; at != to; ++at)
      if (links_[at->second].uses == uses) return at->second;
    return std::nullopt;
  }
  /// Links come in ascending order.
  std::uint32_t add(LinkId first, BytesPerSecond capacity, const std::vector<GroupUse>& uses) {
    if (const auto known = find(uses)) {
      links_[*known].capacity = std::min(links_[*known].capacity, capacity);
      return *known;
    }
    const auto number = static_cast<std::uint32_t>(links_.size());
    links_.push_back({first, capacity, uses});
    numbers_.emplace(hash_of(uses), number);
    return number;
  }

 private:
  std::vector<ColumnLink>& links_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> numbers_;  // looked up only, never walked
};

// Both as of LinkPicture.
constexpr double negligible_part = 1e-6;
double most_carried(BytesPerSecond capacity, double fastest) {
  return capacity.value / fastest * (1 - 1e-9);
}

}  // namespace

/// What the groups within column 0, and those over all columns, put on links; per byte of a flow
/// but for the ways, which are still to be added up.
struct ColumnLinkFinder::Picture {
  struct Use {
    std::uint32_t group = 0;
    double weight = 0.0;
  };
  std::map<LinkId, std::vector<Use>> in_column;  // by communicator: nodes and their NICs' cables
  std::vector<double> carried;                   // of the picture by the NICs; by group

  /// Between NICs of nodes.
  struct Way {
    std::int64_t from_stage = 0, out = 0, to_stage = 0, in = 0;
    double weight = 0.0;
  };
  /// Groups whose communicators take turns from column to column; or one ring.
  struct Batch {
    std::vector<std::pair<std::uint32_t, std::vector<Way>>> within;
    std::uint32_t ring = 0;
    std::int64_t stage = 0;
    std::array<std::vector<EvenRing::Edge>, 4> edges;
    std::uint32_t end = 0;  // communicators below it take turns
    GroupKind kind{};
  };
  std::vector<Batch> batches;  // by communicator

  void put(const topology::Cluster& cluster, std::uint32_t group, const GroupFlow& flow, LinkId id,
           double bytes_per_byte) {
    if (bytes_per_byte <= 0.0) return;
    const double weight = bytes_per_byte / flow.unit;
    in_column[id].push_back({group, weight});
    const topology::Link link = topology::link_of(cluster, id);
    if (link.kind != topology::LinkKind::injection) return;
    const BytesPerSecond end = std::max(link.bandwidth, cluster.node().nic);
    carried[group] = std::min(carried[group], most_carried(end, flow.fastest) / weight);
  }
};

ColumnLinkFinder::ColumnLinkFinder(const Columns& columns, const topology::Cluster& cluster,
                                   const topology::StaticRouter& router,
                                   const NetworkModel& network, const EvenLoads& even)
    : columns_(columns),
      cluster_(cluster),
      router_(router),
      network_(network),
      even_(even),
      between_(topology::first_link_between_switches(cluster)) {}

EvenGroup ColumnLinkFinder::even_group(const SpanningGroup& group) const {
  const std::int64_t stage = group.members.front() / columns_.gpus;
  const bool all = group.kind == GroupKind::world;
  EvenGroup out{
      columns_.node(stage, 0), all ? columns_.stages * columns_.count : columns_.count, {}};
  for (const std::uint32_t member : group.members)
    if (member / columns_.gpus == stage) out.members.push_back(member % columns_.gpus);
  return out;
}

std::optional<double> ColumnLinkFinder::unit_of(const Movement& movement) const {
  const auto same = [&](const auto& group) {
    return group.kind == movement.group && group.pattern == movement.pattern;
  };
  if (const auto at = std::ranges::find_if(columns_.within, same); at != columns_.within.end())
    return busiest_end(
        cluster_, loads_of(network_, movement.group, movement.delivery, columns_.ranks_of(*at, 0)));
  const auto at = std::ranges::find_if(columns_.spanning, same);
  expects(at != columns_.spanning.end(), "a kind and pattern of these columns");
  return even_.unit(movement.delivery, even_group(*at));
}

/// False where its way between nodes is not known.
bool ColumnLinkFinder::add_within(std::uint32_t g, const GroupFlow& flow, Picture& picture) const {
  const ColumnGroup& group = columns_.within[g];
  const std::vector<std::int64_t> ranks = columns_.ranks_of(group, 0);
  const Delivery& delivery = flow.movement.delivery;
  for (const LinkLoad& load : loads_of(network_, group.kind, delivery, ranks))
    if (load.link < between_) picture.put(cluster_, g, flow, load.link, load.bytes_per_byte);
  const std::int64_t a = group.members.front() / columns_.gpus;
  const std::int64_t b = group.members.back() / columns_.gpus;
  if (a == b) return true;
  const std::int64_t gpu = group.members.front() % columns_.gpus;
  if (group.members.size() != 2 || gpu != group.members.back() % columns_.gpus) return false;
  std::vector<Picture::Way> ways;
  if (delivery.kind == workloads::CollectiveKind::send_receive) {
    const std::int64_t nic = cluster_.nic_of_gpu(gpu);
    ways.push_back({a, nic, b, nic, 1.0});
  } else {
    if (delivery.algorithm != Algorithm::ring) return false;
    const auto ring = even_.ring(delivery.kind, {columns_.node(a, 0), 2, {gpu}});
    if (!ring) return false;
    for (const auto& edge : ring->edges[1]) ways.push_back({a, edge.out, b, edge.in, edge.weight});
    for (const auto& edge : ring->edges[2]) ways.push_back({b, edge.out, a, edge.in, edge.weight});
  }
  auto& batches = picture.batches;
  const bool goes_on = !batches.empty() && !batches.back().within.empty() &&
                       batches.back().kind == group.kind && group.first < batches.back().end;
  if (!goes_on) {
    batches.emplace_back();
    batches.back().kind = group.kind;
    batches.back().end = group.first + group.step;
  }
  batches.back().within.emplace_back(g, std::move(ways));
  return true;
}

/// Rings whose nodes are alike, and what weighs on no link.
bool ColumnLinkFinder::add_spanning(std::uint32_t g, const GroupFlow& flow,
                                    Picture& picture) const {
  const SpanningGroup& group = columns_.spanning[g - columns_.within.size()];
  const EvenGroup even = even_group(group);
  const Delivery& delivery = flow.movement.delivery;
  const double share = even_.largest_share(delivery, even) / flow.unit;
  if (share * flow.fastest < 0.999 * negligible_part) return true;
  if (delivery.algorithm != Algorithm::ring || group.kind == GroupKind::world) return false;
  auto ring = even_.ring(delivery.kind, even);
  if (!ring) return false;
  const double units = weight_units(cluster_.fabric().routing);
  const LinkId node = static_cast<LinkId>(even.first) * topology::links_of_a_node(cluster_);
  for (const LinkLoad& load : ring->on_node)
    picture.put(cluster_, g, flow, node + load.link, rounded_up(load.bytes_per_byte, units));
  for (std::size_t nic = 0; nic < ring->up.size(); ++nic) {
    const LinkId cable = cluster_.nic_up(even.first, static_cast<std::int64_t>(nic));
    picture.put(cluster_, g, flow, cable, rounded_up(ring->up[nic], units));
    picture.put(cluster_, g, flow, topology::reverse(cable), rounded_up(ring->down[nic], units));
  }
  Picture::Batch& batch = picture.batches.emplace_back();
  batch.ring = g;
  batch.stage = group.members.front() / columns_.gpus;
  batch.edges = std::move(ring->edges);
  return true;
}

std::optional<ColumnLinks> ColumnLinkFinder::find(const std::vector<GroupFlow>& flows) const {
  const auto within = static_cast<std::uint32_t>(columns_.within.size());
  std::vector<std::uint32_t> order(flows.size());
  for (std::uint32_t g = 0; g < order.size(); ++g) order[g] = g;
  std::ranges::sort(order, {}, [&](std::uint32_t g) {
    return g < within ? columns_.within[g].first : columns_.spanning[g - within].communicator;
  });
  Picture picture;
  picture.carried.assign(flows.size(), 1.0);
  for (const std::uint32_t g : order)
    if (!(g < within ? add_within(g, flows[g], picture) : add_spanning(g, flows[g], picture)))
      return std::nullopt;
  ColumnLinks out;
  out.columns = sampled(picture);
  keep_in_columns(picture, flows, out);
  keep_between(picture, flows, out);
  return out;
}

void ColumnLinkFinder::keep_in_columns(const Picture& picture, const std::vector<GroupFlow>& flows,
                                       ColumnLinks& out) const {
  ByUses of_each(out.of_each), of_all(out.of_all);
  for (const auto& [id, all] : picture.in_column) {
    const topology::Link link = topology::link_of(cluster_, id);
    const bool cable = link.kind == topology::LinkKind::injection;
    const BytesPerSecond end =
        cable ? std::max(link.bandwidth, cluster_.node().nic) : link.bandwidth;
    double demand = 0.0;
    bool within = false;
    std::vector<GroupUse> uses;
    for (const auto& [group, of_picture] : all) {
      const double fastest = flows[group].fastest;
      const double weight = std::min(of_picture, most_carried(end, fastest));
      const double most = weight * fastest;
      if (most < negligible_part * link.bandwidth.value) continue;
      demand += most;
      uses.push_back({group, 0, weight});
      within = within || group < columns_.within.size();
    }
    if (demand <= link.bandwidth.value) continue;
    (within ? of_each : of_all).add(id, link.bandwidth, uses);
  }
}

/// Calls use(group, column, weight, links) for every way between switches, by communicator.
template <class Use>
void ColumnLinkFinder::each_way(const Picture& picture, const SampledColumns& columns,
                                Use use) const {
  topology::Path path;
  const auto go = [&](std::uint32_t group, std::int64_t column, std::int64_t from, std::int64_t out,
                      std::int64_t to, std::int64_t in, double weight) {
    if (topology::block_of(cluster_, 1, from, out) == topology::block_of(cluster_, 1, to, in))
      return;
    path.clear();
    router_.append_path(cluster_.nic(from, out), cluster_.nic(to, in), 0, path);
    for (const LinkId link : path)
      if (link >= between_) use(group, static_cast<std::uint32_t>(column), weight, link);
  };
  for (const Picture::Batch& batch : picture.batches) {
    for (std::int64_t i = 0; i < columns.size() && !batch.within.empty(); ++i)
      for (const auto& [group, ways] : batch.within)
        for (const Picture::Way& way : ways)
          go(group, i, columns_.node(way.from_stage, columns.column(i)), way.out,
             columns_.node(way.to_stage, columns.column(i)), way.in, way.weight);
    if (!batch.within.empty()) continue;
    // Of a run of columns only the way to its first one leaves a leaf.
    for (std::int64_t k = columns.period - 1; k < columns_.count; k += columns.period) {
      const std::int64_t next = (k + 1) % columns_.count;
      for (const EvenRing::Edge& edge : batch.edges[static_cast<std::size_t>(k % 2 * 2 + next % 2)])
        go(batch.ring, 0, columns_.node(batch.stage, k), edge.out, columns_.node(batch.stage, next),
           edge.in, edge.weight);
    }
  }
}

/// Columns under one leaf are alike but for the first, to which rings come from another leaf, where
/// leaves hold whole runs of every stage and what goes to each node keeps apart.
SampledColumns ColumnLinkFinder::sampled(const Picture& picture) const {
  const std::int64_t period = topology::nodes_reached_apart(cluster_);
  bool alike = period > 1 && columns_.count % period == 0;
  for (const Picture::Batch& batch : picture.batches)
    for (const auto& edges : batch.edges)
      for (const EvenRing::Edge& edge : edges)
        alike = alike && topology::block_of(cluster_, 1, 0, edge.out) ==
                             topology::block_of(cluster_, 1, 0, edge.in);
  return {alike ? period : 1, columns_.count};
}

void ColumnLinkFinder::keep_between(const Picture& picture, const std::vector<GroupFlow>& flows,
                                    ColumnLinks& out) const {
  const std::size_t num_links = topology::num_links(cluster_) - between_;
  std::vector<double> weights;  // that differ
  const auto number_of = [&](double weight) {
    const auto number =
        static_cast<std::uint32_t>(std::ranges::find(weights, weight) - weights.begin());
    if (number == weights.size()) weights.push_back(weight);
    return number;
  };
  struct Load {
    std::uint32_t group = 0, column = 0, weight = 0;
  };
  // Counted, then placed: the loads of a link lie side by side.
  std::vector<std::uint32_t> end(num_links + 1);
  each_way(picture, out.columns,
           [&](std::uint32_t, std::uint32_t, double, LinkId link) { ++end[link - between_ + 1]; });
  for (std::size_t l = 1; l < end.size(); ++l) end[l] += end[l - 1];
  std::vector<Load> loads(end.back());
  each_way(picture, out.columns,
           [&](std::uint32_t group, std::uint32_t column, double weight, LinkId link) {
             loads[end[link - between_]++] = {group, column, number_of(weight)};
           });

  const double units = weight_units(cluster_.fabric().routing);
  const double narrowest = topology::narrowest_between_switches(cluster_).value;
  const auto within = static_cast<std::uint32_t>(columns_.within.size());
  ByUses of_each(out.of_each), of_some(out.of_some), of_several(out.of_several), of_all(out.of_all);
  std::vector<GroupUse> uses;
  std::uint32_t first = 0;
  for (std::size_t l = 0; l < num_links; first = end[l++]) {
    if (first == end[l]) continue;
    const auto id = static_cast<LinkId>(between_ + l);
    BytesPerSecond capacity(narrowest);
    double demand = 0.0;
    const auto weigh = [&] {
      demand = 0.0;
      uses.clear();
      for (std::uint32_t i = first; i < end[l];) {
        const auto [group, column, number] = loads[i];
        double sum = weights[number];
        for (++i; i < end[l] && loads[i].group == group && loads[i].column == column; ++i)
          sum += weights[loads[i].weight];
        const double fastest = flows[group].fastest;
        const double weight = rounded_up(sum, units) / flows[group].unit * picture.carried[group];
        const double most = weight * fastest;
        if (most < negligible_part * capacity.value) continue;
        demand += most;
        uses.push_back({group, column, weight});
      }
      return demand > capacity.value;
    };
    if (!weigh()) continue;
    capacity = topology::link_of(cluster_, id).bandwidth;
    if (capacity.value != narrowest && !weigh()) continue;
    std::optional<std::uint32_t> column;
    bool several = false;
    for (const GroupUse& use : uses) {
      if (use.group >= within) continue;
      several = several || (column && *column != use.column);
      column = use.column;
    }
    if (!column) {
      of_all.add(id, capacity, uses);
    } else if (several) {
      of_several.add(id, capacity, uses);
    } else {
      for (GroupUse& use : uses) use.column = 0;
      std::uint32_t link = 0;
      if (const auto known = of_each.find(uses))
        link = *known;
      else
        link = static_cast<std::uint32_t>(out.of_each.size()) + of_some.add(id, capacity, uses);
      out.own.push_back({*column, link, id, capacity});
    }
  }
  // Of those of one column that are alike, the first, as narrow as the narrowest.
  std::ranges::stable_sort(out.own, {}, [](const ColumnLinks::Own& own) {
    return std::uint64_t{own.column} << 32 | own.link;
  });
  std::size_t kept = 0;
  for (const ColumnLinks::Own& own : out.own) {
    if (kept > 0 && out.own[kept - 1].column == own.column && out.own[kept - 1].link == own.link)
      out.own[kept - 1].capacity = std::min(out.own[kept - 1].capacity, own.capacity);
    else
      out.own[kept++] = own;
  }
  out.own.resize(kept);
}

}  // namespace stepcast::sim
