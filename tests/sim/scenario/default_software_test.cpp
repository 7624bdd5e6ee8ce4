#include "sim/scenario/default_software.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

const std::string head =
    "[model]\nname = \"llama2-1b\"\nlayers = 4\n[cluster]\nnode = \"dgx-h100\"\n"
    "[batch]\nglobal = 32\nmicro_batch = 1\n";

Scenario scenario_of(const std::string& more) {
  return read_scenario(read_toml(head + more, "a.toml"), catalogue());
}

std::string framework_of(const std::string& plan) {
  return scenario_of("[plan]\n" + plan).software.framework;
}

/// The frameworks of all points, each once, in order.
std::vector<std::string> frameworks(const std::string& more) {
  const Study study = read_study(read_toml(head + more, "a.toml"));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < study.num_points(); ++i) {
    const SweepPoint point = study.point(i);
    const Scenario s = read_scenario(study.document_of(point), catalogue());
    if (out.empty() || out.back() != s.software.framework) out.push_back(s.software.framework);
  }
  return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a framework that nobody names follows the data kind and what cuts the model") {
  CHECK(framework_of("data = \"zero2\"\n") == "pytorch-fsdp2");
  CHECK(framework_of("data = \"zero3\"\ntensor = 2\n") == "pytorch-fsdp2");
  CHECK(framework_of("data = \"zero3\"\nshard_degree = 4\n") == "pytorch-fsdp2");
  CHECK(framework_of("") == "pytorch-fsdp2");
  CHECK(framework_of("data = \"ddp\"\n") == "pytorch-ddp");
  CHECK(framework_of("data = \"zero1\"\n") == "deepspeed");
  for (const char* kind : {"ddp", "zero1"}) {
    const std::string data = "data = \"" + std::string(kind) + "\"\n";
    CHECK(framework_of(data + "tensor = 2\n") == "megatron-core");
    CHECK(framework_of(data + "pipeline = 2\n") == "megatron-core");
    CHECK(framework_of(data + "context = 2\n") == "megatron-core");
    CHECK(framework_of(data + "tensor = \"best\"\n") == "megatron-core");
    CHECK(framework_of(data + "tensor = 1\npipeline = 1\n") != "megatron-core");
  }
}

TEST_CASE("a scenario says whether its framework was chosen, a resolved one has it written out") {
  const Scenario chosen = scenario_of("[plan]\ndata = \"ddp\"\ntensor = 2\n");
  CHECK(chosen.software_by_default ==
        "chosen by default for ddp with tensor, context or pipeline parallelism");
  CHECK(scenario_of("[software]\nframework = \"pytorch-fsdp2\"\n").software_by_default.empty());
  const Scenario again = read_scenario(resolved_document(chosen), catalogue());
  CHECK(again.software == chosen.software);
  CHECK(again.software_by_default.empty());
}

TEST_CASE("a sweep has one framework: by its first kind of data, and by any point's degrees") {
  CHECK(frameworks("[sweep]\n\"plan.data\" = [\"ddp\", \"zero1\"]\n") == Words{"pytorch-ddp"});
  CHECK(frameworks("[sweep]\n\"plan.data\" = [\"zero3\", \"ddp\"]\n") == Words{"pytorch-fsdp2"});
  CHECK(frameworks("[plan]\ndata = \"ddp\"\n[sweep]\n\"plan.tensor\" = [1, 2]\n") ==
        Words{"megatron-core"});
  CHECK(frameworks("[plan]\ndata = \"ddp\"\n[sweep.plan]\ntensor = [1, 2]\n") ==
        Words{"megatron-core"});
  CHECK(frameworks("[[sweep.point]]\n\"plan.data\" = \"zero1\"\n[[sweep.point]]\n\"plan.data\" = "
                   "\"ddp\"\n\"plan.pipeline\" = 2\n") == Words{"megatron-core"});
  CHECK(frameworks("[sweep]\n\"software.framework\" = [\"pytorch-ddp\", \"megatron-core\"]\n"
                   "\"plan.data\" = [\"ddp\"]\n") == Words{"pytorch-ddp", "megatron-core"});
  const Study study =
      read_study(read_toml(head + "[sweep]\n\"plan.data\" = [\"ddp\", \"zero1\"]\n", "a.toml"));
  CHECK(framework_by_default(study.base) == "chosen by default for ddp, the first of the sweep");
}

TEST_CASE("by default a model of experts has a framework that runs them") {
  const auto taken = [](const std::string& model, const std::string& rest) {
    return read_scenario(
        read_toml("[model]\nname = \"" + model +
                      "\"\n[cluster]\nnode = \"dgx-h100\"\n[batch]\nlocal = 1\n" + rest,
                  "a.toml"),
        catalogue());
  };
  const Scenario experts = taken("qwen3-30b-a3b", "");
  CHECK(experts.software.framework == "torchtitan");
  CHECK(experts.software_by_default == "chosen by default for zero2 and a model of experts");
  CHECK(taken("deepseek-v3", "").software.framework == "deepspeed");
  CHECK(taken("qwen3-8b", "").software.framework == "pytorch-fsdp2");
  CHECK(taken("qwen3-30b-a3b", "[plan]\ndata = \"ddp\"\n").software.framework == "megatron-core");
  CHECK(taken("qwen3-30b-a3b", "[plan]\ndata = \"zero1\"\n").software.framework == "deepspeed");
  CHECK_THROWS_WITH(taken("qwen3-30b-a3b", "[software]\nframework = \"pytorch-fsdp2\"\n"),
                    Catch::Contains("has no layers of experts"));
}

TEST_CASE("a collective has no framework") {
  const TomlValue document = with_framework(read_toml(
      "[cluster]\nnode = \"dgx-h100\"\n[collective]\nkind = \"all_reduce\"\nbytes = \"1 MiB\"\n",
      "a.toml"));
  CHECK(document.find("software") == nullptr);
  CHECK_NOTHROW(read_scenario(document, catalogue()));
}

TEST_CASE("NCCL is that of the framework's version, unless the GPU needs a newer one") {
  const auto nccl = [](const std::string& framework, const std::string& node) {
    return read_scenario(read_toml("[model]\nname = \"llama2-1b\"\n[cluster]\nnode = \"" + node +
                                       "\"\n[batch]\nlocal = 1\n[software]\n" + framework,
                                   "a.toml"),
                         catalogue())
        .nccl;
  };
  const std::string fsdp2 = "framework = \"pytorch-fsdp2\"\nversion = ";
  CHECK(nccl(fsdp2 + "\"2.3\"\n", "dgx-h100") == "2.20.5");
  CHECK(nccl(fsdp2 + "\"2.7\"\n", "dgx-h100") == "2.26.2");
  CHECK(nccl(fsdp2 + "\"2.3\"\n", "dgx-b200") == "2.25");
  CHECK(nccl(fsdp2 + "\"2.7\"\n", "dgx-b200") == "2.26.2");
  CHECK(nccl(fsdp2 + "\"2.3\"\nnccl = \"2.18.3\"\n", "dgx-a100") == "2.18.3");
}

TEST_CASE("an NCCL that is older than the GPU is warned of") {
  const auto warnings = [](const std::string& version) {
    return session()
        .collective(read_scenario(read_toml("[cluster]\nnode = \"dgx-b200\"\nnccl = \"" + version +
                                                "\"\n[collective]\nkind = \"all_reduce\"\nbytes = "
                                                "\"1 MiB\"\n",
                                            "a.toml"),
                                  catalogue()))
        .warnings;
  };
  CHECK(warnings("2.20.5") == Words{"NCCL 2.20 does not know b200-sxm: it needs 2.25 or later"});
  CHECK(warnings("2.25.1").empty());
  CHECK(warnings("2.27").empty());
}

TEST_CASE("what is asked of plan.reduce wins over the framework's habit") {
  const auto reduce = [](const std::string& plan) { return scenario_of(plan).plan.reduce; };
  using workloads::ReduceWhen;
  CHECK(reduce("[plan]\ndata = \"zero3\"\n") == ReduceWhen::each);
  CHECK(reduce("[plan]\ndata = \"zero3\"\nreduce = \"last\"\n") == ReduceWhen::last);
  CHECK(reduce("[plan]\ndata = \"zero3\"\npipeline = 2\n") == ReduceWhen::last);
  CHECK(reduce("[plan]\ndata = \"zero3\"\npipeline = 2\nreduce = \"each\"\n") == ReduceWhen::each);
  CHECK(reduce("[plan]\ndata = \"zero1\"\n[software]\nframework = \"deepspeed\"\n") ==
        ReduceWhen::last);
  CHECK(reduce("[plan]\ndata = \"zero2\"\n[software]\nframework = \"deepspeed\"\n") ==
        ReduceWhen::each);
  CHECK(reduce("[plan]\ndata = \"zero3\"\n[software]\nframework = \"hf-trainer\"\n") ==
        ReduceWhen::last);
}

TEST_CASE("orders of torch's are run by what runs them, unless zero1 says otherwise") {
  const auto framework = [](const std::string& plan) {
    return scenario_of("[plan]\npipeline = 2\n" + plan).software.framework;
  };
  CHECK(framework("") == "pytorch-fsdp2");
  CHECK(framework("schedule = \"gpipe\"\n") == "pytorch-fsdp2");
  CHECK(framework("schedule = \"zb_h1\"\n") == "torchtitan");
  CHECK(framework("data = \"ddp\"\nschedule = \"zb_v\"\n") == "torchtitan");
  CHECK_THROWS_AS(framework("data = \"zero1\"\nschedule = \"zb_h1\"\n"), InputError);
}

TEST_CASE(
    "a GPU that the usual version's NCCL does not know takes the newest, unless one is named") {
  const auto version = [](const std::string& node, const std::string& software) {
    const std::string model =
        "[model]\nname = \"llama2-1b\"\n[cluster]\nnode = \"" + node +
        "\"\n[batch]\nglobal = 32\nmicro_batch = 1\n[plan]\ndata = \"zero3\"\n";
    return read_scenario(read_toml(model + software, "a.toml"), catalogue()).software.version;
  };
  CHECK(version("dgx-h100", "") == "2.3");
  CHECK(version("dgx-b200", "") == "2.9");
  CHECK(version("dgx-b200", "[software]\nframework = \"pytorch-fsdp2\"\n") == "2.9");
  CHECK(version("dgx-b200", "[software]\nversion = \"2.3\"\nframework = \"pytorch-fsdp2\"\n") ==
        "2.3");
}

}  // namespace stepcast::sim
