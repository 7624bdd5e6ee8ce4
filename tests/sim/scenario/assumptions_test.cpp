// What a step rests on without anybody having measured it is said, and nothing else is.
#include "sim/scenario/assumptions.hpp"

#include <catch2/catch.hpp>

#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

std::vector<std::string> assumed(const std::string& node, const std::string& model,
                                 const std::string& more = "", const std::string& plan = "") {
  return assumptions(read_scenario(
      read_toml("[model]\nname = \"" + model + "\"\nsequence = 4096\n[cluster]\nnode = \"" + node +
                    "\"\nnodes = 2\n[plan]\ndata = \"zero1\"\n" + plan +
                    "[batch]\nglobal = 288\n[software]\nframework = \"megatron-core\"\n" + more,
                "assumed.toml"),
      catalogue()));
}

bool says(const std::vector<std::string>& all, const std::string& word) {
  return std::ranges::any_of(
      all, [&](const std::string& one) { return one.find(word) != std::string::npos; });
}

}  // namespace

TEST_CASE("dense steps of Hopper rest on nothing unknown, those of Blackwell on NCCL's sizes") {
  CHECK(assumed("dgx-h100", "llama2-7b").empty());
  const auto blackwell = assumed("dgx-b200", "llama2-7b");
  REQUIRE(blackwell.size() == 1);
  CHECK(says(blackwell, "NCCL's all-to-all"));
}

TEST_CASE("each unknown is said where it is used, and only there") {
  const std::string eight = "expert = 8\n";
  CHECK(assumed("dgx-h100", "mixtral-8x7b", "", eight).size() == 1);
  CHECK(says(assumed("dgx-h100", "mixtral-8x7b", "", eight), "loads experts is not published"));
  CHECK(assumed("dgx-h100", "mixtral-8x7b", "[routing]\nkind = \"balanced\"\n", eight).empty());
  CHECK(assumed("dgx-h100", "mixtral-8x7b").empty());  // a rank has all experts

  const auto deepep =
      assumed("dgx-b300", "mixtral-8x7b", "", eight + "dispatcher = \"node_aware\"\n");
  CHECK(says(deepep, "B300"));
  CHECK(says(deepep, "fixed cost"));
  CHECK_FALSE(says(deepep, "HybridEP"));
  CHECK(says(assumed("dgx-b200", "mixtral-8x7b", "", eight + "dispatcher = \"nvlink_domain\"\n"),
             "HybridEP"));

  const std::string nvfp4 = "[precision]\nrecipe = \"nvfp4\"\n";
  const std::string any = "recipes = [\"nvfp4\", \"mxfp8\"]\n";
  CHECK(says(assumed("dgx-b200", "llama2-7b", any + nvfp4), "quantize kernels of nvfp4"));
  CHECK(says(assumed("gb200-nvl72", "llama2-7b", any + nvfp4), "not measured by shape on GB200"));
  CHECK_FALSE(says(assumed("dgx-b200", "llama2-7b", any + nvfp4), "GB200"));
  CHECK(says(assumed("gb200-nvl72-36x2", "llama2-7b"), "two racks of 36"));
  CHECK(says(assumed("dgx-h100", "mixtral-8x7b", "cuda_graphs = \"iteration\"\n", eight),
             "overflow"));
}

}  // namespace stepcast::sim
