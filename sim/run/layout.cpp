#include "sim/run/layout.hpp"

#include <algorithm>
#include <map>

#include "engine/check.hpp"
#include "sim/network/links/hops.hpp"

namespace stepcast::sim {
namespace {

using workloads::GroupKind;

// A search asks for 24 to 60 layouts. One of 2,048 GPUs takes about a megabyte, and so does each of
// its pictures: steps of one plan move bytes in a few ways.
constexpr std::size_t most_layouts = 64, most_units = 64, most_pictures = 8, most_classes = 8;

void fill_slots(engine::System& s, GroupKind kind, const std::vector<std::int64_t>& ranks) {
  const auto id = static_cast<std::uint32_t>(s.communicators.size());
  const bool pair = workloads::axis_of(kind).meeting == workloads::Meeting::pair;
  for (std::size_t m = 0; m < ranks.size(); ++m)
    s.communicator_of[slot_of(kind, pair && m > 0)][static_cast<std::size_t>(ranks[m])] = id;
}

}  // namespace

LayoutKey layout_key(const workloads::ParallelPlan& plan, const workloads::StepProgram& program) {
  LayoutKey key;
  key.degrees.data_degree = plan.data_degree;
  key.degrees.shard_degree = plan.shards();
  key.degrees.tensor = plan.tensor;
  key.degrees.context = plan.context;
  key.degrees.pipeline = plan.pipeline;
  key.degrees.virtual_stages = plan.virtual_stages;
  key.degrees.expert.degree = plan.expert.degree;
  key.degrees.expert.tensor = plan.expert_tensor();
  if (plan.placement() != workloads::Placement::looped)
    key.degrees.schedule = plan.schedule, key.degrees.orders = plan.orders;
  for (const workloads::Collective& collective : program.collectives)
    key.kinds |= std::uint32_t{1} << static_cast<unsigned>(collective.group);
  return key;
}

Layout::Layout(const LayoutKey& key, const topology::Cluster& cluster, const NetworkModel& network)
    : cluster_(cluster),
      network_(network),
      patterns_of_kind_(workloads::num_group_kinds),
      memory_(new Memory{Cache<Movement, double>(most_units),
                         Cache<std::vector<Movement>, LinkPicture>(most_pictures),
                         Cache<engine::Likeness, engine::Classes>(most_classes)}) {
  const workloads::ParallelPlan& plan = key.degrees;
  for (std::int64_t r = 0; r < plan.ranks(); ++r)
    groups_.role_of_rank.push_back(static_cast<std::uint32_t>(coordinates_of(plan, r).pipeline));
  groups_.communicator_of.assign(
      workloads::num_slots(),
      std::vector<std::uint32_t>(groups_.num_ranks(), engine::no_communicator));
  std::map<GroupShape, std::uint32_t> patterns;
  for (unsigned k = 0; k < workloads::num_group_kinds; ++k) {
    if ((key.kinds >> k & 1U) == 0) continue;
    const auto kind = static_cast<GroupKind>(k);
    for (const auto& ranks : workloads::groups(plan, kind)) {
      fill_slots(groups_, kind, ranks);
      const GroupShape shape = shape_of(cluster, kind, ranks);
      const auto [at, added] =
          patterns.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
      if (added) shapes_.push_back(shape);
      engine::Communicator communicator;
      communicator.members.assign(ranks.begin(), ranks.end());
      communicator.pattern = at->second;
      groups_.communicators.push_back(std::move(communicator));
      kinds_.push_back(kind);
      auto& known = patterns_of_kind_[k];
      if (std::ranges::find(known, at->second) == known.end()) known.push_back(at->second);
    }
    std::ranges::sort(patterns_of_kind_[k]);
  }
  groups_.num_patterns = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(shapes_.size()));
  likeness_of_groups_ = engine::likeness_of_groups(groups_);
}

std::size_t Layout::first_of(const Movement& movement) const {
  for (std::size_t c = 0; c < kinds_.size(); ++c)
    if (kinds_[c] == movement.group && groups_.communicators[c].pattern == movement.pattern)
      return c;
  throw BrokenPromise("a kind and pattern of this layout");
}

std::vector<LinkLoad> Layout::loads_of(const Movement& movement, std::size_t c) const {
  const std::vector<std::uint32_t>& members = groups_.communicators[c].members;
  return sim::loads_of(network_, movement.group, movement.delivery,
                       {members.begin(), members.end()});
}

double Layout::unit_of(const Movement& movement) const {
  return *memory_->units.get(
      movement, [&] { return busiest_end(cluster_, loads_of(movement, first_of(movement))); });
}

std::shared_ptr<const LinkPicture> Layout::picture_of(
    const std::vector<Movement>& movements) const {
  return memory_->pictures.get(movements, [&] {
    LoadList loads;
    return LinkPicture(cluster_, loads, list_loads(movements, loads));
  });
}

/// A communicator within one node loads it as its like in another node does: nodes are copies.
/// Returns, by communicator, its movement.
std::vector<std::uint32_t> Layout::list_loads(const std::vector<Movement>& movements,
                                              LoadList& loads) const {
  std::vector<std::uint32_t> movement_of;
  std::map<std::pair<GroupKind, std::uint32_t>, std::uint32_t> by_group;
  for (const Movement& m : movements)
    by_group[{m.group, m.pattern}] = static_cast<std::uint32_t>(&m - movements.data());
  struct Known {
    std::size_t communicator;
    std::uint32_t node;
  };
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, Known> by_place;
  const auto gpus = static_cast<std::uint32_t>(cluster_.node().gpus);
  const topology::LinkId node_links = links_per_node(cluster_);
  std::pair<std::uint32_t, std::vector<std::uint32_t>> place;
  for (std::size_t c = 0; c < kinds_.size(); ++c) {
    const engine::Communicator& communicator = groups_.communicators[c];
    const std::uint32_t node = communicator.members.front() / gpus;
    place.first = by_group.at({kinds_[c], communicator.pattern});
    movement_of.push_back(place.first);
    place.second.clear();
    for (const std::uint32_t member : communicator.members) {
      if (member / gpus != node) break;
      place.second.push_back(member % gpus);
    }
    if (place.second.size() == communicator.members.size()) {
      const auto [known, first] = by_place.try_emplace(place, Known{c, node});
      if (!first) {
        loads.add_copy(known->second.communicator, (node - known->second.node) * node_links);
        continue;
      }
    }
    const Movement& movement = movements[place.first];
    loads.add(loads_of(movement, c), unit_of(movement));
  }
  return movement_of;
}

std::shared_ptr<const engine::Classes> Layout::classes_of(const engine::System& system) const {
  return memory_->classes.get(engine::likeness_of(system, likeness_of_groups_),
                              [&] { return engine::classes_of(system); });
}

Layouts::Layouts(const topology::Cluster& cluster, const NetworkModel& network)
    : cluster_(cluster), network_(network), layouts_(most_layouts) {}

std::shared_ptr<const Layout> Layouts::of(const LayoutKey& key) const {
  return layouts_.get(key, [&] { return Layout(key, cluster_, network_); });
}

}  // namespace stepcast::sim
