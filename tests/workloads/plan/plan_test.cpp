#include "workloads/plan/plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "engine/check.hpp"
#include "tests/workloads/fixtures.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

ParallelPlan plan_of(std::int64_t data, std::int64_t tensor, std::int64_t pipeline) {
  ParallelPlan plan;
  plan.data_degree = data;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  return plan;
}

/// The reason, or "accepted".
std::string refusal(const TransformerShape& s, const ParallelPlan& p, const Batch& b) {
  try {
    check(s, p, b, "a.toml:3");
  } catch (const InputError& error) {
    CHECK(error.where() == "a.toml:3");
    return error.problem();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("coordinates and rank are inverse, tensor ranks are neighbours") {
  const ParallelPlan plan = plan_of(3, 4, 2);
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank)
    CHECK(rank_of(plan, coordinates_of(plan, rank)) == rank);
  CHECK(coordinates_of(plan, 5) == Coordinates{.tensor = 1, .data = 1, .pipeline = 0});
  CHECK(coordinates_of(plan, 12) == Coordinates{.tensor = 0, .data = 0, .pipeline = 1});
}

TEST_CASE("groups of every kind partition the ranks") {
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const auto degree = [&] { return std::int64_t{1} + static_cast<std::int64_t>(random() % 5); };
    const ParallelPlan plan = plan_of(degree(), degree(), degree());
    for (const auto& [kind, size] : {std::pair{GroupKind::tensor, plan.tensor},
                                     {GroupKind::data, plan.data_degree},
                                     {GroupKind::world, plan.ranks()}}) {
      std::set<std::int64_t> seen;
      for (const auto& group : groups(plan, kind)) {
        REQUIRE(static_cast<std::int64_t>(group.size()) == size);
        REQUIRE(std::is_sorted(group.begin(), group.end()));
        seen.insert(group.begin(), group.end());
      }
      REQUIRE(static_cast<std::int64_t>(seen.size()) == plan.ranks());
      REQUIRE(static_cast<std::int64_t>(groups(plan, kind).size()) * size == plan.ranks());
    }
  }
}

TEST_CASE("a pipeline pair is a sender and the next stage of the same replica") {
  const ParallelPlan plan = plan_of(2, 2, 3);
  const auto forward = groups(plan, GroupKind::pipeline_forward);
  const auto backward = groups(plan, GroupKind::pipeline_backward);
  REQUIRE(forward.size() == 2 * 2 * 2);
  REQUIRE(backward.size() == forward.size());
  for (const auto& pair : forward) {
    const Coordinates from = coordinates_of(plan, pair[0]), to = coordinates_of(plan, pair[1]);
    CHECK(to == Coordinates{from.tensor, from.context, from.data, from.pipeline + 1});
    CHECK(std::find(backward.begin(), backward.end(),
                    std::vector<std::int64_t>{pair[1], pair[0]}) != backward.end());
  }
  CHECK(groups(plan, GroupKind::embedding) ==
        std::vector<std::vector<std::int64_t>>{{0, 8}, {1, 9}, {2, 10}, {3, 11}});
  CHECK(groups(plan_of(4, 2, 1), GroupKind::pipeline_forward).empty());
  CHECK(groups(plan_of(4, 2, 1), GroupKind::embedding).empty());
}

TEST_CASE("uneven stages hold all layers, the first ones one more") {
  CHECK(layers_of_stage(32, 5, 0) == 7);
  CHECK(layers_of_stage(32, 5, 1) == 7);
  CHECK(layers_of_stage(32, 5, 2) == 6);
  for (std::int64_t stages = 1; stages <= 32; ++stages) {
    std::int64_t sum = 0;
    for (std::int64_t s = 0; s < stages; ++s) sum += layers_of_stage(32, stages, s);
    CHECK(sum == 32);
  }
}

TEST_CASE("a plan that cannot cut the model is refused with the reason") {
  const TransformerShape s = llama_7b();
  CHECK(refusal(s, plan_of(1, 8, 4), {}) == "accepted");
  CHECK(refusal(s, plan_of(1, 3, 1), {}) == "tensor degree 3 does not divide heads 32");
  CHECK(refusal(s, plan_of(1, 1, 33), {}) ==
        "pipeline degree 33 exceeds the 32 layers of the model");
  CHECK(refusal(s, plan_of(0, 1, 1), {}) == "data degree is 0");
  CHECK(refusal(s, plan_of(1, -2, 1), {}) == "tensor degree is -2");
  CHECK(refusal(s, plan_of(1, 1, 1), {.micro_batch = 0}) == "micro_batch is 0");
  CHECK(refusal(llama_70b(), plan_of(1, 16, 1), {}) == "accepted");  // 8 kv heads, two ranks each
  CHECK(refusal(gpt(48, 1600, 25, 1024), plan_of(1, 1, 1), {.sequence = 2048}) ==
        "sequence 2048 is longer than the model's 1024 positions");
  CHECK(refusal(gpt(48, 1600, 20, 1024), plan_of(1, 2, 1), {.sequence = 1024}) ==
        "tensor degree 2 does not divide vocab 50257");
  ParallelPlan cut = plan_of(1, 8, 1);
  cut.sequence_parallel = true;
  CHECK(refusal(s, cut, {.sequence = 4100}) ==
        "tensor degree (sequence parallel) 8 does not divide sequence 4100");
  TransformerShape empty = s;
  empty.layers = 0;
  CHECK(refusal(empty, plan_of(1, 1, 1), {}) == "layers is 0");
}

TEST_CASE("fp8 is refused, not taken for something else") {
  CHECK_NOTHROW(check(Precision{}, "a.toml:1"));
  CHECK_THROWS_AS(check(Precision{.compute = Dtype::fp8}, "a.toml:1"), InputError);
  CHECK_THROWS_AS(check(Precision{.gradient_reduce = Dtype::tf32}, "a.toml:1"), InputError);
}

TEST_CASE("tensor is fastest, then context, data and pipeline") {
  ParallelPlan plan = plan_of(2, 2, 2);
  plan.context = 2;
  CHECK(plan.ranks() == 16);
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank)
    CHECK(rank_of(plan, coordinates_of(plan, rank)) == rank);
  CHECK(coordinates_of(plan, 7) == Coordinates{.tensor = 1, .context = 1, .data = 1});
  CHECK(groups(plan, GroupKind::context)[1] == std::vector<std::int64_t>{1, 3});
  CHECK(groups(plan, GroupKind::data)[0] == std::vector<std::int64_t>{0, 2, 4, 6});
  CHECK(groups(plan, GroupKind::context_ring) == groups(plan, GroupKind::context));
}

TEST_CASE("hsdp shards over neighbours and repeats the shards over the rest") {
  ParallelPlan plan = plan_of(8, 2, 1);
  plan.shard_degree = 4;
  CHECK(plan.shard_replicas() == 2);
  CHECK(groups(plan, GroupKind::shard)[2] == std::vector<std::int64_t>{8, 10, 12, 14});
  CHECK(groups(plan, GroupKind::replica)[3] == std::vector<std::int64_t>{3, 11});
  for (const GroupKind kind : {GroupKind::shard, GroupKind::replica}) {
    std::set<std::int64_t> seen;
    for (const auto& group : groups(plan, kind)) seen.insert(group.begin(), group.end());
    CHECK(std::ssize(seen) == plan.ranks());
  }
}

TEST_CASE("virtual stages close the pipeline to a ring") {
  ParallelPlan plan = plan_of(1, 1, 3);
  plan.virtual_stages = 2;
  CHECK(groups(plan, GroupKind::pipeline_forward) ==
        std::vector<std::vector<std::int64_t>>{{0, 1}, {1, 2}, {2, 0}});
  CHECK(groups(plan, GroupKind::pipeline_backward) ==
        std::vector<std::vector<std::int64_t>>{{1, 0}, {2, 1}, {0, 2}});
}

TEST_CASE("layers are given part by part") {
  ParallelPlan plan = plan_of(1, 1, 4);
  plan.stage_layers = {7, 8, 8, 9};
  CHECK(layers_of_part(32, plan, 3) == 9);
}

TEST_CASE("only learned positions limit the sequence") {
  TransformerShape shape = gpt(4, 64, 4, 128);
  const ParallelPlan plan;
  const Batch batch{.micro_batch = 1, .micro_batches = 1, .sequence = 256};
  CHECK_THROWS_AS(check(shape, plan, batch, "a.toml:1"), InputError);
  shape.max_positions = 0;
  shape.alibi = true;
  CHECK_NOTHROW(check(shape, plan, batch, "a.toml:1"));
}

TEST_CASE("plans that interleave, shard or share what they cannot are refused with the reason") {
  const TransformerShape s = llama_7b();
  const auto refused = [&](auto change,
                           const Batch& batch = {.micro_batch = 1, .micro_batches = 8}) {
    ParallelPlan plan = plan_of(4, 1, 4);
    plan.data = DataParallel::zero3;
    change(plan);
    return refusal(s, plan, batch);
  };
  CHECK(refused([](auto& p) { p.virtual_stages = 2; }) == "accepted");
  CHECK(refused([](auto& p) { p.virtual_stages = 9; }) ==
        "pipeline degree x virtual_stages 36 exceeds the 32 layers of the model");
  CHECK(refused([](auto& p) {
          p.virtual_stages = 2;
          p.schedule = Schedule::gpipe;
        }) == "virtual_stages 2 with gpipe");
  CHECK(refused([](auto& p) {
          p.pipeline = 1;
          p.virtual_stages = 2;
        }) == "virtual_stages 2 without a pipeline");
  CHECK(refused([](auto& p) { p.virtual_stages = 2; }, {.micro_batch = 1, .micro_batches = 9}) ==
        "interleaved 1f1b cannot run 9 micro-batches on 4 stages");
  CHECK(refused([](auto& p) { p.stage_layers = {8, 8, 8}; }) == "stage_layers has 3 numbers");
  CHECK(refused([](auto& p) { p.stage_layers = {8, 8, 8, 9}; }) == "stage_layers add up to 33");
  CHECK(refused([](auto& p) {
          p.stage_layers = {16, 0, 8, 8};
        }) == "stage_layers gives part 1 of the model 0 layers");
  CHECK(refused([](auto& p) { p.stage_layers = {11, 11, 10, 0}; }) == "accepted");
  CHECK(refused([](auto& p) { p.shard_degree = 3; }) ==
        "shard_degree 3 does not divide data x context degree 4");
  CHECK(refused([](auto& p) {
          p.shard_degree = 2;
          p.data = DataParallel::ddp;
        }) == "shard_degree 2 with data = \"ddp\"");
  CHECK(refused([](auto& p) { p.context = 3; }) ==
        "sequence 4096 is no multiple of 2 x context degree 3");
}
