#include "workloads/plan/axes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
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

TEST_CASE("experts are folded over tensor, context and data ranks as in Megatron's example") {
  // arXiv 2504.14960: tensor 4, context 2, data 8, pipeline 4 beside expert tensor 1, expert 64.
  ParallelPlan plan;
  plan.tensor = 4;
  plan.context = 2;
  plan.data_degree = 8;
  plan.pipeline = 4;
  plan.expert.degree = 64;
  plan.expert.tensor = 1;
  REQUIRE(plan.ranks() == 256);
  CHECK(plan.expert_copies() == 1);
  const RankGroups experts = groups(plan, GroupKind::expert);
  REQUIRE(experts.size() == 4);
  for (std::int64_t stage = 0; stage < 4; ++stage)
    for (std::int64_t i = 0; i < 64; ++i)
      CHECK(experts[static_cast<std::size_t>(stage)][static_cast<std::size_t>(i)] ==
            64 * stage + i);
  CHECK(groups(plan, GroupKind::expert_data).size() == 256);
  plan.expert.degree = 8;
  plan.expert.tensor = 2;
  CHECK(plan.expert_copies() == 4);
  CHECK(groups(plan, GroupKind::expert)[1] == std::vector<std::int64_t>{1, 3, 5, 7, 9, 11, 13, 15});
  CHECK(groups(plan, GroupKind::expert_data)[17] == std::vector<std::int64_t>{65, 81, 97, 113});
  CHECK(groups(plan, GroupKind::expert_tensor)[3] == std::vector<std::int64_t>{6, 7});
}

TEST_CASE("both meshes partition the ranks, and groups stay in their stage") {
  std::mt19937 random(11);
  const auto pick = [&] { return std::int64_t{1} << random() % 4; };
  for (int i = 0; i < 200; ++i) {
    ParallelPlan plan;
    plan.tensor = pick(), plan.context = pick(), plan.data_degree = pick();
    plan.pipeline = 1 + static_cast<std::int64_t>(random() % 3);
    plan.expert.degree = pick(), plan.expert.tensor = pick();
    const std::int64_t stage = plan.copies() * plan.tensor;
    if (stage % (plan.expert.degree * plan.expert.tensor) != 0) continue;
    for (const GroupKind kind :
         {GroupKind::expert, GroupKind::expert_tensor, GroupKind::expert_data}) {
      std::set<std::int64_t> seen;
      for (const auto& group : groups(plan, kind)) {
        REQUIRE(std::ssize(group) == axis_of(kind).degree(plan));
        REQUIRE(group.front() / stage == group.back() / stage);
        REQUIRE(std::is_sorted(group.begin(), group.end()));
        seen.insert(group.begin(), group.end());
      }
      REQUIRE(std::ssize(seen) == plan.ranks());
    }
    // A rank meets each other rank of its stage in the mesh of its three groups only once.
    CHECK(plan.expert.degree * plan.expert.tensor * plan.expert_copies() == stage);
  }
}

}  // namespace stepcast::workloads
