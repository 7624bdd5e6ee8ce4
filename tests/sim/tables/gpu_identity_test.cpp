#include "sim/tables/gpu_identity.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "sim/scenario/catalogue.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

const GpuIdentities& gpus() {
  static const Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  return catalogue.gpus();
}

std::string found(const GpuIdentity* gpu) { return gpu == nullptr ? "none" : gpu->gpu.name; }

}  // namespace

TEST_CASE("a name that leaves something open means the usual form of the chip") {
  CHECK(found(gpus().find("h100")) == "h100-sxm5-80gb");
  CHECK(found(gpus().find("A100")) == "a100-sxm4-80gb");
  CHECK(found(gpus().find("a100-sxm4-40gb")) == "a100-sxm4-40gb");
  CHECK(found(gpus().find("a100-pcie")) == "a100-pcie-80gb");
  CHECK(found(gpus().find("V100-SXM2")) == "v100-sxm2-32gb");
  CHECK(found(gpus().find("h100-nvl")) == "h100-nvl-94gb");
  CHECK(found(gpus().find("NVIDIA H100 80GB HBM3")) == "h100-sxm5-80gb");  // as nvidia-smi has it
  CHECK(found(gpus().find("h10")) == "none");
  CHECK(found(gpus().find("A100-SXM-64GB")) == "none");
  CHECK(found(gpus().nearest("A100-SXM-64GB")) == "a100-sxm4-80gb");
  CHECK(found(gpus().nearest("L4")) == "l4");
  CHECK(found(gpus().nearest("T4")) == "none");
}

TEST_CASE("CUDA's names and PCI ids are in the files of the catalogue") {
  CHECK(found(gpus().by_cuda_name("NVIDIA H100 80GB HBM3")) == "h100-sxm5-80gb");
  CHECK(found(gpus().by_cuda_name("NVIDIA GH200 120GB")) == "gh200-96gb");
  CHECK(found(gpus().by_cuda_name("Tesla V100-SXM3-32GB")) == "v100-sxm3-32gb");
  CHECK(found(gpus().by_cuda_name("NVIDIA Graphics Device")) == "none");
  CHECK(found(gpus().by_cuda_name("h100")) == "none");  // somebody's short word
  CHECK(found(gpus().by_pci_id("0x20F3")) == "a800-sxm4-80gb");
}

TEST_CASE("no two GPUs share an alias, a CUDA name or a PCI id") {
  std::set<std::string> seen;
  for (const GpuIdentity& one : gpus().all())
    for (const auto* names : {&one.aliases, &one.cuda_names, &one.pci_ids})
      for (const std::string& name : *names) {
        INFO(one.gpu.name << " " << name);
        CHECK(seen.insert(name).second);
      }
}

TEST_CASE("what is told of one GPU by its generation alone is what all of them tell") {
  const Catalogue one_by_one(STEPCAST_SOURCE_DIR "/scenarios");
  for (const GpuIdentity& one : gpus().all()) {
    CAPTURE(one.gpu.name);
    std::vector<std::string> all, own;
    for (const auto& relative : gpus().relatives_of(one.gpu.name)) all.push_back(relative.name);
    const auto gpu = one_by_one.gpu(toml_text(one.gpu.name, "test"));
    for (const auto& relative : gpu.relatives) own.push_back(relative.name);
    CHECK(own == all);
    for (const std::string& alias : one.aliases)
      CHECK(one_by_one.node_of_gpu(alias, "test").gpu == one.gpu.name);
  }
}

TEST_CASE("relatives are of one generation, the GPU among them") {
  std::set<std::string> names;
  for (const auto& relative : gpus().relatives_of("a800-sxm4-80gb")) names.insert(relative.name);
  CHECK(names.contains("a800-sxm4-80gb"));
  CHECK(names.contains("a100-pcie-40gb"));
  CHECK_FALSE(names.contains("h100-sxm5-80gb"));
  CHECK(gpus().relatives_of("custom").empty());
}
