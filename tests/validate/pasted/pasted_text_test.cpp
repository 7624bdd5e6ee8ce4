#include "validate/pasted/pasted_text.hpp"

#include <catch2/catch.hpp>

#include "tests/session.hpp"
#include "validate/pasted/lines.hpp"
#include "validate/pasted/said.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

PastedText cut(const std::string& text) { return read_pasted(text, "issue.md", catalogue()); }

sim::Facts said(const std::string& prose) {
  sim::Facts out;
  add_said(prose, "issue.md", catalogue(), out);
  return out;
}

}  // namespace

TEST_CASE("configurations and commands are cut out at their lines, the rest stays at its own") {
  const PastedText found =
      cut("It is slow:\n```yaml\nbase_model: Qwen/Qwen3-8B\nsequence_len: 512\n```\n"
          "The log:\n```\nstep:  1  loss: 12.1  tps: 9000\n```\n"
          "> torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4\n");
  REQUIRE(found.configurations.size() == 2);
  CHECK(found.configurations[0].path == "issue.md:3");
  CHECK(found.configurations[1].path == "issue.md:10");
  CHECK(found.others ==
        "It is slow:\n```yaml\n\n\n```\nThe log:\n```\nstep:  1  loss: 12.1  tps: 9000\n```\n\n");
}

TEST_CASE("prose is no configuration, and neither is what a run printed") {
  CHECK(cut("Environment: mine\nModel: a large one\nNote: it is slow --- very.\n")
            .configurations.empty());
  CHECK(cut("```\nstep: 1\nloss: 2\nmodel_name_or_path: [INFO] x\n```\n").configurations.empty());
  CHECK(cut("").others.empty());
}

TEST_CASE("a command's lines go on without their backslashes, and behind blanks and prompts") {
  const std::vector<std::string> lines = {"$ torchrun train.py ", "--lr 1 \\ ", "--bf16", "",
                                          "data.x=1"};
  CHECK(as_shell(lines) == "torchrun train.py \\\n--lr 1 \\\n--bf16\n\ndata.x=1\n");
}

TEST_CASE("arguments of a trainer in Python are YAML; names stand for their values") {
  CHECK(as_yaml_of_python("n = 4  # each\nx = SFTConfig(\n  per_device_train_batch_size=n,\n"
                          "  bf16=True,  # always\n  f=g(1, 2), output_dir=\"a,b\")\n") ==
        "per_device_train_batch_size: 4\nbf16: True\noutput_dir: a,b\n");
  CHECK(as_yaml_of_python("LoraConfig(r=8)").find("lora_r: 8\n") != std::string::npos);
  CHECK(as_yaml_of_python("SFTConfig(bf16=True").empty());
  CHECK(as_yaml_of_python("print(1)").empty());
}

TEST_CASE("GPUs and their number as prose has them") {
  const auto check = [](const std::string& text, const std::string& gpu, std::int64_t ranks) {
    const sim::Facts found = said(text);
    INFO(text);
    CHECK(found.gpu == gpu);
    CHECK(found.ranks.value_or(0) == ranks);
    CHECK(found.notes.size() == (gpu.empty() ? 0U : 1U) + (ranks > 0 ? 1U : 0U));
  };
  check("on 8 x H100 80GB HBM3", "h100-sxm5-80gb", 8);
  check("16xA100 (40G)", "a100-sxm4-40gb", 16);
  check("NVIDIA A800-SXM4-80GB\n共8张卡", "a800-sxm4-80gb", 8);
  check("2 nodes, 8 H20 each", "h20-sxm-96gb", 16);
  check("a total of 24 A100-40G cards", "a100-sxm4-40gb", 24);
  check("one V100-PCIE 32GB * 1", "v100-sxm2-32gb", 1);
  check("GPU type: NVIDIA L40S\nGPU number: 4", "NVIDIA L40S", 4);
  check("four A40", "a40", 4);
  check("8 A100s, 40G each", "a100-sxm4-40gb", 8);
  check("CUDA_VISIBLE_DEVICES=0,1,2 python x.py", "", 3);
  check("a 3090 has 24GB", "rtx-3090", 0);
  check("a 3080 has 10GB", "3080-10gb", 0);
  check("no card at all, 7 days", "", 0);
}

TEST_CASE("a model that the prose names alone is the run's") {
  CHECK(*said("I train Qwen3-8B and it is slow").find("model.name")->text() == "qwen3-8b");
  CHECK(said("Qwen3-8B is slower than Llama-3-8B").find("model.name") == nullptr);
  CHECK(said("8B tokens in 3b hours").find("model.name") == nullptr);
}
