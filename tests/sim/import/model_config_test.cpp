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
  // 7,615,616,512 with the biases of q, k and v: 28 x (3,584 + 2 x 512)
  CHECK(parameters_of(R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
      "vocab_size": 152064, "sliding_window": 131072, "use_sliding_window": false})") ==
        7'615'616'512 - 28 * 4608);
  // 8,190,735,360 with the norms of queries and keys: 36 x 2 x 128
  CHECK(parameters_of(R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
      "head_dim": 128, "vocab_size": 151936})") == 8'190'735'360 - 36 * 256);
  CHECK(parameters_of(R"({"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384,
      "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1,
      "head_dim": 256, "vocab_size": 256000})") == 2'506'172'416);
  CHECK(parameters_of(R"({"model_type": "gpt_neox", "hidden_size": 4096,
      "intermediate_size": 16384, "num_hidden_layers": 32, "num_attention_heads": 32,
      "vocab_size": 50432})") == 6'857'302'016);
  CHECK(parameters_of(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
      "n_positions": 1024, "vocab_size": 50257})") == 124'439'808);
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
  CHECK(message(with(R"("layer_types": ["full_attention", "full_attention"])")).empty());
  CHECK_THAT(message(with(R"("layer_types": ["full_attention", "sliding_attention"])")),
             Contains("layers of several kinds"));
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
