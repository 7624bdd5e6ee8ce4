#include "sim/import/model_config.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/scenario/catalogue.hpp"
#include "workloads/plan/transformer.hpp"

using namespace stepcast;
using Catch::Contains;

namespace {

/// Parameters of the model that the catalogue makes of a configuration.
std::int64_t parameters_of(const std::string& json) {
  sim::TomlValue entry = sim::model_of_config(json, "dir/config.json");
  entry.erase("source");
  entry.erase("notes");
  sim::TableReader table(entry, "model");
  return workloads::parameters(sim::Catalogue::standard().model(table));
}

std::string notes_of(const std::string& json) {
  const sim::TomlValue entry = sim::model_of_config(json, "config.json");
  const sim::TomlValue* notes = entry.find("notes");
  return notes == nullptr ? "" : sim::write_toml_value(*notes);
}

const std::string llama3_8b =
    R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128256, "tie_word_embeddings": false, "hidden_act": "silu",
        "attention_bias": false, "rope_scaling": null})";

}  // namespace

TEST_CASE("configurations of known models give their parameter counts") {
  CHECK(parameters_of(llama3_8b) == 8'030'261'248);
  CHECK(parameters_of(R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "vocab_size": 32768, "sliding_window": null})") == 7'248'023'552);
  CHECK(parameters_of(R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
      "vocab_size": 152064, "sliding_window": 131072, "use_sliding_window": false})") ==
        7'615'616'512);
  CHECK(parameters_of(R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
      "head_dim": 128, "vocab_size": 151936})") == 8'190'735'360);
  CHECK(parameters_of(R"({"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384,
      "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1,
      "head_dim": 256, "vocab_size": 256000})") == 2'506'172'416);
  CHECK(parameters_of(R"({"model_type": "gpt_neox", "hidden_size": 4096,
      "intermediate_size": 16384, "num_hidden_layers": 32, "num_attention_heads": 32,
      "vocab_size": 50432})") == 6'857'302'016);
  CHECK(parameters_of(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
      "n_positions": 1024, "vocab_size": 50257})") == 124'439'808);
}

TEST_CASE("configurations of models of experts give their parameter counts") {
  CHECK(parameters_of(R"({"model_type": "mixtral", "hidden_size": 4096,
      "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8,
      "num_experts_per_tok": 2, "sliding_window": null, "rms_norm_eps": 1e-05})") ==
        46'702'792'704);
  CHECK(parameters_of(R"({"model_type": "qwen3_moe", "hidden_size": 2048,
      "intermediate_size": 6144, "num_hidden_layers": 48, "num_attention_heads": 32,
      "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "num_experts": 128,
      "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1,
      "mlp_only_layers": [], "max_window_layers": 48, "sliding_window": null,
      "use_sliding_window": false})") == 30'532'122'624);
  CHECK(parameters_of(R"({"model_type": "qwen2_moe", "hidden_size": 3584,
      "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
      "num_key_value_heads": 4, "vocab_size": 151936, "num_experts": 64, "num_experts_per_tok": 8,
      "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480,
      "decoder_sparse_step": 1, "sliding_window": 65536, "use_sliding_window": false})") ==
        57'408'658'944);
  CHECK(parameters_of(R"({"model_type": "deepseek_v2", "hidden_size": 2048,
      "intermediate_size": 10944, "num_hidden_layers": 27, "num_attention_heads": 16,
      "num_key_value_heads": 16, "vocab_size": 102400, "q_lora_rank": null, "kv_lora_rank": 512,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64,
      "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
      "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_group": 1, "topk_group": 1,
      "topk_method": "greedy", "scoring_func": "softmax"})") == 15'706'484'224);
  // 671,026,419,200 and a module for further tokens of 11,610,068,224.
  const std::string v3 = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
      "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 128,
      "num_key_value_heads": 128, "vocab_size": 129280, "q_lora_rank": 1536, "kv_lora_rank": 512,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256,
      "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
      "first_k_dense_replace": 3, "moe_layer_freq": 1, "n_group": 8, "topk_group": 4,
      "topk_method": "noaux_tc", "scoring_func": "sigmoid", "num_nextn_predict_layers": 1,
      "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})";
  CHECK(parameters_of(v3) == 671'026'419'200 + 11'610'068'224);
  CHECK_THAT(notes_of(v3), Contains("stored in fp8"));
  CHECK(parameters_of(R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
      "num_hidden_layers": 4, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
      "vocab_size": 201088, "num_local_experts": 32, "num_experts_per_tok": 4,
      "attention_bias": true, "sliding_window": 128, "swiglu_limit": 7.0,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
      "full_attention"], "quantization_config": {"quant_method": "mxfp4"}})") ==
        (20'914'757'184 - 2 * 201'088 * 2'880 - 2'880) / 6 + 2 * 201'088 * 2'880 + 2'880);
  CHECK(parameters_of(R"({"model_type": "llama4", "vision_config": {"hidden_size": 1408},
      "text_config": {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
      "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048, "num_local_experts": 128,
      "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "use_qk_norm": false,
      "attention_chunk_size": 8192}})") == 400'711'848'960);
  CHECK(parameters_of(R"({"model_type": "bert", "hidden_size": 1024, "intermediate_size": 4096,
      "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 30522,
      "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
      "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1})") == 336'226'108);
}

TEST_CASE("a window of attention holds in the layers that the configuration names") {
  const auto entry = [](const std::string& more) {
    return sim::model_of_config(
        R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 4, "num_attention_heads": 32, "vocab_size": 32000, )" +
            more + "}",
        "config.json");
  };
  const auto number = [](const sim::TomlValue& table, const char* key) {
    const sim::TomlValue* found = table.find(key);
    return found == nullptr ? 0 : std::get<std::int64_t>(found->data);
  };
  CHECK(number(entry(R"("sliding_window": 4096)"), "window") == 4096);
  CHECK(number(entry(R"("sliding_window": 4096)"), "window_every") == 0);
  CHECK(number(entry(R"("sliding_window": null)"), "window") == 0);
  const std::string full = R"("full_attention")", window = R"("sliding_attention")";
  const auto types = [](const std::string& a, const std::string& b, const std::string& c,
                        const std::string& d) {
    return R"("sliding_window": 64, "layer_types": [)" + a + "," + b + "," + c + "," + d + "]";
  };
  CHECK(number(entry(types(window, full, window, full)), "window_every") == 2);
  CHECK(number(entry(types(window, full, full, window)), "window_every") == 3);
  CHECK(number(entry(types(full, full, full, full)), "window") == 0);
  const sim::TomlValue listed = entry(types(full, window, full, window));
  CHECK(*listed.find("layer_pattern")->text() == "*- W-");
}

TEST_CASE("where a model is only nearly its configuration's, a note says so") {
  CHECK(notes_of(llama3_8b).empty());
  const auto with = [](const std::string& more) {
    return llama3_8b.substr(0, llama3_8b.size() - 1) + ", " + more + "}";
  };
  CHECK_THAT(notes_of(with(R"("mlp_bias": true)")), Contains("'mlp_bias'"));
  CHECK_THAT(notes_of(with(R"("clip_qkv": 8.0)")), Contains("clipping"));
}

TEST_CASE("what is not modelled is refused by name, never dropped") {
  const auto message = [](const std::string& json) {
    try {
      sim::model_of_config(json, "config.json");
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto with = [](const std::string& more) {
    return llama3_8b.substr(0, llama3_8b.size() - 1) + ", " + more + "}";
  };
  CHECK(message(llama3_8b).empty());
  CHECK_THAT(message(with(R"("num_local_experts": 8)")), Contains("mixture of experts"));
  CHECK(message(with(R"("num_local_experts": 0)")).empty());
  CHECK_THAT(message(with(R"("kv_lora_rank": 512)")), Contains("latent attention (MLA)"));
  CHECK_THAT(message(with(R"("sliding_window": 4096)")), Contains("sliding window"));
  CHECK_THAT(message(with(R"("layer_types": ["full_attention", "full_attention"])")),
             Contains("fewer layers are listed"));
  CHECK_THAT(message(with(R"("layers_block_type": ["conv"])")),
             Contains("layers of kind \"conv\"") && Contains("these are: mamba"));
  CHECK_THAT(message(with(R"("quantization_config": {"quant_method": "gptq"})")),
             Contains("quantised weights"));
  CHECK(message(with(R"("quantization_config": {"quant_method": "fp8"})")).empty());
  for (const auto& [type, why] : {std::pair{"jamba", "layers of Mamba-1"},
                                  {"falcon_mamba", "layers of Mamba-1"},
                                  {"kimi_linear", "Kimi delta attention"},
                                  {"deepseek_v4", "compressed keys"},
                                  {"minimax", "lightning attention"}})
    CHECK_THAT(message(R"({"model_type": ")" + std::string(type) + R"("})"),
               Contains(why) && Contains("the nearest that is: "));
  CHECK_THAT(message(R"({"model_type": "mamba"})"), Contains("type 'mamba' are not modelled"));
  CHECK_THAT(message(R"({"model_type": "lama"})"), Contains("did you mean 'llama'"));
  CHECK_THAT(message(R"({"hidden_size": 64})"), Contains("no 'model_type'"));
  CHECK_THAT(message("[1, 2]"), Contains("no JSON object"));
  CHECK_THAT(message("{\"model_type\": "), Contains("no JSON object"));
  CHECK_THAT(message(R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4})"),
             Contains("'num_hidden_layers' is missing"));
  CHECK_THAT(message(R"({"model_type": "llama", "num_attention_heads": "four"})"),
             Contains("'num_attention_heads' is no positive whole number"));
}

TEST_CASE("a model is named after its folder where the file has everybody's name") {
  const auto name = [](const std::string& path) {
    return *sim::model_of_config(llama3_8b, path).find("name")->text();
  };
  CHECK(name("models/Llama-3-8B/config.json") == "Llama-3-8B");
  CHECK(name("my-llama.json") == "my-llama");
  CHECK(name("config.json") == "llama");
}
