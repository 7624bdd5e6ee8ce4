#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/plan/rules.hpp"

namespace stepcast::workloads {
namespace {

/// The reason why this plan cannot share out eight experts on 32 ranks, or "accepted".
template <class Change>
std::string refused(Change change) {
  TransformerShape shape = test::llama(8, 1024, 16, 8, 4096);
  shape.experts.count = 8;
  shape.experts.per_token = 2;
  shape.experts.ffn = 1536;
  ParallelPlan plan;
  plan.data = DataParallel::zero1;
  plan.data_degree = 16;
  plan.tensor = 2;
  plan.sequence_parallel = true;
  plan.expert.degree = 8;
  plan.expert.tensor = 1;
  change(shape, plan);
  try {
    check(shape, plan, Batch{}, "a.toml:3");
  } catch (const InputError& error) {
    return error.problem();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("plans that cannot share out experts are refused with the reason") {
  CHECK(refused([](auto&, auto&) {}) == "accepted");
  CHECK(refused([](auto& s, auto&) { s.experts.count = 12; }) ==
        "expert degree 8 does not divide the model's experts 12");
  CHECK(refused([](auto&, auto& p) { p.expert.degree = 0; }) == "expert degree is 0");
  CHECK(refused([](auto&, auto& p) { p.data_degree = 2; }) ==
        "expert x expert_tensor degree 8 does not divide the ranks of a pipeline stage, 4");
  CHECK(refused([](auto& s, auto& p) {
          s.experts.ffn = 1537;
          p.expert.tensor = 2;
        }) == "expert_tensor degree 2 does not divide expert_ffn 1537");
  CHECK(refused([](auto& s, auto&) { s.experts.shared_ffn = 1001; }) ==
        "tensor degree 2 does not divide shared_expert_ffn 1001");
  CHECK(refused([](auto&, auto& p) { p.sequence_parallel = false; }) ==
        "experts beside tensor ranks without sequence_parallel");
  CHECK(refused([](auto&, auto& p) { p.shard_degree = 4; }) ==
        "shard_degree in a model of experts");
  CHECK(refused([](auto&, auto& p) { p.expert.pad_to_capacity = true; }) ==
        "pad_to_capacity without capacity_factor");
  CHECK(refused([](auto&, auto& p) { p.expert.dispatch_dtype = Dtype::fp8_block; }) ==
        "tokens of fewer than 16 bits through NCCL");
  CHECK(refused([](auto&, auto& p) {
          p.expert.dispatcher = Dispatcher::node_aware;
          p.expert.dispatch_dtype = Dtype::fp8_block;
          p.expert.exchange_sms = 24;
        }) == "accepted");
  CHECK(refused([](auto&, auto& p) { p.expert.dispatch_dtype = Dtype::nvfp4; }) ==
        "tokens of fewer than 16 bits through NCCL");
  CHECK(refused([](auto&, auto& p) { p.expert.exchange_sms = 24; }) ==
        "exchange_sms with a dispatcher of NCCL's collectives");
  CHECK(refused([](auto&, auto& p) { p.expert.shared_overlap = true; }) ==
        "shared_expert_overlap without shared experts");
  CHECK(refused([](auto&, auto& p) { p.expert.overlap = true; }) == "accepted");
  CHECK(refused([](auto&, auto& p) {
          p.expert.overlap = true;
          p.expert.dispatcher = Dispatcher::all_gather;
        }) == "expert_overlap without tokens that are sent to other ranks");
  CHECK(refused([](auto& s, auto& p) {
          p.expert.overlap = true;
          p.pipeline = 2;
          p.data_degree *= 2;
          s.layers = 32;
        }) == "expert_overlap in a pipeline with one chunk per stage");
  CHECK(refused([](auto&, auto& p) {
          p.expert.overlap = true;
          p.schedule = Schedule::gpipe;
        }) == "expert_overlap with schedule = \"gpipe\"");
  CHECK(refused([](auto&, auto& p) {
          p.expert.overlap = true;
          p.recompute = Recompute::full;
        }) == "expert_overlap beside recompute of the exchange");
  CHECK(refused([](auto&, auto& p) {
          p.expert.overlap = true;
          p.recompute_modules = {LayerModule::experts};
        }) == "expert_overlap beside recompute of the exchange");
  CHECK(refused([](auto& s, auto& p) {
          p.expert.overlap = p.expert.shared_overlap = true;
          s.experts.shared_ffn = 1024;
        }) == "expert_overlap beside shared_expert_overlap");
  CHECK(refused([](auto&, auto& p) { p.expert.delay_wgrad = true; }) ==
        "delay_wgrad without expert_overlap");
  CHECK(refused([](auto&, auto& p) {
          p.recompute = Recompute::full;
          p.recompute_modules = {LayerModule::mlp};
        }) == "recompute_modules beside full recompute");
  CHECK(refused([](auto&, auto& p) { p.recompute_modules = {LayerModule::latent_up}; }) ==
        "recompute_modules names latent_up without latent attention");
}

TEST_CASE("routings that give an expert what it cannot have are refused") {
  CHECK(refused([](auto&, auto& p) { p.routing.kind = RoutingKind::counts; }) ==
        "routing has 0 counts for 8 experts");
  CHECK(refused([](auto&, auto& p) {
          p.routing.counts = {1, 2, 3};
        }) == "routing has 3 counts for 8 experts, and another kind");
  const auto violation = [](double value) {
    return refused([&](auto&, auto& p) {
      p.routing.kind = RoutingKind::max_violation;
      p.routing.max_violation = value;
    });
  };
  CHECK(violation(3.0) == "accepted");  // every token goes to one of them
  CHECK(violation(3.1) == "max_violation gives an expert more rows than there are tokens");
}

TEST_CASE("a model without experts has no ranks that share them") {
  const auto dense = [](auto change) {
    return refused([&](auto& s, auto& p) {
      s.experts = {};
      p.expert = {};
      change(p);
    });
  };
  CHECK(dense([](auto&) {}) == "accepted");
  CHECK(dense([](auto& p) { p.expert.degree = 2; }) == "expert degree 2 without experts");
  CHECK(dense([](auto& p) { p.expert.tensor = 2; }) == "expert_tensor degree 2 without experts");
  CHECK(dense([](auto& p) { p.recompute_modules = {LayerModule::experts}; }) ==
        "recompute_modules names experts, of which the model has none");
  CHECK(dense([](auto& p) { p.recompute_modules = {LayerModule::mlp}; }) == "accepted");
}

}  // namespace stepcast::workloads
