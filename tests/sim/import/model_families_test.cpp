// Configurations of 2024 to 2026, family by family, written anew with the sizes of small models of
// each: what they say of layers, mixers and experts becomes the entry's keys.
#include "sim/import/model_families.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/import/model_config.hpp"
#include "sim/scenario/catalogue.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/model_size.hpp"

using namespace stepcast;
using Catch::Contains;

namespace {

/// Four layers of 1,024 with 16 heads, and what is added.
std::string config(const std::string& type, const std::string& more, bool in_text = false) {
  const std::string sizes =
      R"("hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16,
         "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 4096,
         "vocab_size": 32000)" +
      (more.empty() ? "" : ", " + more);
  if (!in_text) return R"({"model_type": ")" + type + "\", " + sizes + "}";
  return R"({"model_type": ")" + type + R"(", "vision_config": {"depth": 24}, "text_config": {)" +
         sizes + "}}";
}

workloads::TransformerShape shape(const std::string& json) {
  sim::TomlValue entry = sim::model_of_config(json, "dir/config.json");
  entry.erase("source");
  entry.erase("notes");
  sim::TableReader table(entry, "model");
  return sim::Catalogue::standard().model(table);
}

std::string value(const std::string& json, const char* key) {
  const sim::TomlValue entry = sim::model_of_config(json, "config.json");
  const sim::TomlValue* found = entry.find(key);
  return found == nullptr ? "" : sim::write_toml_value(*found);
}

const std::string experts =
    R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512)";

}  // namespace

TEST_CASE("numbers that only Python's JSON has are read as if they were not there") {
  const std::string json = config("llama", R"("limit": [0.0, Infinity], "x": -Infinity, "y": NaN,
      "name": "Infinity \" NaN")");
  CHECK(shape(json).layers == 4);
  CHECK_THROWS_WITH(sim::model_of_config("{\"a\": Infinit}", "config.json"),
                    Contains("is no JSON object"));
}

TEST_CASE("of a model of text and images the text is read, with a sentence") {
  for (const char* type : {"qwen3_vl", "gemma3", "mistral3"}) {
    const std::string json = config(type, "", true);
    CHECK(shape(json).hidden == 1024);
    CHECK_THAT(value(json, "notes"), Contains("'vision_config'") && Contains("model of text"));
  }
  // A name that nobody knows, with a text model that is known.
  const std::string json = R"({"model_type": "some_vlm", "text_config": {"model_type": "qwen3",
      "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 32000,
      "intermediate_size": 4096}, "tie_word_embeddings": true})";
  CHECK(shape(json).qk_norm);
  CHECK(shape(json).tied_embeddings);
}

TEST_CASE("windows come by period, by list, and by flags") {
  const std::string window = R"("sliding_window": 512)";
  CHECK(value(config("gemma2", window), "window_every") == "2");
  CHECK(value(config("gemma3", window + R"(, "sliding_window_pattern": 2)"), "window_every") ==
        "2");
  CHECK(value(config("gemma3", window), "window") == "512");  // the sixth attends to all
  CHECK(value(config("gemma3", window), "layer_pattern").empty());
  CHECK(value(config("cohere2", window), "layer_pattern") == "\"W- W- W- *-\"");
  CHECK(value(config("mimo_v2_flash", window + R"(, "hybrid_layer_pattern": [0, 1, 1, 0])"),
              "layer_pattern") == "\"*- W- W-\"");
  CHECK_THROWS_WITH(shape(config("granite", window)), Contains("sliding window"));
}

TEST_CASE("norms and caps of a family stand around its layers") {
  const workloads::TransformerShape gemma =
      shape(config("gemma2", R"("sliding_window": 512, "attn_logit_softcapping": 50.0,
          "final_logit_softcapping": 30.0)"));
  CHECK(gemma.norm_place == workloads::NormPlace::both);
  CHECK(gemma.logit_cap);
  CHECK(gemma.tied_embeddings);
  const workloads::TransformerShape olmo = shape(config("olmo2", ""));
  CHECK(olmo.norm_place == workloads::NormPlace::behind);
  CHECK(olmo.qk_norm_whole);
  CHECK(shape(config("glm4", "")).norm_place == workloads::NormPlace::both);
  CHECK(shape(config("glm4_moe", experts + R"(, "use_qk_norm": true)")).qk_norm);
  CHECK_FALSE(shape(config("glm4_moe", experts + R"(, "use_qk_norm": false)")).qk_norm);
}

TEST_CASE("experts have many names") {
  const auto same = [](const std::string& json) {
    const workloads::ExpertShape e = shape(json).experts;
    CHECK(e.count == 8);
    CHECK(e.per_token == 2);
    CHECK(e.ffn == 512);
    return e;
  };
  CHECK(same(config("qwen3_moe", experts)).shared_ffn == 0);
  CHECK(same(config("ernie4_5_moe", R"("moe_num_experts": 8, "moe_k": 2,
      "moe_intermediate_size": 512, "moe_num_shared_experts": 2, "moe_layer_start_index": 1)"))
            .shared_ffn == 1024);
  CHECK(same(config("glm4_moe", R"("n_routed_experts": 8, "num_experts_per_tok": 2,
      "moe_intermediate_size": 512, "n_shared_experts": 1, "first_k_dense_replace": 1)"))
            .dense_layers == 1);
  CHECK(same(config("bailing_moe_v2", experts + R"(, "n_group": 4, "topk_group": 2,
      "num_shared_experts": 1)"))
            .groups == 4);
  CHECK(same(config("step3p7", R"("moe_num_experts": 8, "moe_top_k": 2,
      "moe_intermediate_size": 512, "share_expert_dim": 640, "moe_layers_enum": "2,3")"))
            .shared_ffn == 640);
  // Lists of one value a layer.
  CHECK(same(config("hunyuan_v1_moe", R"("num_experts": 8, "moe_topk": [2, 2, 2, 2],
      "moe_intermediate_size": [512, 512, 512, 512], "num_shared_expert": [1, 1, 1, 1])"))
            .shared_ffn == 512);
  CHECK_THROWS_WITH(shape(config("hunyuan_v1_moe", R"("num_experts": 8, "moe_topk": [2, 4],
      "moe_intermediate_size": 512)")),
                    Contains("'moe_topk' of other values in other layers"));
}

TEST_CASE("which layers have experts comes by list, by number and by name") {
  const auto pattern = [](const std::string& more) {
    const std::string json = config("glm4_moe", experts + ", " + more);
    std::string out;
    const workloads::TransformerShape s = shape(json);
    for (std::int64_t l = 0; l < s.layers; ++l) out += workloads::has_experts(s, l) ? 'E' : '-';
    return out;
  };
  CHECK(pattern(R"("first_k_dense_replace": 1)") == "-EEE");
  CHECK(pattern(R"("moe_layer_freq": [0, 1, 0, 1])") == "-E-E");
  CHECK(pattern(R"("mlp_only_layers": [2])") == "EE-E");
  CHECK(pattern(R"("mlp_layer_types": ["dense", "sparse", "sparse", "dense"])") == "-EE-");
  CHECK(pattern(R"("decoder_sparse_step": 2)") == "-E-E");
  CHECK(pattern(R"("moe_layer_start_index": 1, "moe_layer_end_index": 2)") == "-EE-");
  CHECK(pattern(R"("moe_layers_enum": "0,3")") == "E--E");
}

TEST_CASE("linear attention comes every so often, or by list") {
  const std::string delta = R"("linear_num_key_heads": 8, "linear_num_value_heads": 16,
      "linear_key_head_dim": 64, "linear_value_head_dim": 64)";
  CHECK(value(config("qwen3_next", experts + ", " + delta + R"(, "full_attention_interval": 4,
      "shared_expert_intermediate_size": 512)"),
              "layer_pattern") == "\"GE GE GE *E\"");
  const workloads::TransformerShape s =
      shape(config("qwen3_5", delta + R"(, "layer_types": ["linear_attention", "full_attention",
          "linear_attention", "full_attention"], "attn_output_gate": true)"));
  CHECK(s.gate == workloads::AttentionGate::element);
  CHECK(s.delta.projected() == 2 * 512 + 2 * 1024 + 2 * 16);
  CHECK(workloads::to_text(s.pattern) == "G- *-");
}

TEST_CASE("blocks of one mixer or one MLP come as letters or as words") {
  const std::string mamba = R"("mamba_num_heads": 32, "mamba_head_dim": 64, "n_groups": 8,
      "ssm_state_size": 128)";
  CHECK(value(config("nemotron_h", mamba + R"(, "hybrid_override_pattern": "M-*-")"),
              "layer_pattern") == "\"M - * -\"");
  const std::string words = R"({"model_type": "nemotron_h", "hidden_size": 1024,
      "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000,
      "intermediate_size": 512, "layers_block_type": ["mamba", "moe", "attention", "moe"],
      "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512,
      "moe_latent_size": 256, "moe_shared_expert_intermediate_size": 768, )" +
                            mamba + "}";
  const workloads::TransformerShape s = shape(words);
  CHECK(s.layers == 4);  // the configuration has no num_hidden_layers
  CHECK(workloads::to_text(s.pattern) == "M E * E");
  CHECK(s.activation == workloads::Activation::squared_relu);
  CHECK(s.experts.latent == 256);
  CHECK(workloads::expert_parameters(s) == 2 * 256 * 512);
  // Granite's layers have both.
  CHECK(value(config("granitemoehybrid", R"("num_local_experts": 8, "num_experts_per_tok": 2,
      "shared_intermediate_size": 640, "mamba_n_heads": 32, "mamba_d_head": 64,
      "mamba_d_state": 128, "layer_types": ["mamba", "mamba", "attention", "mamba"])"),
              "layer_pattern") == "\"ME ME *E\"");
  CHECK(value(config("falcon_h1", R"("mamba_n_heads": 32, "mamba_d_head": 64, "mamba_n_groups": 1,
      "mamba_d_state": 128)"),
              "layer_pattern") == "\"H-\"");
}

TEST_CASE("layers of a search have attention or none, and MLPs of several widths") {
  const std::string json = R"({"model_type": "nemotron-nas", "hidden_size": 1024,
      "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": null,
      "vocab_size": 32000, "intermediate_size": null, "block_configs": [
      {"attention": {"n_heads_in_group": 8, "no_op": false}, "ffn": {"ffn_mult": 2.625}},
      {"attention": {"n_heads_in_group": null, "no_op": true}, "ffn": {"ffn_mult": 5.25}}]})";
  const workloads::TransformerShape s = shape(json);
  CHECK(workloads::to_text(s.pattern) == "*-1792 -3584");
  CHECK(s.kv_heads == 2);
}

TEST_CASE("heads of windows, shared keys and an index are the layer's") {
  const workloads::TransformerShape gemma =
      shape(config("gemma4", R"("sliding_window": 512, "global_head_dim": 128,
          "num_global_key_value_heads": 2, "attention_k_eq_v": true, "layer_types":
          ["sliding_attention", "full_attention", "sliding_attention", "full_attention"])"));
  CHECK(gemma.head_dim == 128);
  CHECK(gemma.window_head_dim == 64);
  CHECK(gemma.kv_heads == 2);
  CHECK(gemma.window_kv_heads == 4);
  CHECK(gemma.values_are_keys);
  CHECK_THROWS_WITH(shape(config("gemma4", R"("num_kv_shared_layers": 2)")),
                    Contains("'num_kv_shared_layers'") && Contains("gemma-4-31B"));
  const std::string latent = R"("kv_lora_rank": 128, "q_lora_rank": 256, "qk_nope_head_dim": 64,
      "qk_rope_head_dim": 32, "v_head_dim": 64, "index_n_heads": 8, "index_head_dim": 64,
      "index_topk": 256, "indexer_types": ["full", "shared", "full", "shared"])";
  const std::string json = R"({"model_type": "deepseek_v32", "hidden_size": 1024,
      "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 32000,
      "intermediate_size": 4096, )" +
                           latent + "}";
  const workloads::TransformerShape indexed = shape(json);
  CHECK(indexed.index == workloads::IndexShape{8, 64, 256});
  CHECK(workloads::to_text(indexed.pattern) == "*- R-");
}

TEST_CASE("one module for further tokens is read, more are named") {
  for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}) {
    const std::string named = "\"" + std::string(key) + "\": ";
    CHECK(shape(config("llama", named + "1")).mtp_layers == 1);
    CHECK(shape(config("llama", named + "3")).mtp_layers == 0);
    CHECK_THAT(value(config("llama", named + "3"), "notes"), Contains("its 3 modules"));
  }
}

TEST_CASE("every family that is refused names one that is not") {
  for (const sim::UnlikeFamily& family : sim::unlike_families()) {
    CHECK_THROWS_WITH(shape(config(std::string(family.type), "")),
                      Contains(family.what) && Contains(family.nearest));
    for (const sim::ModelFamily& known : sim::model_families()) CHECK(known.type != family.type);
  }
}
