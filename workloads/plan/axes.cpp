#include "workloads/plan/axes.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/system.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::workloads {
namespace {

using engine::Traffic;
using Group = std::vector<std::int64_t>;
using Plan = ParallelPlan;

/// Runs of `count` ranks, `stride` apart.
RankGroups apart(const ParallelPlan& plan, std::int64_t count, std::int64_t stride) {
  RankGroups all;
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
    if (rank / stride % count != 0) continue;
    Group group;
    group.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) group.push_back(rank + i * stride);
    all.push_back(std::move(group));
  }
  return all;
}

/// {sender, receiver} for every neighbouring pair of stages and every replica; with looped virtual
/// stages also for the last and the first stage.
RankGroups neighbours(const ParallelPlan& plan, bool forward) {
  RankGroups all;
  const std::int64_t per_stage = plan.copies() * plan.tensor;
  const bool wraps = plan.virtual_stages > 1 && plan.placement() == Placement::looped;
  for (std::int64_t lower = 0; lower < plan.ranks(); ++lower) {
    if (lower + per_stage >= plan.ranks() && !wraps) break;
    const std::int64_t upper = (lower + per_stage) % plan.ranks();
    all.push_back(forward ? Group{lower, upper} : Group{upper, lower});
  }
  return all;
}

RankGroups first_and_last(const ParallelPlan& plan) {
  RankGroups all;
  if (plan.pipeline < 2) return all;
  const std::int64_t per_stage = plan.copies() * plan.tensor;
  for (std::int64_t rank = 0; rank < per_stage; ++rank)
    all.push_back({rank, rank + (plan.pipeline - 1) * per_stage});
  return all;
}

/// Stage s and its mirror image.
RankGroups mirrored_stages(const ParallelPlan& plan) {
  RankGroups all;
  const std::int64_t per_stage = plan.copies() * plan.tensor;
  for (std::int64_t stage = 0; stage < plan.pipeline / 2; ++stage)
    for (std::int64_t rank = 0; rank < per_stage; ++rank)
      all.push_back({stage * per_stage + rank, (plan.pipeline - 1 - stage) * per_stage + rank});
  return all;
}

std::int64_t two(const Plan&) { return 2; }
std::int64_t tensor_degree(const Plan& p) { return p.tensor; }
std::int64_t contexts(const Plan& p) { return p.context; }
std::int64_t copies(const Plan& p) { return p.copies(); }
std::int64_t ranks(const Plan& p) { return p.ranks(); }
std::int64_t shards(const Plan& p) { return p.shards(); }
std::int64_t replicas(const Plan& p) { return p.shard_replicas(); }

std::int64_t experts(const Plan& p) { return p.expert.degree; }
std::int64_t expert_tensors(const Plan& p) { return p.expert_tensor(); }
std::int64_t expert_copies(const Plan& p) { return p.expert_copies(); }

RankGroups forward(const Plan& p) { return neighbours(p, true); }
RankGroups backward(const Plan& p) { return neighbours(p, false); }

// Of ranks in their order: tensor, context, data, stage. The mesh of experts over the same ranks:
// expert tensor fastest, then expert, then copies, then stage (Megatron core parallel_state.py, the
// expert rank generator of "tp-cp-ep-dp-pp").
std::int64_t one(const Plan&) { return 1; }
std::int64_t a_copy(const Plan& p) { return p.tensor; }
std::int64_t a_replica(const Plan& p) { return p.tensor * p.shards(); }
std::int64_t a_stage(const Plan& p) { return p.tensor * p.copies(); }
std::int64_t an_expert(const Plan& p) { return p.expert_tensor(); }
std::int64_t all_experts(const Plan& p) { return p.expert_tensor() * p.expert.degree; }

using enum Meeting;
using enum GroupKind;

// clang-format off
constexpr std::array<Axis, num_group_kinds> axes{{
    {tensor, "tensor", all, tensor_lane, {}, Traffic::tensor, tensor_degree, one, {}},
    {data, "data", all, data_lane, {}, Traffic::data, copies, a_copy, {}},
    {world, "world", all, compute, {}, Traffic::data, ranks, one, {}},
    {pipeline_forward, "pipeline_forward", pair, send_next_lane, receive_previous_lane,
     Traffic::pipeline, two, a_stage, forward},
    {pipeline_backward, "pipeline_backward", pair, send_previous_lane, receive_next_lane,
     Traffic::pipeline, two, a_stage, backward},
    {embedding, "embedding", all, compute, {}, Traffic::data, two, {}, first_and_last},
    {shard, "shard", all, data_lane, {}, Traffic::data, shards, a_copy, {}},
    {replica, "replica", all, replica_lane, {}, Traffic::data, replicas, a_replica, {}},
    {context, "context", all, compute, {}, Traffic::tensor, contexts, a_copy, {}},
    {context_ring, "context_ring", ring, context_lane, {}, Traffic::tensor, contexts, a_copy, {}},
    {expert, "expert", all, expert_lane, {}, Traffic::expert, experts, an_expert, {}},
    {expert_tensor, "expert_tensor", all, compute, {}, Traffic::expert, expert_tensors, one, {}},
    {expert_data, "expert_data", all, expert_data_lane, {}, Traffic::data, expert_copies,
     all_experts, {}},
    {mirror, "mirror", all, compute, {}, Traffic::data, two, {}, mirrored_stages},
    {tensor_ring, "tensor_ring", ring, tensor_lane, {}, Traffic::tensor, tensor_degree, one, {}},
}};
// clang-format on

constexpr std::size_t index_of(GroupKind kind) { return static_cast<std::size_t>(kind); }

constexpr bool in_order() {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (index_of(axes[i].kind) != i) return false;
  return true;
}
static_assert(in_order());

/// The slots before those of each kind, and all.
constexpr std::array<std::uint32_t, num_group_kinds + 1> first_slots = [] {
  std::array<std::uint32_t, num_group_kinds + 1> first{};
  for (std::size_t i = 0; i < axes.size(); ++i)
    first[i + 1] = first[i] + (axes[i].meeting == pair ? 2 : 1);
  return first;
}();

}  // namespace

const Axis& axis_of(GroupKind kind) { return axes.at(index_of(kind)); }

RankGroups groups(const ParallelPlan& plan, GroupKind kind) {
  const Axis& axis = axis_of(kind);
  return axis.groups != nullptr ? axis.groups(plan)
                                : apart(plan, axis.degree(plan), axis.stride(plan));
}

GroupKind shard_group(const ParallelPlan& plan) {
  return plan.shard_replicas() > 1 ? GroupKind::shard : GroupKind::data;
}

std::int64_t ranks_that_meet(const ParallelPlan& plan, GroupKind kind) {
  return axis_of(kind).meeting == all ? axis_of(kind).degree(plan) : 2;
}

std::uint32_t slot_of(GroupKind kind, bool receives) {
  return first_slots.at(index_of(kind)) + (receives ? 1 : 0);
}

std::uint32_t num_slots() { return first_slots.back(); }

}  // namespace stepcast::workloads
