// ZeRO-1 whose ranks own whole tensors: messages by owner instead of slices of buckets.
#include <catch2/catch.hpp>

#include "tests/workloads/step_reading.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

Software owners(bool reduce_to_owner) {
  Software s = eager();
  s.data.exchange = ZeroExchange::owner;
  s.data.reduce_scatter = reduce_to_owner;
  s.data.gradient_overlap = false;
  return s;
}

std::int64_t joins(const StepProgram& step, CollectiveKind kind) {
  std::int64_t count = 0;
  for (const engine::Instruction& i : step.roles[0].instructions)
    count += i.op == engine::Op::join && step.collectives[i.arg].kind == kind;
  return count;
}

StepProgram zero1(std::int64_t ranks, std::int64_t shard_degree, const Software& software) {
  ParallelPlan plan = plan_of(DataParallel::zero1, ranks);
  plan.shard_degree = shard_degree;
  return step_of(llama_1b(), plan, two, software);
}

}  // namespace

TEST_CASE("each owner sends its parameters: as many messages as the group has ranks") {
  for (const std::int64_t group : {2, 8, 16}) {
    const StepProgram step = zero1(16, group, owners(false));
    CHECK(joins(step, CollectiveKind::broadcast) == group);
    CHECK(joins(step, CollectiveKind::all_gather) == 0);
    CHECK(joins(step, CollectiveKind::reduce) == 0);
    // Together the parameters once, in 16 bits.
    const std::int64_t whole = bytes_by_name(zero1(16, group, eager()))["parameters.gather"];
    CHECK(bytes_by_name(step)["parameters.broadcast"] == Approx(whole).epsilon(1e-6));
  }
}

TEST_CASE("the software's own group of ranks holds where the plan names none") {
  ParallelPlan plan = plan_of(DataParallel::zero1, 16);
  plan.shard_group = 8;
  CHECK(plan.shards() == 8);
  CHECK(plan.shard_replicas() == 2);
  CHECK(joins(step_of(llama_1b(), plan, two, owners(false)), CollectiveKind::broadcast) == 8);
  plan.shard_degree = 4;
  CHECK(plan.shards() == 4);
  plan.shard_degree = 0;
  plan.shard_group = 3;  // divides nothing
  CHECK(plan.shards() == 16);
}

TEST_CASE("gradients go to their owners where they are not all-reduced") {
  const StepProgram step = zero1(16, 16, owners(true));
  CHECK(joins(step, CollectiveKind::reduce) == 16);
  CHECK(joins(step, CollectiveKind::reduce_scatter) == 0);
  // Several groups: each owner's sum is summed with the other groups'.
  CHECK(joins(zero1(16, 8, owners(true)), CollectiveKind::reduce) == 8);
  CHECK(bytes_by_name(zero1(16, 8, owners(true)))["bucket.sum_replicas"] > 0);
}

TEST_CASE("owners within a node use the node's group alone") {
  const StepProgram step = zero1(16, 8, owners(false));
  for (const Collective& collective : step.collectives)
    if (collective.kind == CollectiveKind::broadcast) CHECK(collective.group == GroupKind::shard);
}
