// What stepcast launch writes is read back to the plan that it was written for, by the readers that
// stepcast run has for launch files.
#include "sim/launch/launch.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>

#include "engine/check.hpp"
#include "sim/inputs/document.hpp"
#include "sim/inputs/launch_file.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;
using sim::Facts;

namespace {

struct Framework {
  std::string name, version;
  std::vector<const char*> data;
  std::string software{};     // a line of [software]
  std::string launched_as{};  // a release between those of the catalogue
};

std::vector<const char*> data_of(const std::string& name) {
  if (name == "deepspeed" || name == "megatron-deepspeed" || name == "trl" || name == "hf-trainer")
    return {"ddp", "zero1", "zero2", "zero3"};
  if (name == "torchtitan" || name.starts_with("pytorch")) return {"ddp", "zero2", "zero3"};
  return {"ddp", "zero1"};
}

bool has_form(const std::string& name, const std::string& version) {
  constexpr std::string_view with_form[] = {
      "megatron-core", "megatron-lm",   "megatron-deepspeed",
      "deepspeed",     "nemo",          "torchtitan",
      "trl",           "pytorch-fsdp1", "pytorch-fsdp1-compiled",
      "pytorch-fsdp2", "hf-trainer"};
  return std::ranges::count(with_form, std::string_view(name)) > 0 &&
         !(name == "nemo" && version == "2024");  // NeMo 2: Python alone
}

/// Every framework and version of the catalogue that has a launch form, and releases of Megatron
/// core between them, which have arguments of their own.
std::vector<Framework> frameworks() {
  std::vector<Framework> out;
  for (const auto& file :
       std::filesystem::directory_iterator(STEPCAST_SOURCE_DIR "/scenarios/software")) {
    const sim::TomlValue entry = sim::read_toml_file(file.path().string());
    const std::string name = *entry.find("framework")->text(),
                      version = *entry.find("version")->text();
    if (!has_form(name, version)) continue;
    out.push_back({name, version, data_of(name)});
    if (name == "megatron-core" && (version == "0.13" || version == "0.14"))
      out.push_back({name, version, {"zero1", "zero2", "zero3"}, "use_megatron_fsdp = true"});
  }
  for (const auto& [release, base] :
       {std::pair{"0.8", "0.7"}, {"0.9", "0.7"}, {"0.11", "0.10"}, {"0.19", "0.18"}})
    out.push_back({"megatron-core", base, {"ddp", "zero1"}, "", release});
  return out;
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }
  bool often() { return random_() % 4 != 0; }

 private:
  std::mt19937_64 random_;
};

using Word = const char*;
using Number = std::int64_t;

std::string stages_text(Draw& draw, Number layers, Number parts) {
  std::string out;
  Number left = layers;
  for (Number part = 0; part < parts; ++part) {
    const Number rest = parts - part - 1;
    const Number mean = left / (rest + 1);
    const Number here = rest == 0 ? left : std::max<Number>(1, mean + draw.of<Number>({-1, 0, 0}));
    out += (part > 0 ? ", " : "") + std::to_string(here);
    left -= here;
  }
  return out;
}

/// A plan of which most can be run, and some are refused by the scenario's own checks.
std::string drawn_scenario(Draw& draw, const Framework& framework) {
  const std::pair<Word, Number> model = draw.of<std::pair<Word, Number>>(
      {{"llama2-7b", 32}, {"llama3-8b", 32}, {"llama2-70b", 80}, {"gpt3-175b", 96}});
  const bool alone = std::string(framework.name) == "deepspeed";
  const Number tensor = alone ? 1 : draw.of<Number>({1, 1, 2, 4, 8});
  const Number pipeline = alone ? 1 : draw.of<Number>({1, 1, 2, 4, 8});
  const Number context = alone ? 1 : draw.of<Number>({1, 1, 1, 2});
  const Number chunks = pipeline > 1 ? draw.of<Number>({1, 1, 2, 4}) : 1;
  const Number nodes = draw.of<Number>({8, 16, 64});
  const Number copies = nodes * 8 / (tensor * pipeline);
  const Number data = copies / context, micro = draw.of<Number>({1, 2, 4});
  const Number turns = draw.of<Number>({1, 2, 8, 16});
  const std::string kind = draw.of(framework.data);
  std::string plan = fmt::format(
      "data = \"{}\"\ntensor = {}\nsequence_parallel = {}\ncontext = {}\npipeline = {}\n"
      "virtual_stages = {}\nrecompute = \"{}\"\n",
      kind, tensor, tensor > 1 && draw.often(), context, pipeline, chunks,
      draw.of<Word>({"none", "selective", "full", "full"}));
  if (plan.find("full") != std::string::npos && !draw.often()) plan += "recompute_every = 2\n";
  if (pipeline > 1 && !draw.often())
    plan += "stage_layers = [" + stages_text(draw, model.second, pipeline * chunks) + "]\n";
  if (kind != "ddp" && !draw.often() && copies % 8 == 0) plan += "shard_degree = 8\n";
  if (!draw.often()) plan += "schedule = \"gpipe\"\n";
  return fmt::format(
      "[model]\nname = \"{}\"\nsequence = {}\n[cluster]\nnode = \"dgx-h100\"\nnodes = {}\n"
      "[plan]\n{}[batch]\nglobal = {}\nmicro_batch = {}\n[precision]\ncompute = \"{}\"\n"
      "gradient_reduce = \"{}\"\n[software]\nframework = \"{}\"\nversion = \"{}\"\n{}\n",
      model.first, draw.of<Number>({2048, 4096}), nodes, plan, data * micro * turns, micro,
      draw.of<Word>({"bf16", "bf16", "fp16", "fp32"}), draw.of<Word>({"fp32", "fp32", "bf16"}),
      framework.name, framework.version, framework.software);
}

Facts facts_of(const sim::Launch& launch) {
  std::vector<sim::NamedText> files;
  for (const sim::LaunchFile& file : launch.files)
    if (file.name != "train_fsdp2.py") files.push_back({file.name, file.text});  // says no plan
  const auto input = files[0].path.ends_with(".toml")
                         ? sim::torchtitan_input(sim::read_toml(files[0].text, files[0].path),
                                                 files[0].path, catalogue())
                         : sim::read_launch_files(files, catalogue());
  REQUIRE(input);
  CHECK(input->understanding.unknown == std::vector<std::string>{});
  return input->facts;
}

/// The scenario of facts, these keys over them.
sim::TomlValue document_of(const Facts& facts,
                           const std::vector<std::pair<std::string, sim::TomlValue>>& keys) {
  sim::TomlValue out = sim::facts_document(facts, "read.toml");
  for (const auto& [key, value] : keys) {
    sim::set_path(out, key, value);
    if (key == "batch.global") sim::erase_path(out, "batch.local");
  }
  sim::complete_machine(out, facts, catalogue());
  CHECK(sim::missing_keys(out, facts, catalogue()).empty());
  return out;
}

/// Forms that name the model, or leave it to a recipe or a script.
bool has_no_shape(const std::string& framework, const std::string& version) {
  return framework == "deepspeed" || framework == "trl" ||
         (framework == "nemo" && version != "2023");
}

bool notes_say(const sim::Launch& launch, const std::string& words) {
  return std::any_of(launch.notes.begin(), launch.notes.end(), [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

/// The scenario that the files make on the same machine. DeepSpeed's has no model.
sim::Scenario read_back(const sim::Launch& launch, const sim::Scenario& s) {
  const auto word = [](const std::string& text) { return sim::toml_text(text, "--set"); };
  std::vector<std::pair<std::string, sim::TomlValue>> machine{
      {"cluster.node", word("dgx-h100")},
      {"cluster.nodes", {s.nodes, "--set"}},
      {"software.framework", word(s.software.framework)},
      {"software.version", word(s.software.version)}};
  if (s.software.data.use_megatron_fsdp)
    machine.push_back({"software.use_megatron_fsdp", {true, "--set"}});
  const Facts facts = facts_of(launch);
  if (has_no_shape(s.software.framework, s.software.version)) {
    machine.emplace_back("model.name", word(s.model.name));
    machine.emplace_back("model.sequence", sim::TomlValue{s.batch.sequence, "--set"});
  } else if (facts.find("model.vocab") == nullptr && s.software.framework != "torchtitan") {
    machine.push_back({"model.vocab", {s.model.vocab, "--set"}});
  }
  return sim::read_scenario(document_of(facts, machine), catalogue());
}

/// As a launch of this framework makes it: what its notes name is taken from what was read.
sim::Scenario as_noted(sim::Scenario s, const sim::Launch& launch, const sim::Scenario& read) {
  if (notes_say(launch, "sequence_parallel")) s.plan.sequence_parallel = true;
  if (s.plan.tensor == 1) s.plan.sequence_parallel = read.plan.sequence_parallel;  // no effect
  if (notes_say(launch, "recompute_every")) s.plan.recompute_every = read.plan.recompute_every;
  if (notes_say(launch, "plan.reduce")) s.plan.reduce = read.plan.reduce;
  if (notes_say(launch, "precision.gradient_reduce"))
    s.precision.gradient_reduce = read.precision.gradient_reduce;
  if (s.plan.shards() == s.plan.copies()) s.plan.shard_degree = read.plan.shard_degree;
  if (s.plan.copies() == 1) {  // nothing to share
    s.plan.data = read.plan.data;
    s.plan.reduce = read.plan.reduce;
  }
  if (s.plan.pipeline == 1) s.plan.schedule = read.plan.schedule;
  return s;
}

std::vector<Number> layers_of(const sim::Scenario& s) {
  std::vector<Number> out;
  for (Number part = 0; part < s.plan.parts(); ++part)
    out.push_back(workloads::layers_of_part(s.model.layers, s.plan, part));
  return out;
}

std::string text_of(const sim::Launch& launch) {
  std::string out = launch.why_not;
  for (const sim::LaunchFile& file : launch.files) out += file.text;
  for (const std::string& note : launch.notes) out += note + "\n";
  return out;
}

/// "-" of the first alone, "+" of the second alone.
std::vector<std::string> different_lines(const std::string& before, const std::string& after) {
  const auto lines = [](const std::string& text) {
    std::multiset<std::string> out;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) out.insert(line);
    return out;
  };
  const auto first = lines(before), second = lines(after);
  std::vector<std::string> out;
  for (const auto& [one, other, mark] :
       {std::tuple(&first, &second, "-"), std::tuple(&second, &first, "+")}) {
    std::vector<std::string> alone;
    std::ranges::set_difference(*one, *other, std::back_inserter(alone));
    for (const std::string& line : alone) out.push_back(mark + line);
  }
  return out;
}

Facts facts_from(const std::vector<std::string>& lines) {
  sim::NamedText file{"megatron.args", ""};
  for (const std::string& line : lines) file.text += line + "\n";
  return sim::read_launch_files({&file, 1}, catalogue())->facts;
}

}  // namespace

TEST_CASE("what is written for 200 random plans of each framework is read back to the same plan") {
  const std::vector<Framework> all = frameworks();
  CHECK(all.size() >= 38);
  for (const Framework& framework : all)
    DYNAMIC_SECTION(framework.name << " " << framework.version << " " << framework.software
                                   << framework.launched_as) {
      Draw draw(20261123);
      int written = 0, refused = 0;
      for (int tries = 0; written < 200 && tries < 20'000; ++tries) {
        const std::string text = drawn_scenario(draw, framework);
        sim::Scenario s;
        try {
          s = sim::read_scenario(sim::read_toml(text, "drawn.toml"), catalogue());
        } catch (const InputError&) {
          continue;  // no legal plan
        }
        const std::string version = s.software.version;
        if (!framework.launched_as.empty()) s.software.version = framework.launched_as;
        const sim::Launch launch = sim::launch_of(s);
        CHECK(launch.files.empty() != launch.why_not.empty());
        if (launch.files.empty()) {
          ++refused;
          continue;
        }
        ++written;
        INFO(text << "\n" << text_of(launch));
        s.software.version = version;
        sim::Scenario read = read_back(launch, s);
        s = as_noted(std::move(s), launch, read);
        REQUIRE(layers_of(read) == layers_of(s));
        s.plan.stage_layers = read.plan.stage_layers;
        REQUIRE(read.plan == s.plan);
        REQUIRE(read.batch == s.batch);
        REQUIRE(read.global_batch == s.global_batch);
        REQUIRE(read.precision.compute == s.precision.compute);
        REQUIRE(read.precision.gradient_reduce == s.precision.gradient_reduce);
        for (const auto size :
             {&workloads::TransformerShape::layers, &workloads::TransformerShape::hidden,
              &workloads::TransformerShape::heads, &workloads::TransformerShape::head_dim,
              &workloads::TransformerShape::ffn_hidden, &workloads::TransformerShape::vocab})
          REQUIRE(read.model.*size == s.model.*size);
        // File -> plan -> file: every line is there again.
        if (!framework.launched_as.empty()) read.software.version = framework.launched_as;
        const sim::Launch again = sim::launch_of(read);
        REQUIRE(again.why_not == "");
        REQUIRE(again.files.size() == launch.files.size());
        for (std::size_t i = 0; i < launch.files.size(); ++i)
          REQUIRE(different_lines(launch.files[i].text, again.files[i].text) ==
                  std::vector<std::string>{});
      }
      INFO(framework.name << " " << framework.version << ": " << refused << " refused");
      CHECK(written == 200);
    }
}

TEST_CASE("stages that Megatron cuts by count and by layout are read back") {
  Draw draw(7);
  for (int i = 0; i < 100; ++i) {
    const Number stages = draw.of<Number>({2, 4, 8}), chunks = draw.of<Number>({1, 2});
    sim::Scenario s = sim::read_scenario(
        sim::read_toml(
            fmt::format("[model]\nname = \"llama2-7b\"\nsequence = 4096\n[cluster]\n"
                        "node = \"dgx-h100\"\nnodes = 8\n[batch]\nglobal = 64\n[software]\n"
                        "framework = \"megatron-core\"\n[plan]\ndata = \"zero1\"\npipeline = {}\n"
                        "virtual_stages = {}\nstage_layers = [{}]\n",
                        stages, chunks, stages_text(draw, 32, stages * chunks)),
            "drawn.toml"),
        catalogue());
    s.software.version = "0.15";  // the first that has all of these arguments
    const sim::Launch launch = sim::launch_of(s);
    INFO(text_of(launch));
    REQUIRE(launch.files.size() == 1);
    const Facts facts = facts_of(launch);
    CHECK(facts.integer("plan.virtual_stages").value_or(1) == chunks);
    std::vector<Number> read;
    if (const sim::TomlValue* layers = facts.find("plan.stage_layers"))
      for (const sim::TomlValue& one : *layers->array()) read.push_back(std::get<Number>(one.data));
    const auto wanted = layers_of(s);
    const bool equal =
        std::adjacent_find(wanted.begin(), wanted.end(), std::not_equal_to<>()) == wanted.end();
    CHECK(read == (equal ? std::vector<Number>{} : wanted));
  }
}

TEST_CASE("NVIDIA's example of a layout has 61 layers in 32 parts") {
  // docs.nvidia.com, Megatron core, custom pipeline model parallel layout.
  const Facts facts = facts_from({"--num-layers 61", "--pipeline-model-parallel-size 16",
                                  "--pipeline-model-parallel-layout \"Et*3|(tt|)*29,m|L\""});
  CHECK(facts.integer("plan.virtual_stages") == 2);
  const sim::TomlValue* layers = facts.find("plan.stage_layers");
  REQUIRE(layers != nullptr);
  Number sum = 0;
  for (const sim::TomlValue& one : *layers->array()) sum += std::get<Number>(one.data);
  CHECK(layers->array()->size() == 32);
  CHECK(sum == 61);
  CHECK(std::get<Number>(layers->array()->front().data) == 3);
}

TEST_CASE("layers of experts are written for Megatron core and read back") {
  const auto scenario_of = [](const std::string& model, const std::string& plan) {
    return sim::read_scenario(
        sim::read_toml(
            "[model]\nname = \"" + model + "\"\nsequence = 4096\n[cluster]\n" +
                "node = \"dgx-h100\"\nnodes = 16\n[batch]\nglobal = 256\nmicro_batch = 1\n" +
                "[plan]\ndata = \"zero1\"\n" + plan + "[software]\nframework = \"megatron-core\"\n",
            "drawn.toml"),
        catalogue());
  };
  for (const char* plan :
       {"expert = 8\nexpert_tensor = 1\n",
        "expert = 8\nexpert_tensor = 1\ntensor = 2\nsequence_parallel = true\npipeline = 2\n",
        "expert = 8\nexpert_tensor = 2\ntensor = 2\nsequence_parallel = true\n",
        "expert = 8\ndispatcher = \"node_aware\"\n", "expert = 4\ndispatcher = \"all_gather\"\n",
        "expert = 8\ncapacity_factor = 1.5\npad_to_capacity = true\n"}) {
    const sim::Scenario s = scenario_of("mixtral-8x7b", plan);
    const sim::Launch launch = sim::launch_of(s);
    INFO(plan << text_of(launch));
    REQUIRE(launch.files.size() == 1);
    const sim::Scenario read = read_back(launch, s);
    CHECK(read.model.experts == s.model.experts);
    workloads::ExpertPlan wanted = s.plan.expert;
    wanted.tensor = s.plan.expert_tensor();  // written where it was left open
    CHECK(read.plan.expert == wanted);
  }
}

TEST_CASE("which layers have experts, and latent attention, are read from Megatron's arguments") {
  const Facts first = facts_from({"--num-layers 6", "--num-experts 64", "--moe-router-topk 6",
                                  "--moe-layer-freq '[0,1,1,1,1,1]'", "--multi-latent-attention",
                                  "--kv-lora-rank 512"});
  CHECK(first.integer("model.experts") == 64);
  CHECK(first.integer("model.experts_per_token") == 6);
  CHECK(first.integer("model.dense_layers") == 1);
  CHECK(first.find("model.expert_every") == nullptr);
  CHECK(first.integer("model.latent_kv_rank") == 512);
  CHECK(facts_from({"--num-layers 6", "--num-experts 8", "--moe-layer-freq '[0,1,0,1,0,1]'"})
            .integer("model.expert_every") == 2);
  CHECK_THROWS_AS(facts_from({"--num-layers 4", "--num-experts 8", "--moe-layer-freq '[1,1,0,1]'"}),
                  InputError);
  CHECK(facts_from({"--num-layers 6", "--moe-router-topk 2"}).find("model.experts_per_token") ==
        nullptr);
}

TEST_CASE("recipes of low precision are written for each framework and read back") {
  const auto precision_of = [](const std::string& framework, const std::string& data,
                               const std::string& keys) {
    const sim::Scenario s = sim::read_scenario(
        sim::read_toml("[model]\nname = \"llama3-8b\"\nsequence = 4096\n[cluster]\n"
                       "node = \"dgx-h100\"\nnodes = 2\n[batch]\nglobal = 16\nmicro_batch = 1\n"
                       "[plan]\ndata = \"" +
                           data + "\"\n[software]\n" + framework + "[precision]\n" + keys,
                       "drawn.toml"),
        catalogue());
    const sim::Launch launch = sim::launch_of(s);
    INFO(keys << text_of(launch));
    REQUIRE(launch.files.size() == 1);
    CHECK(read_back(launch, s).precision == s.precision);
    return launch.files[0].text;
  };
  const std::string megatron = "framework = \"megatron-core\"\n";
  for (const char* recipe : {"fp8_delayed", "fp8_current", "fp8_block"}) {
    const std::string keys = "recipe = \"" + std::string(recipe) + "\"\n";
    precision_of(megatron, "zero1", keys);
    precision_of(megatron, "zero1", keys + "bf16_first_layers = 1\nbf16_last_layers = 2\n");
  }
  const std::string text = precision_of(
      megatron, "zero1", "recipe = \"fp8_current\"\nfp8_parameters = true\nmoments = \"bf16\"\n");
  for (const char* argument : {"--fp8-format hybrid\n", "--fp8-recipe tensorwise\n",
                               "--fp8-param-gather\n", "--exp-avg-sq-dtype bf16\n"})
    CHECK(text.find(argument) != std::string::npos);
  precision_of("framework = \"nemo\"\nversion = \"2023\"\n", "zero1", "recipe = \"fp8_delayed\"\n");
  for (const char* version : {"2024", "2025"})
    precision_of("framework = \"torchtitan\"\nversion = \"" + std::string(version) + "\"\n",
                 "zero3", "recipe = \"fp8_current\"\nfp8_parameters = true\n");
}
