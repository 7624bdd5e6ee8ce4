#include "workloads/plan/layers.hpp"

#include <catch2/catch.hpp>

#include "tests/workloads/fixtures.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/plan/shape_rules.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

LayerPattern pattern_of(const std::string& text) {
  LayerPattern out;
  std::string wrong;
  REQUIRE(read_pattern(text, out, wrong));
  return out;
}

std::string broken(const TransformerShape& s) {
  const auto* rule = broken_rule(shape_rules(), s);
  return rule == nullptr ? "" : rule->what(s);
}

}  // namespace

TEST_CASE("a pattern is written as it was read, and Megatron's word has a layer a letter") {
  for (const std::string text : {"G- G- G- *-", "M E M * -", "*-14336 -8192 RE HE W-"})
    CHECK(to_text(pattern_of(text)) == text);
  CHECK(to_text(pattern_of("MEM*E")) == "M E M * E");
  CHECK(to_text(pattern_of("*-")) == "*-");  // one layer of attention and an MLP
  LayerPattern out;
  std::string wrong;
  REQUIRE(read_letters("*-", out, wrong));
  CHECK(to_text(out) == "* -");  // of letters alone, two
  CHECK_FALSE(read_letters("M D", out, wrong));
  for (const std::string text : {"G- X-", "*E14336", "*-0", "*-12a"}) {
    CHECK_FALSE(read_pattern(text, out, wrong));
    CHECK_FALSE(wrong.empty());
  }
}

TEST_CASE("the shortest pattern repeats to the same layers") {
  CHECK(to_text(shortest(pattern_of("W- W- *- W- W- *- W- W-"))) == "W- W- *-");
  CHECK(to_text(shortest(pattern_of("*- *- *-"))) == "*-");
  CHECK(to_text(shortest(pattern_of("M E *"))) == "M E *");
}

TEST_CASE("keys of windows and experts and the pattern that says the same are one model") {
  TransformerShape keys = llama(8, 1024, 16, 4, 4096);
  keys.experts = {.count = 8, .per_token = 2, .ffn = 512, .dense_layers = 1};
  keys.window = 128;
  keys.window_every = 2;
  TransformerShape pattern = keys;
  pattern.experts.dense_layers = 0;
  pattern.window_every = 1;
  pattern.pattern = pattern_of("W- *E WE *E WE *E WE *E");
  for (std::int64_t layer = 0; layer < keys.layers; ++layer)
    CHECK(layer_form(keys, layer) == layer_form(pattern, layer));
  CHECK(parameters(keys) == parameters(pattern));
  CHECK(expert_layers(keys) == expert_layers(pattern));
  CHECK(model_flops(keys, 1, 4096) == model_flops(pattern, 1, 4096));
  CHECK(causal_model_flops(keys, 1, 4096) == causal_model_flops(pattern, 1, 4096));
}

TEST_CASE("a layer of its own mixer and a layer of its own MLP are one layer of both") {
  TransformerShape joined = llama(8, 1024, 16, 4, 4096), apart = joined;
  joined.pattern = pattern_of("*-");
  apart.layers = 16;
  apart.pattern = pattern_of("* -");
  CHECK(broken(joined).empty());
  CHECK(broken(apart).empty());
  CHECK(parameters(joined) == parameters(apart));
  CHECK(parameters(joined) == parameters(llama(8, 1024, 16, 4, 4096)));
  CHECK(model_flops(joined, 1, 512) == model_flops(apart, 1, 512));
}

TEST_CASE("layers with a window may have heads of their own, and an MLP its width") {
  TransformerShape s = llama(2, 1024, 16, 4, 4096);
  s.window = 128;
  s.window_heads = 32;
  s.window_kv_heads = 8;
  s.window_head_dim = 32;
  s.values_are_keys = true;
  s.pattern = pattern_of("*- W-2048");
  const std::int64_t full = 1024 * (16 * 64 + 4 * 64 + 16 * 64);
  const std::int64_t window = 1024 * (32 * 32 + 2 * 8 * 32 + 32 * 32);
  const ModelParameters count = parameters_by_part(s, Counted::all);
  CHECK(count.attention == full + window);
  CHECK(count.dense_mlp == 3 * 1024 * (4096 + 2048));
  // Every layer's tensors are as many, whoever counts them.
  for (std::int64_t layer = 0; layer < s.layers; ++layer)
    CHECK(elements_of(layer_tensors(s, {}, true, layer_kind(s, {}, layer))) ==
          layer_parameters(s, layer));
}

TEST_CASE("rules name what a pattern asks for and the model has not") {
  const auto said = [](const std::string& text, auto change) {
    TransformerShape s = llama(4, 1024, 16, 4, 4096);
    s.pattern = pattern_of(text);
    change(s);
    return broken(s);
  };
  const auto nothing = [](TransformerShape&) {};
  CHECK_THAT(said("*E", nothing), Catch::Contains("has E, and the model no experts"));
  CHECK_THAT(said("W-", nothing), Catch::Contains("has W, and the model no window"));
  CHECK_THAT(said("G-", nothing), Catch::Contains("without all sizes of the delta rule"));
  CHECK_THAT(said("M -", nothing), Catch::Contains("without all sizes of states"));
  CHECK_THAT(said("R-", nothing), Catch::Contains("no index"));
  CHECK_THAT(said("*- *- *- *- *-", nothing), Catch::Contains("5 words for 4 layers"));
  CHECK_THAT(said("*-", [](auto& s) { s.window = 8, s.window_every = 2; }),
             Catch::Contains("beside window_every"));
  CHECK_THAT(said("*-", [](auto& s) { s.experts = {.count = 8, .per_token = 2, .ffn = 64}; }),
             Catch::Contains("layer_pattern no E"));
}
