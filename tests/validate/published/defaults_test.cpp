#include "validate/published/defaults.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/network/nccl/tuning.hpp"
#include "topology/cluster.hpp"

namespace stepcast::validate {
namespace {

const sim::Catalogue& catalogue() {
  static const sim::Catalogue it(std::string(STEPCAST_SOURCE_DIR) + "/scenarios");
  return it;
}
const PublishedDefaults& defaults() {
  static const PublishedDefaults it = PublishedDefaults::standard(catalogue());
  return it;
}

PublishedRow row_of(const std::string& framework, const std::string& gpu = "A100-SXM4-80GB") {
  PublishedRow row;
  row.id = "TEST-0001";
  row.framework = framework;
  row.gpu = gpu;
  row.gpus = 64;
  row.gpus_per_node = 8;
  row.dp_mode = "fsdp";
  row.model = "Llama-2-7b";
  return row;
}

workloads::Software software_of(const FrameworkDefaults& framework) {
  sim::TableReader table(framework.software, "software");
  workloads::Software software = catalogue().software(table);
  table.finish();
  return software;
}

topology::NodeSpec node_of(const PublishedRow& row) {
  return catalogue().node(defaults().cluster(row).node);
}

double gbps(const topology::NodeSpec& node) {
  return static_cast<double>(node.nics) * node.nic.value * 8e-9;
}

const std::vector<std::string>& frameworks() {
  static const std::vector<std::string> names{"torchtitan",
                                              "torchtitan FSDP2 + torch.compile",
                                              "DeepSpeed ZeRO-3",
                                              "DeepSpeed",
                                              "nanotron",
                                              "InternEvo",
                                              "Colossal-AI",
                                              "MaxText/XLA",
                                              "JAX",
                                              "Levanter",
                                              "LLaMA-Factory",
                                              "HF Trainer",
                                              "Axolotl",
                                              "PyTorch Lightning",
                                              "Composer",
                                              "OLMo (PyTorch FSDP)",
                                              "GPT-NeoX",
                                              "LiBai",
                                              "OneFlow",
                                              "Alpa",
                                              "BMTrain",
                                              "TRL",
                                              "MosaicML",
                                              "TensorFlow 20.06 Horovod",
                                              "metaseq",
                                              "MLPerf v4.1 NVIDIA NeMo",
                                              "PaddlePaddle",
                                              "MindSpeed",
                                              "Megatron-LM",
                                              "Megatron-DeepSpeed",
                                              "NeMo 24.07",
                                              "Megatron-Bridge 25.09",
                                              "llm.c",
                                              "nanoGPT",
                                              "PyTorch DDP",
                                              "",
                                              "Something new"};
  return names;
}

class Folder {
 public:
  Folder() {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    for (const char* name : {"published_frameworks.toml", "published_clusters.toml"})
      std::filesystem::copy_file(std::filesystem::path(STEPCAST_SOURCE_DIR) / "validate" / name,
                                 path_ / name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void add(const char* file, const std::string& text) const {
    std::ofstream(path_ / file, std::ios::app) << text;
  }
  PublishedDefaults read() const { return {path_.string(), catalogue()}; }

 private:
  std::filesystem::path path_ =
      std::filesystem::path(STEPCAST_BINARY_DIR) / "published_defaults_test";
};

}  // namespace

TEST_CASE("every framework, plan and GPU finds software, NCCL, node and fabric of the catalogue") {
  const std::string nccl = catalogue().directory() + "/nccl";
  std::set<std::string> seen;  // each distinct answer is held against the catalogue once
  const auto is_new = [&](const sim::TomlValue& value) {
    return seen.insert(sim::write_toml_value(value)).second;
  };
  for (const std::string& framework : frameworks())
    for (const char* gpu : {"V100-SXM2-16GB", "V100", "A100-40GB", "A100 80GB PCIe", "A800", "H100",
                            "H100-PCIe", "H200", "GH200", "H800", "B200"})
      for (const char* dp : {"ddp", "zero1", "zero2", "fsdp", "hsdp", ""}) {
        PublishedRow row = row_of(framework, gpu);
        row.dp_mode = dp;
        INFO(framework << ", " << gpu << ", " << dp);
        const FrameworkDefaults found = defaults().framework(row);
        CHECK(found.refused.empty());
        if (is_new(found.software)) CHECK_NOTHROW(software_of(found));
        if (seen.insert(found.nccl).second) CHECK_NOTHROW(sim::nccl_tuning_of(nccl, found.nccl));
      }
}

TEST_CASE("every GPU of the catalogue stands in nodes of any size") {
  for (const char* gpu : {"V100-SXM2-16GB", "V100", "V100 PCIe", "V100-SXM3-32GB", "A100-40GB",
                          "A100 80GB PCIe", "A100-PCIe-40GB", "A100", "A800", "H100", "H100-PCIe",
                          "H100 NVL", "H100 96GB HBM2e", "H200", "GH200", "H800", "B200"})
    for (const std::int64_t per_node : {1, 2, 4, 8}) {
      PublishedRow row = row_of("PyTorch FSDP", gpu);
      row.gpus_per_node = per_node;
      INFO(gpu << ", " << per_node << " per node");
      const ClusterDefaults cluster = defaults().cluster(row);
      const bool unknown = std::string(gpu) == "GH200" && per_node == 8;  // no such board exists
      CHECK(cluster.refused.empty() != unknown);
      if (unknown) continue;
      const topology::NodeSpec node = catalogue().node(cluster.node);
      CHECK(node.gpu.name == cluster.gpu);
      CHECK(node.gpus == per_node);
      CHECK_NOTHROW(catalogue().fabric(cluster.fabric));
      CHECK_FALSE(cluster.assumption.empty());
      // A cluster of it can be laid out: no switch without a link, no matrix of another size.
      CHECK_NOTHROW(topology::Cluster::build(node, 2, catalogue().fabric(cluster.fabric)));
    }
}

TEST_CASE("no two rules share a name") {
  const std::vector<std::string> rules = defaults().rules();
  CHECK(std::set<std::string>(rules.begin(), rules.end()).size() == rules.size());
}

TEST_CASE("Megatron-LM changes with its date") {
  PublishedRow row = row_of("Megatron-LM");
  row.dp_mode = "ddp";
  row.precision = "bf16";
  const auto software_at = [&](const char* source) {
    row.source = source;
    return software_of(defaults().framework(row));
  };
  CHECK(software_at("Megatron-LM README 2021-01").version == "2020");
  CHECK_FALSE(software_at("Megatron-LM README 2021-01").tensor.overlap);
  CHECK(software_at("arXiv 2205.05198").version == "2022");
  CHECK(software_at("arXiv 2205.05198").attention.kernel ==
        workloads::AttentionKernel::fused_softmax);
  CHECK(software_at("a paper of 2023-05").attention.kernel == workloads::AttentionKernel::flash2);
  CHECK(software_at("Megatron-LM core 0.7").framework == "megatron-core");
}

TEST_CASE("a date is found in containers, papers, releases and years, else told as usual") {
  PublishedRow row = row_of("NeMo");
  const auto date_at = [&](const char* framework, const char* source) {
    row.framework = framework;
    row.source = source;
    return defaults().framework(row);
  };
  CHECK(date_at("NGC 20.12", "").date == YearMonth{2020, 12});
  CHECK(date_at("NeMo", "performance summary 24.07").date == YearMonth{2024, 7});
  CHECK(date_at("x", "arXiv:2104.04473").date == YearMonth{2021, 4});
  CHECK(date_at("PyTorch 2.3.1", "").date == YearMonth{2024, 5});
  CHECK(date_at("x", "Smith 2022, 2048 GPUs").date == YearMonth{2022, 7});
  CHECK(date_at("PyTorch 1.11 FSDP", "").date == YearMonth{2022, 3});
  const FrameworkDefaults undated = date_at("x", "no date, 2048 GPUs, version 0.20.06");
  CHECK_FALSE(undated.date_stated);
  CHECK(undated.date.year >= 2022);
}

TEST_CASE("a run is not older than its model and its kernels") {
  PublishedRow row = row_of("PyTorch FSDP");
  row.model = "Llama-3-8B";
  CHECK(defaults().framework(row).date >= YearMonth{2024, 4});
  row.attention_kernel = "FlashAttention-3";
  CHECK(defaults().framework(row).date >= YearMonth{2024, 7});
}

TEST_CASE("NCCL follows the container or the wheel of the date") {
  PublishedRow row = row_of("NeMo");
  row.source = "performance summary 24.07";
  CHECK(defaults().framework(row).nccl == "2.21.5");
  row = row_of("PyTorch 2.3 FSDP");
  CHECK(defaults().framework(row).nccl == "2.20.5");
}

TEST_CASE("the column attention_kernel decides over the framework's kernel") {
  using workloads::AttentionKernel;
  PublishedRow row = row_of("Aleph Alpha internal");
  row.source = "paper 2023";
  const auto kernel = [&](const char* text) {
    row.attention_kernel = text;
    return software_of(defaults().framework(row));
  };
  CHECK(kernel("flash_attentionv1.0.8").attention.kernel == AttentionKernel::flash1);
  CHECK(kernel("flash_attention2").attention.kernel == AttentionKernel::flash2);
  CHECK_FALSE(kernel("flash_attention2").norm.fused);
  CHECK(kernel("flash_attention2 + RMS kernel").norm.fused);
  CHECK(kernel("torch").attention.kernel == AttentionKernel::unfused);
  CHECK(kernel("eager").attention.kernel == AttentionKernel::unfused);
  CHECK(kernel("fused").attention.kernel == AttentionKernel::fused_softmax);
  CHECK(kernel("xformers").attention.kernel == AttentionKernel::memory_efficient);
  CHECK(kernel("cuDNN").attention.kernel == AttentionKernel::cudnn);
  CHECK(kernel("FA3").attention.kernel == AttentionKernel::flash3);
  row.gpu = "H100-SXM5-80GB";
  CHECK(kernel("TE").attention.kernel == AttentionKernel::cudnn);
  CHECK(kernel("SDPA FlashAttention-2").attention.kernel == AttentionKernel::flash2);
  row.gpu = "V100-SXM2-32GB";
  CHECK(kernel("FlashAttention").attention.kernel == AttentionKernel::memory_efficient);
}

TEST_CASE("words of dp_mode mean the same sharding in every framework") {
  using workloads::DataParallel;
  PublishedRow row = row_of("PyTorch");
  const auto meaning = [&](const char* word) {
    row.dp_mode = word;
    return defaults().framework(row);
  };
  CHECK(meaning("fsdp").data == DataParallel::zero3);
  CHECK(meaning("FULL_SHARD").data == DataParallel::zero3);
  CHECK(meaning("ZeRO-3").data == DataParallel::zero3);
  CHECK(meaning("hsdp").shards_in_node);
  CHECK_FALSE(meaning("fsdp").shards_in_node);
  CHECK(meaning("SHARD_GRAD_OP").data == DataParallel::zero2);
  CHECK(meaning("distributed optimizer").data == DataParallel::zero1);
  CHECK(meaning("none (DP=1)").data == DataParallel::ddp);
  CHECK_FALSE(meaning("federated").refused.empty());
}

TEST_CASE("gradients are reduced in the type that framework and precision give") {
  PublishedRow row = row_of("torchtitan");
  row.precision = "bf16";
  CHECK(defaults().framework(row).gradient_reduce == workloads::Dtype::fp32);
  row.framework = "llm-foundry/Composer FSDP1";
  row.notes = "FSDP mixed_precision=PURE";
  CHECK(defaults().framework(row).gradient_reduce == workloads::Dtype::bf16);
  row.precision = "fp16";
  CHECK(defaults().framework(row).gradient_reduce == workloads::Dtype::fp16);
}

TEST_CASE("torchtitan compiles where the row says so") {
  PublishedRow row = row_of("torchtitan FSDP2");
  row.source = "a report of 2024-12";
  CHECK(software_of(defaults().framework(row)).fusion == workloads::Fusion::eager);
  row.framework = "torchtitan FSDP2 without torch.compile";
  CHECK(software_of(defaults().framework(row)).fusion == workloads::Fusion::eager);
  row.framework = "torchtitan FSDP2 + torch.compile";
  CHECK(software_of(defaults().framework(row)).fusion == workloads::Fusion::compiled);
}

TEST_CASE("DeepSpeed's BF16 optimizer reduces fp32, its fp16 one does not") {
  PublishedRow row = row_of("Megatron-DeepSpeed");
  row.source = "a paper of 2022-11";
  row.dp_mode = "zero1";
  row.precision = "bf16";
  CHECK(defaults().framework(row).gradient_reduce == workloads::Dtype::fp32);
  row.precision = "fp16";
  CHECK(defaults().framework(row).gradient_reduce == workloads::Dtype::fp16);
}

TEST_CASE("a stated bandwidth is kept to the bit, cut into ports") {
  for (const double stated : {10.0, 25.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0})
    for (const char* gpu : {"V100-SXM2-32GB", "A100-SXM4-80GB", "H100-SXM5-80GB", "H200"}) {
      PublishedRow row = row_of("torchtitan", gpu);
      row.inter_node_gbps_per_node = stated;
      INFO(gpu << ", " << stated << " Gbit/s");
      CHECK(gbps(node_of(row)) == Approx(stated));
    }
}

TEST_CASE("a run without a stated network gets its GPU's SuperPOD, and says so") {
  const ClusterDefaults a100 = defaults().cluster(row_of("Megatron-LM"));
  CHECK(gbps(catalogue().node(a100.node)) == Approx(1600));
  CHECK(a100.assumption.find("not stated") != std::string::npos);
  CHECK(gbps(node_of(row_of("Megatron-LM", "H100-SXM5-80GB"))) == Approx(3200));
  PublishedRow alone = row_of("Megatron-LM");
  alone.gpus = 8;
  CHECK(defaults().cluster(alone).assumption.empty());
}

TEST_CASE("the words of a row name its cloud") {
  PublishedRow row = row_of("FSDP", "A100-SXM4-40GB");
  row.notes = "AWS p4d.24xlarge";
  CHECK(node_of(row).network == topology::Network::efa);
  CHECK(gbps(node_of(row)) == Approx(400));
  row = row_of("GPT-NeoX", "A100-SXM4-40GB");
  CHECK(gbps(node_of(row)) == Approx(1600));
  row.model = "Pythia-1B";
  CHECK(gbps(node_of(row)) == Approx(400));
  row = row_of("FSDP", "V100-SXM2-16GB (p3.16xlarge)");
  CHECK(gbps(node_of(row)) == Approx(25));
  row = row_of("FSDP", "V100-SXM3-32GB (DGX-2H)");
  row.gpus_per_node = 16;
  CHECK(node_of(row).gpus == 16);
  CHECK(node_of(row).gpu.tdp.value == Approx(450));
}

TEST_CASE("a GPU without sourced facts is refused with a reason") {
  for (const char* gpu : {"", "TPU v4", "Ascend 910B"}) {
    INFO(gpu);
    CHECK_FALSE(defaults().cluster(row_of("torchtitan", gpu)).refused.empty());
  }
}

TEST_CASE("what expert models do unasked is not what dense rows do that speak of them") {
  PublishedRow row = row_of("Megatron-Bridge/Megatron-Core");
  row.gpu = "H100-SXM5-80GB";
  row.source = "summaries 2026-02: dense and MoE models";
  row.precision = "mxfp8";
  CHECK(defaults().framework(row).plan.find("expert_tensor") == nullptr);
  CHECK(defaults().framework(row).precision.find("bf16_first_layers") == nullptr);
  row.precision = "fp8";
  CHECK(*defaults().framework(row).precision.find("recipe")->text() == "fp8_current");
  row.experts = 8;
  CHECK(*defaults().framework(row).plan.find("dispatcher")->text() == "node_aware");
}

TEST_CASE("offload and adapters are refused, their absence is not") {
  PublishedRow row = row_of("HF + DeepSpeed");
  row.notes = "CPU-OFFLOADED AdamW";
  CHECK_FALSE(defaults().framework(row).refused.empty());
  row.notes = "no AC, no offload";
  CHECK(defaults().framework(row).refused.empty());
  row.notes = "LoRA rank 16";
  CHECK_FALSE(defaults().framework(row).refused.empty());
}

TEST_CASE("a wrong data file says where and what") {
  const auto problem = [](const char* file, const char* text) {
    const Folder folder;
    folder.add(file, text);
    try {
      folder.read();
    } catch (const InputError& error) {
      CHECK(error.where().find(std::string(file) + ":") != std::string::npos);
      return error.problem();
    }
    return std::string();
  };
  using Catch::Contains;
  const char* frameworks = "published_frameworks.toml";
  const char* clusters = "published_clusters.toml";
  CHECK_THAT(problem(frameworks, "[[detail]]\nname = \"x\"\nopptimizer = \"lamb\"\n"),
             Contains("unknown key 'opptimizer'"));
  CHECK_THAT(problem(frameworks, "[[detail]]\nname = \"x\"\nwhen = { words = '(' }\n"),
             Contains("is no pattern"));
  CHECK_THAT(problem(frameworks, "[[detail]]\nname = \"x\"\nwhen = { from = \"soon\" }\n"),
             Contains("is no date"));
  CHECK_THAT(problem(frameworks, "[[detail]]\nname = \"LAMB\"\n"), Contains("stands twice"));
  CHECK_THAT(problem(frameworks, "[[detail]]\nname = \"x\"\nlike = \"y\"\n"),
             Contains("there is no rule 'y'"));
  CHECK_THAT(problem(clusters, "[[gpu]]\nname = \"x\"\ngpu = \"h100\"\ndate = \"2024\"\n"),
             Contains("unknown gpu"));
  CHECK_THAT(problem(clusters,
                     "[[gpu]]\nname = \"x\"\nwhen = { gpu = 'x' }\nrefused = \"r\"\n"
                     "date = \"2024\"\n"),
             Contains("no rule is left"));
  CHECK(problem(frameworks, "").empty());
}

TEST_CASE("texts of any length and content are survived") {
  PublishedRow row = row_of(std::string(200'000, 'a') + "2021-01");
  row.notes = std::string(100'000, '(') + std::string(100'000, '\\');
  row.gpu = "A100 " + std::string(100'000, '8');
  CHECK_NOTHROW(defaults().framework(row));
  CHECK_NOTHROW(defaults().cluster(row));
}

}  // namespace stepcast::validate
