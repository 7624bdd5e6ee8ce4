// The models of 2024 and 2025: the catalogue's entries have the parameters that their authors
// publish, and the FLOPs that trainers count.
#include <algorithm>
#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "workloads/plan/model_size.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using namespace stepcast::workloads;
using Catch::Matchers::Contains;

namespace {

TransformerShape modern(const std::string& name, const std::string& changes = "") {
  static const Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  const TomlValue document = read_toml("name = \"" + name + "\"\n" + changes, "a.toml");
  TableReader table(document, "model");
  return catalogue.model(table);
}

}  // namespace

TEST_CASE("models of experts have the published parameters, in total and of a token") {
  struct Published {
    const char* name;
    double total, active;  // billions
  };
  constexpr Published models[] = {
      {"mixtral-8x7b", 46.703, 12.880},
      {"mixtral-8x22b", 140.630, 39.161},
      {"deepseek-v2-lite", 15.706, 2.661},
      {"deepseek-v2", 235.741, 21.376},
      {"deepseek-v3", 671.026, 37.552},
      {"kimi-k2", 1026.408, 32.862},
      {"qwen3-30b-a3b", 30.532, 3.353},
      {"qwen3-235b-a22b", 235.094, 22.191},
      {"qwen3-coder-480b", 480.155, 35.475},
      {"qwen2-57b-a14b", 57.409, 14.249},
      {"gpt-oss-20b", 20.915, 4.187},
      {"gpt-oss-120b", 116.829, 5.712},
      {"llama4-scout", 107.770, 17.173},
      {"llama4-maverick", 400.712, 17.185},
      {"grok-1", 315.7, 83.8},
      {"dbrx", 131.597, 36.470},
      {"moonlight-16b-a3b", 15.960, 2.915},
  };
  for (const Published& model : models) {
    INFO(model.name);
    const TransformerShape shape = modern(model.name, "mtp_layers = 0");
    CHECK(static_cast<double>(parameters(shape)) / 1e9 == Approx(model.total).epsilon(1e-3));
    const auto active = parameters_by_part(shape, Counted::active).total();
    CHECK(static_cast<double>(active) / 1e9 == Approx(model.active).epsilon(1e-3));
  }
  CHECK(parameters(modern("qwen3-8b")) == 8'190'735'360);
  CHECK(parameters(modern("mixtral-8x7b")) == 46'702'792'704);
  // Its module for further tokens: a layer of experts, 2 h^2, three norms.
  CHECK(mtp_parameters(modern("deepseek-v3")) == 11'610'068'224);
}

TEST_CASE("a token's products in forward are those that are known of these models") {
  constexpr std::pair<const char*, double> models[] = {
      {"mixtral-8x7b", 25.50}, {"qwen3-30b-a3b", 6.08}, {"qwen3-235b-a22b", 43.14},
      {"gpt-oss-120b", 10.27}, {"deepseek-v2", 41.70},  {"kimi-k2", 63.37},
      {"deepseek-v3", 73.25},
  };
  for (const auto& [name, gflop] : models) {
    INFO(name);
    const auto weights = products_per_token(modern(name, "mtp_layers = 0"));
    CHECK(2e-9 * static_cast<double>(weights) == Approx(gflop).epsilon(1e-3));
  }
}

TEST_CASE("a token's FLOPs in training are the ratio of Megatron-Bridge's rates") {
  // TFLOP/s over tokens/s of its performance summaries, sequence 4096 (2025-09 to 2026-08).
  struct Ratio {
    const char* name;
    const char* changes;
    double low, high;
  };
  constexpr Ratio ratios[] = {
      {"qwen3-30b-a3b", "", 22.8, 23.1},     {"qwen3-235b-a22b", "", 147.7, 148.3},
      {"kimi-k2", "", 204.2, 204.6},         {"deepseek-v3", "mtp_layers = 0", 249.1, 249.7},
      {"deepseek-v3", "", 259.6, 260.7},     {"gpt-oss-120b", "", 32.6, 32.6},
      {"moonlight-16b-a3b", "", 17.2, 17.2}, {"qwen3-8b", "", 49.0, 49.0},
  };
  for (const Ratio& ratio : ratios) {
    INFO(ratio.name << " " << ratio.changes);
    const double gflop = causal_model_flops(modern(ratio.name, ratio.changes), 1, 4096).value / 1e9;
    CHECK(gflop > 0.99 * ratio.low);
    CHECK(gflop < 1.01 * ratio.high);
  }
}

TEST_CASE("what follows from latent attention is no change where it is written out") {
  const auto changed_with = [](const std::string& lines) {
    const std::string text = "model = { name = \"deepseek-v2-lite\"" + lines +
                             " }\ncluster = { node = \"dgx-h100\", nodes = 1 }\n"
                             "plan = { data = \"zero1\" }\nbatch = { local = 1 }\n"
                             "software = { framework = \"megatron-core\" }\n";
    return read_scenario(read_toml(text, "own.toml"), catalogue()).changed;
  };
  const auto written = changed_with(", kv_heads = 16, head_dim = 192");
  CHECK(written == changed_with(""));
  CHECK(std::ranges::count(changed_with(", head_dim = 64"), "model.head_dim") == 1);
}

TEST_CASE("heads of latent attention are as wide as their parts, whatever hidden / heads is") {
  const TransformerShape v3 = modern("deepseek-v3");
  CHECK(v3.head_dim == 192);
  CHECK(v3.kv_heads == 128);
  CHECK(value_width(v3) == 128);
}

TEST_CASE("a catalogue's model of experts that is changed against itself is refused with a hint") {
  CHECK_THROWS_WITH(modern("deepseek-v3", "router_group_limit = 1\nexperts_per_token = 64"),
                    Contains("leaves a token 32 experts to choose 64 of"));
  CHECK_THROWS_WITH(modern("mixtral-8x7b", "dense_layers = 1"), Contains("ffn_hidden is 0"));
  CHECK_THROWS_WITH(modern("llama2-7b", "latent_kv_rank = 512"),
                    Contains("state latent_nope, latent_rope and latent_value"));
}
