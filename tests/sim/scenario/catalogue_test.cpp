#include "sim/scenario/catalogue.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

workloads::TransformerShape model(const std::string& name) {
  TomlValue document = toml_table("a.toml");
  document.set("name", toml_text(name, "a.toml:1"));
  TableReader table(document, "model");
  return catalogue().model(table);
}

}  // namespace

TEST_CASE("every entry of the catalogue reads and says where its numbers come from") {
  for (const std::string& name : catalogue().names("gpus"))
    CHECK(catalogue().gpu(toml_text(name, "a.toml")).name == name);
  for (const std::string& name : catalogue().names("nodes"))
    CHECK(catalogue().node(toml_text(name, "a.toml")).name == name);
  for (const std::string& name : catalogue().names("fabrics"))
    CHECK(catalogue().fabric(toml_text(name, "a.toml")).name == name);
  for (const std::string& name : catalogue().names("models")) CHECK(model(name).name == name);
  for (const char* folder : {"gpus", "nodes", "fabrics", "models", "software"})
    for (const std::string& name : catalogue().names(folder)) {
      INFO(folder << "/" << name);
      CHECK_FALSE(catalogue().sources(folder, name).empty());
    }
}

TEST_CASE("the shapes of the study have the published parameter counts") {
  CHECK(workloads::parameters(model("llama2-7b")) == 6'738'415'616);
  CHECK(workloads::parameters(model("llama2-13b")) == 13'015'864'320);
  CHECK(workloads::parameters(model("llama2-70b")) == 68'976'648'192);
  const workloads::TransformerShape small = model("llama2-1b");
  CHECK(std::tuple(small.hidden, small.layers, small.heads, small.kv_heads, small.ffn_hidden) ==
        std::tuple(2048, 22, 32, 4, 5632));
}

TEST_CASE("BERT is trained on masked positions, and positions are told in one way alone") {
  const workloads::TransformerShape bert = model("bert-large");
  CHECK(workloads::parameters(bert) == 336'226'108);
  CHECK(bert.objective == workloads::Objective::masked);
  CHECK(bert.dropout);
  const TomlValue document = read_toml("name = \"gpt2-xl\"\nrope = true\nalibi = true", "a.toml");
  TableReader table(document, "model");
  CHECK_THROWS_WITH(catalogue().model(table), Contains("both rope and alibi"));
}

TEST_CASE("a GPU means its usual node") {
  const auto node = [](const std::string& gpu) {
    return catalogue().node_of_gpu(gpu, "--gpu").node;
  };
  CHECK(node("h100") == "dgx-h100");
  CHECK(node("a100") == "dgx-a100");
  CHECK(node("a100-sxm4") == "dgx-a100");
  CHECK(node("a100-sxm4-40gb") == "dgx-a100-40gb");
  CHECK(node("a100-pcie") == "pcie4-8");
  CHECK(node("v100") == "dgx-1v");
  CHECK(node("h100-sxm5-80gb") == "dgx-h100");
  CHECK(node("host") == "host");
  CHECK_THROWS_WITH(node("h10"), Contains("--gpu: unknown GPU 'h10', did you mean 'h100'?"));
}

TEST_CASE("every GPU of the catalogue has a node, into which it is put where none holds it") {
  for (const std::string& name : catalogue().names("gpus")) {
    INFO(name);
    const NodeOfGpu found = catalogue().node_of_gpu(name, "--gpu");
    CHECK(catalogue().node(found.value("--gpu")).gpu.name == name);
    CHECK(found.put_in == !found.note().empty());
  }
  const NodeOfGpu a800 = catalogue().node_of_gpu("a800", "--gpu");
  CHECK((a800.put_in && a800.node == "dgx-a100"));
  CHECK(catalogue().node(a800.value("--gpu")).gpu.nvlink.value == 200e9);
}

TEST_CASE("a catalogue that is not there says what to do") {
  CHECK_THROWS_WITH(Catalogue("/nonexistent").names("gpus"), Contains("STEPCAST_DATA"));
}

TEST_CASE("software is found by framework and version") {
  const auto software = [](const std::string& text) {
    const TomlValue document = read_toml(text, "a.toml");
    TableReader table(document, "software");
    return catalogue().software(table);
  };
  CHECK(software("").version == "2.3");
  CHECK(software("framework = \"pytorch-fsdp2\"").version == "2.3");
  CHECK(software("version = \"2.7\"").optimizer.kernel == workloads::OptimizerKernel::fused);
  CHECK(software("framework = \"megatron-core\"").fusion == workloads::Fusion::fused);
  CHECK(software("attention = \"flash3\"").attention.kernel == workloads::AttentionKernel::flash3);
}
