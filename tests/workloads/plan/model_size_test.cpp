#include "workloads/plan/model_size.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/plan/shape_rules.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

/// Two dense layers, then every second of eight has 8 experts, two of them chosen.
TransformerShape mixture() {
  TransformerShape s = llama(10, 1024, 16, 4, 4096);
  s.experts = {
      .count = 8, .per_token = 2, .ffn = 512, .shared_ffn = 256, .dense_layers = 2, .every = 2};
  return s;
}

}  // namespace

TEST_CASE("the first layers are dense, and of the others every n-th has experts, the n-th first") {
  const TransformerShape s = mixture();
  std::vector<std::int64_t> with;
  for (std::int64_t l = 0; l < s.layers; ++l)
    if (has_experts(s, l)) with.push_back(l);
  CHECK(with == std::vector<std::int64_t>{3, 5, 7, 9});
  CHECK(expert_layers(s) == 4);
  CHECK(expert_layers(llama_7b()) == 0);
  CHECK_FALSE(has_experts(llama_7b(), 31));
}

TEST_CASE("a model of experts has what its dense layers, its routers and its experts have") {
  const TransformerShape s = mixture();
  const std::int64_t h = s.hidden, expert = 3 * h * 512;
  TransformerShape dense = s;
  dense.experts = {};
  const ModelParameters all = parameters_by_part(s, Counted::all);
  const ModelParameters active = parameters_by_part(s, Counted::active);
  CHECK(all.router == 4 * h * 8);
  CHECK(all.experts == 4 * 8 * expert);
  CHECK(active.experts == 4 * 2 * expert);
  CHECK(all.shared_experts == 4 * 3 * h * 256);
  CHECK(all.dense_mlp == 6 * 3 * h * 4096);
  CHECK(all.attention == parameters_by_part(dense, Counted::all).attention);
  CHECK(all.total() - active.total() == 4 * 6 * expert);
  CHECK(parameters(s) == all.total());
  std::int64_t layers = 0;
  for (std::int64_t l = 0; l < s.layers; ++l) layers += layer_parameters(s, l);
  CHECK(parameters(s) == layers + embedding_parameters(s) + head_parameters(s));
}

TEST_CASE("without a gate a third of every expert's and shared expert's weights is gone") {
  const TransformerShape with = mixture();
  TransformerShape s = with;
  s.activation = Activation::gelu;
  const ModelParameters gate = parameters_by_part(with, Counted::all);
  const ModelParameters none = parameters_by_part(s, Counted::all);
  CHECK(3 * none.experts == 2 * gate.experts);
  CHECK(3 * none.shared_experts == 2 * gate.shared_experts);
  CHECK(none.router == gate.router);
  CHECK(products_per_token(with) - products_per_token(s) ==
        6 * 1024 * 4096 + 4 * 1024 * (2 * 512 + 256));
  s.experts.biases = true;
  CHECK(parameters_by_part(s, Counted::all).experts - none.experts == 4 * 8 * (512 + 1024));
}

TEST_CASE("one expert that takes every token is a dense MLP beside its router") {
  TransformerShape s = llama_7b();
  s.experts = {.count = 1, .per_token = 1, .ffn = s.ffn_hidden};
  CHECK(parameters(s) - parameters(llama_7b()) == s.layers * s.hidden);
  CHECK(products_per_token(s) - products_per_token(llama_7b()) == s.layers * s.hidden);
}

TEST_CASE("what a part of a model adds to its parameters") {
  const auto added = [](auto change) {
    TransformerShape s = mixture();
    change(s);
    return parameters(s) - parameters(mixture());
  };
  CHECK(added([](auto& s) { s.qkv_biases = true; }) == 10 * (1024 + 2 * 256));
  CHECK(added([](auto& s) { s.qk_norm = true; }) == 10 * 2 * 64);
  CHECK(added([](auto& s) { s.sinks = true; }) == 10 * 16);
  CHECK(added([](auto& s) { s.experts.shared_gate = true; }) == 4 * 1024);
  CHECK(added([](auto& s) { s.experts.score_bias = true; }) == 4 * 8);
  CHECK(added([](auto& s) { s.experts.biases = true; }) == 4 * 8 * (1 + 2 * 512 + 1024));
  CHECK(added([](auto& s) { s.window = 128; }) == 0);
  // A layer like the last, the product of both inputs, the norms of each and of the result.
  CHECK(added([](auto& s) { s.mtp_layers = 1; }) ==
        layer_parameters(mixture(), 9) + 2 * 1024 * 1024 + 3 * 1024);
}

TEST_CASE("latent attention of full rank is attention with one more product") {
  TransformerShape s = llama(2, 1024, 8, 8, 4096);
  s.latent = {.kv_rank = 256, .q_rank = 512, .nope = 96, .rope = 32, .value = 128};
  s.head_dim = 128;
  const std::int64_t layer = 1024 * 512 + 512 * 8 * 128 + 1024 * (256 + 32) + 256 * 8 * (96 + 128) +
                             8 * 128 * 1024 + 512 + 256;
  const ModelParameters count = parameters_by_part(s, Counted::all);
  CHECK(count.attention + count.norms == 2 * layer + 5 * 1024);
}

TEST_CASE("FLOPs: half of the keys under a causal mask, all of a window that has passed") {
  TransformerShape s = llama_7b();
  const double weights = 6.0 * static_cast<double>(products_per_token(s));
  const double per_key = 12.0 * 32 * 4096;
  CHECK(model_flops(s, 1, 4096).value == Approx(weights + per_key * 4096).epsilon(1e-12));
  CHECK(causal_model_flops(s, 1, 4096).value == Approx(weights + per_key * 2048).epsilon(1e-12));
  s.window = 1024;
  CHECK(model_flops(s, 1, 4096).value == Approx(weights + per_key * 1024).epsilon(1e-12));
  CHECK(causal_model_flops(s, 1, 4096).value ==
        Approx(weights + per_key * (1024 - 128)).epsilon(1e-12));
  s.window_every = 2;
  CHECK(causal_model_flops(s, 1, 4096).value ==
        Approx(weights + per_key * (1024 - 128 + 2048) / 2).epsilon(1e-12));
  s.window = 4096;  // as long as the sequence: none
  CHECK(causal_model_flops(s, 1, 4096).value ==
        Approx(causal_model_flops(llama_7b(), 1, 4096).value).epsilon(1e-12));
}

TEST_CASE("a model whose sizes contradict each other is refused by name") {
  const auto broken = [](auto change) {
    TransformerShape s = mixture();
    change(s);
    const auto* rule = broken_rule(shape_rules(), s);
    return rule == nullptr ? std::string() : std::string(rule->knob);
  };
  CHECK(broken([](auto&) {}).empty());
  CHECK(broken([](auto& s) { s.experts.per_token = 9; }) == "experts_per_token");
  CHECK(broken([](auto& s) { s.experts.ffn = 0; }) == "expert_ffn");
  CHECK(broken([](auto& s) { s.ffn_hidden = 0; }) == "ffn_hidden");
  CHECK(broken([](auto& s) {
          s.ffn_hidden = 0, s.experts.dense_layers = 0, s.experts.every = 1;
        }).empty());
  CHECK(broken([](auto& s) { s.experts.dense_layers = 9; }) == "dense_layers");
  CHECK(broken([](auto& s) { s.experts.groups = 3; }) == "router_groups");
  CHECK(broken([](auto& s) { s.experts.groups = 8; }) == "router_group_limit");
  CHECK(broken([](auto& s) { s.experts.groups = 8, s.experts.group_limit = 2; }).empty());
  CHECK(broken([](auto& s) { s.activation = Activation::gelu; }).empty());
  CHECK(broken([](auto& s) { s.latent.kv_rank = 64; }) == "latent_kv_rank");
  CHECK(broken([](auto& s) { s.latent = {64, 0, 32, 32, 64}; }) == "kv_heads");
  CHECK(broken([](auto& s) { s.latent = {64, 0, 32, 32, 64}, s.kv_heads = 16; }).empty());
  for (const auto rules : {shape_rules(), unwritten_models()})
    for (const Rule<TransformerShape>& rule : rules) {
      CHECK_FALSE(rule.what(mixture()).empty());
      CHECK_FALSE(rule.hint(mixture()).empty());
    }
}
