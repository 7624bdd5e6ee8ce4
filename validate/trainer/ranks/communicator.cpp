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

Groups make_groups(std::unique_ptr<Communicator> world, const workloads::ParallelPlan& plan) {
  using workloads::GroupKind;
  expects(world->size() == plan.ranks(), "as many ranks as the plan has");
  const std::int64_t rank = world->rank();
  workloads::Coordinates at = workloads::coordinates_of(plan, rank);
  Groups groups;
  groups.tensor = world->split(color_in(workloads::groups(plan, GroupKind::tensor), rank));
  groups.data = world->split(color_in(workloads::groups(plan, GroupKind::data), rank));
  const bool end = at.pipeline == 0 || at.pipeline == plan.pipeline - 1;
  at.pipeline = 0;
  const std::int64_t column = workloads::rank_of(plan, at);
  groups.pipeline = world->split(column);
  if (plan.pipeline > 1) groups.pipeline->connect_neighbours();
  groups.embedding = world->split(plan.pipeline > 1 && end ? std::optional(column) : std::nullopt);
  groups.world = std::move(world);
  return groups;
}

}  // namespace stepcast::validate
