// Names of the stacks around transformers' Trainer against their sources (trainer_names.tsv).
#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "engine/check.hpp"
#include "sim/launch/launch.hpp"
#include "sim/launch/trainer_words.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scripts/yaml_settings.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;

TEST_CASE(
    "names of accelerate, DeepSpeed and LLaMA-Factory, and all that is written for TRL, are in "
    "their "
    "source") {
  std::ifstream file(STEPCAST_SOURCE_DIR "/tests/sim/launch/trainer_names.tsv");
  REQUIRE(file);
  std::set<std::string, std::less<>> source;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') source.insert(line.substr(0, line.find('\t')));
  REQUIRE(source.size() > 40);
  for (const LaunchWords words :
       {deepspeed_words(), accelerate_words(), llama_factory_words(), llama_factory_v1_words()})
    for (const LaunchWord& word : words)
      if (word.use == Use::read || word.use == Use::count || word.use == Use::flag) {
        INFO(word.name);
        if (word.until != 0) continue;  // a fork's
        const bool torchruns = word.name == "nproc_per_node" || word.name == "nnodes";
        CHECK(source.contains(word.name) != torchruns);
      }
  for (const char* plan :
       {"data = \"zero3\"\nrecompute = \"full\"\n", "data = \"zero1\"\noptimizer_offload = 1.0\n",
        "data = \"zero2\"\nshard_degree = 8\n", "data = \"ddp\"\n"})
    for (const char* model : {"", "lora_rank = 8\nlora_base = \"nf4_double\"\n"}) {
      const std::string text =
          "[model]\nname = \"llama3-8b\"\nsequence = 4096\n" + std::string(model) +
          "[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n[plan]\n" + plan +
          "[batch]\nglobal = 32\nmicro_batch = 1\n[software]\nframework = \"trl\"\n";
      Launch launch;
      try {
        launch = launch_of(read_scenario(read_toml(text, "a.toml"), catalogue()));
      } catch (const InputError&) {
        continue;  // adapters beside an offload
      }
      for (const LaunchFile& written : launch.files) {
        const Settings read = read_yaml_settings(written.text, written.name);
        for (const auto& [name, value] : read.all()) {
          INFO(written.name << ": " << name);
          CHECK(source.contains(name));
        }
      }
    }
}
