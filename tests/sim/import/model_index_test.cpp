#include "sim/import/model_index.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "engine/check.hpp"
#include "sim/scenario/catalogue.hpp"
#include "workloads/plan/model_size.hpp"

using namespace stepcast;
using Catch::Contains;

namespace {

const sim::Catalogue& hub() {
  static const sim::Catalogue standard = sim::Catalogue::standard();
  return standard;
}

workloads::TransformerShape model(const std::string& name) {
  sim::TomlValue document = sim::toml_table("test");
  document.set("name", sim::toml_text(name, "test"));
  sim::TableReader table(document, "model");
  return hub().model(table);
}

std::string message(const std::string& name) {
  try {
    model(name);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what changes no shape is no part of a model's name") {
  using sim::plain_model_name;
  CHECK(plain_model_name("Qwen/Qwen3-8B") == "qwen38b");
  for (const char* name :
       {"meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8b", "LLAMA-3.1-8B",
        "nvidia/Llama-3.1-8B-Instruct-FP8", "unsloth/Meta-Llama-3.1-8B-bnb-4bit"})
    CHECK(plain_model_name(name) == "llama3.18b");
  CHECK(plain_model_name("google/gemma-3-4b-it") == plain_model_name("google/gemma-3-4b-pt"));
  CHECK(plain_model_name("Qwen/Qwen3-4B-Instruct-2507") == plain_model_name("Qwen/Qwen3-4B"));
  CHECK(plain_model_name("mistralai/Mistral-7B-Instruct-v0.3") ==
        plain_model_name("mistralai/Mistral-7B-v0.3"));
  CHECK(plain_model_name("mistralai/Mistral-7B-v0.1") != plain_model_name("mistral-7b-v0.3"));
}

TEST_CASE("200 models have an id, each with the parameters that are published, or a reason") {
  const auto& models = hub().model_index().models();
  CHECK(models.size() == 200);
  int modelled = 0, published = 0;
  for (const sim::IndexedModel& known : models) {
    INFO(known.id);
    if (!known.unlike.empty()) {
      CHECK_THAT(message(known.id), Contains(known.unlike) && Contains(known.nearest));
      CHECK(hub().has("models", known.nearest));
      continue;
    }
    ++modelled;
    const workloads::TransformerShape shape = model(known.id);
    CHECK(shape.name == (known.catalogue.empty() ? known.id : known.catalogue));
    if (known.published == 0) continue;
    ++published;
    const auto all = workloads::parameters_by_part(shape, workloads::Counted::all);
    const auto text = static_cast<double>(all.total() - all.mtp) / 1e9;
    const bool near = std::abs(text / known.published - 1.0) <= 0.01;
    CHECK(near == known.explained.empty());
  }
  CHECK(modelled == 187);
  CHECK(published >= 150);
}

TEST_CASE("an id that is also an entry of the catalogue is that entry") {
  CHECK(model("Qwen/Qwen3-8B") == model("qwen3-8b"));
  CHECK(model("deepseek-ai/DeepSeek-R1") == model("deepseek-v3"));
  for (const char* name : {"Llama 3 8B", "Llama-3-8B", "llama3.1-8b", "Meta-Llama-3-8B-Instruct"})
    CHECK(model(name) == model("llama3-8b"));
  for (const char* name : {"Llama-2-7b-hf", "llama-2-7b-chat", "meta-llama/Llama-2-7b"})
    CHECK(model(name) == model("llama2-7b"));
  CHECK(model("mixtral-8x7b-instruct-v0.1") == model("mixtral-8x7b"));
  CHECK(hub().full_name("models", "openai/gpt-oss-20b") == "gpt-oss-20b");
  CHECK(hub().full_name("models", "qwen3-4b-instruct-2507") == "Qwen/Qwen3-4B");
  CHECK_THAT(message("Qwen/Qwen3-9B"), Contains("unknown model"));
}

TEST_CASE("of a model of images the text alone is taken, and that is said") {
  const auto notes = [](const char* name) { return hub().model_notes(name, "test"); };
  const std::vector<std::string> said{"the encoder of images is not forecast"};
  CHECK(model("Qwen/Qwen2-VL-7B-Instruct") == model("Qwen/Qwen2.5-7B"));
  CHECK(notes("Qwen/Qwen2-VL-7B-Instruct") == said);
  CHECK(notes("Qwen/Qwen2.5-VL-7B") == said);
  CHECK(notes("Qwen/Qwen2.5-7B").empty());
}

TEST_CASE("an index with a name twice is refused") {
  const auto index = [](const std::string& text) {
    return sim::ModelIndex(sim::read_toml(text, "hub.toml"));
  };
  CHECK_THROWS_WITH(index("[\"a/Model-7B\"]\nlayers = 1\n[\"b/model-7b-it\"]\nlayers = 2\n"),
                    Contains("is also a name of 'a/Model-7B'"));
  CHECK_THROWS_WITH(index("model = 7\n"), Contains("is no table of a model"));
}
