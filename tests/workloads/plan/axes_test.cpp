#include "workloads/plan/axes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "engine/system.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::workloads {
namespace {

ParallelPlan hybrid() {
  ParallelPlan plan;
  plan.data = DataParallel::zero3;
  plan.data_degree = 4;
  plan.context = 2;
  plan.tensor = 2;
  plan.pipeline = 3;
  plan.shard_degree = 4;
  return plan;
}

template <class Check>
void for_each_axis(Check check) {
  for (int kind = 0; kind < num_group_kinds; ++kind) check(axis_of(static_cast<GroupKind>(kind)));
}

}  // namespace

TEST_CASE("groups of an axis have as many ranks as its degree says") {
  for_each_axis([](const Axis& axis) {
    CAPTURE(axis.name);
    const RankGroups all = groups(hybrid(), axis.kind);
    CHECK_FALSE(all.empty());
    for (const auto& group : all) CHECK(std::ssize(group) == axis.degree(hybrid()));
    if (axis.meeting == Meeting::pair) CHECK(axis.degree(hybrid()) == 2);
  });
}

TEST_CASE("no two axes share a name or a slot, and a pair has two slots and two lanes") {
  std::set<std::string_view> names;
  std::set<std::uint32_t> slots;
  std::size_t num_pairs = 0;
  for_each_axis([&](const Axis& axis) {
    names.insert(axis.name);
    slots.insert(slot_of(axis.kind));
    if (axis.meeting != Meeting::pair) return;
    ++num_pairs;
    slots.insert(slot_of(axis.kind, true));
    CHECK(axis.lane != axis.receiving_lane);
  });
  CHECK(names.size() == num_group_kinds);
  CHECK(slots.size() == num_group_kinds + num_pairs);
  CHECK(slots.size() == num_slots());
  CHECK(*slots.rbegin() + 1 == num_slots());
}

TEST_CASE("waiting is for the tensor group, the pipeline or the data group") {
  CHECK(axis_of(GroupKind::context_ring).traffic == engine::Traffic::tensor);  // inside a layer
  CHECK(axis_of(GroupKind::pipeline_backward).traffic == engine::Traffic::pipeline);
  CHECK(axis_of(GroupKind::world).traffic == engine::Traffic::data);
}

TEST_CASE("bytes move between all of a group, or between two of it") {
  CHECK(ranks_that_meet(hybrid(), GroupKind::data) == 8);
  CHECK(ranks_that_meet(hybrid(), GroupKind::replica) == 2);
  CHECK(ranks_that_meet(hybrid(), GroupKind::context) == 2);
  CHECK(ranks_that_meet(hybrid(), GroupKind::pipeline_forward) == 2);
  ParallelPlan four = hybrid();
  four.context = 4;
  CHECK(ranks_that_meet(four, GroupKind::context) == 4);
  CHECK(ranks_that_meet(four, GroupKind::context_ring) == 2);
}

TEST_CASE("hsdp gathers within a copy, everything else among all copies") {
  CHECK(shard_group(hybrid()) == GroupKind::shard);
  ParallelPlan whole = hybrid();
  whole.shard_degree = 0;
  CHECK(shard_group(whole) == GroupKind::data);
}

}  // namespace stepcast::workloads
