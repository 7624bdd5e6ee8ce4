#include "validate/trainer/ranks/communicator.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "workloads/plan/axes.hpp"

namespace stepcast::validate {
namespace {

/// The index of the group that holds `rank`; none where no group does.
std::optional<std::int64_t> color_in(const std::vector<std::vector<std::int64_t>>& groups,
                                     std::int64_t rank) {
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (std::ranges::find(groups[g], rank) != groups[g].end()) return static_cast<std::int64_t>(g);
  return std::nullopt;
}

}  // namespace

void Communicator::exchange_bytes(std::span<const std::byte>, Counts, std::span<std::byte>,
                                  Counts) {
  throw BrokenPromise("ranks that exchange parts of their own");
}

Groups make_groups(std::unique_ptr<Communicator> world, const workloads::ParallelPlan& plan,
                   bool experts) {
  using workloads::GroupKind;
  expects(world->size() == plan.ranks(), "as many ranks as the plan has");
  const std::int64_t rank = world->rank();
  workloads::Coordinates at = workloads::coordinates_of(plan, rank);
  Groups groups;
  const auto group_of = [&](GroupKind kind) {
    return world->split(color_in(workloads::groups(plan, kind), rank));
  };
  groups.tensor = group_of(GroupKind::tensor);
  groups.data = group_of(GroupKind::data);
  if (plan.shard_replicas() > 1) {
    groups.shard = group_of(GroupKind::shard);
    groups.replica = group_of(GroupKind::replica);
  }
  const bool end = at.pipeline == 0 || at.pipeline == plan.pipeline - 1;
  at.pipeline = 0;
  const std::int64_t column = workloads::rank_of(plan, at);
  groups.pipeline = world->split(column);
  const bool ring = plan.virtual_stages > 1;
  if (ring) groups.pipeline_backward = world->split(column);
  if (plan.pipeline > 1) groups.pipeline->connect_neighbours(ring);
  if (ring) groups.pipeline_backward->connect_neighbours(ring);
  groups.embedding = world->split(plan.pipeline > 1 && end ? std::optional(column) : std::nullopt);
  if (experts) {
    groups.expert = group_of(GroupKind::expert);
    groups.expert_data = group_of(GroupKind::expert_data);
  }
  groups.world = std::move(world);
  return groups;
}

}  // namespace stepcast::validate
