#include "validate/diagnose/surroundings.hpp"

#include <catch2/catch.hpp>

#include "tests/validate/trace_writer.hpp"

using namespace stepcast::validate;

namespace {

Surroundings read(const std::string& text) {
  const TemporaryFile at(text, "run.sh");
  Surroundings out;
  read_surroundings(at.path(), out);
  return out;
}

}  // namespace

TEST_CASE("variables of the environment: set, exported, or told by NCCL") {
  const Surroundings all = read(
      "#!/bin/sh\nexport CUDA_LAUNCH_BLOCKING=1\n# export NCCL_ALGO=Tree\nNCCL_IB_DISABLE=0\n"
      "node1:12:34 [0] NCCL INFO NCCL_PROTO set by environment to LL.\n"
      "TORCH_DISTRIBUTED_DEBUG=\"DETAIL\" torchrun train.py\n");
  REQUIRE(all.signs.size() == 3);
  CHECK(all.signs[0].kind == CauseKind::launch_blocking);
  CHECK(all.signs[0].where.ends_with("run.sh:2"));
  CHECK(all.signs[1].variable == "NCCL_PROTO");
  CHECK(all.signs[1].value == "LL");
  CHECK(all.signs[2].value == "DETAIL");
  CHECK(read("export CUDA_LAUNCH_BLOCKING=0\n").signs.empty());
  CHECK(read("NCCL_PROTO=$PROTO\n").signs.empty());
}

TEST_CASE("nvidia-smi -q: the GPU, a power limit, a narrow link, throttling") {
  const Surroundings all = read(
      "==============NVSMI LOG==============\n    Product Name   : NVIDIA H100 80GB HBM3\n"
      "    GPU Link Info\n        PCIe Generation\n            Max          : 5\n"
      "            Current      : 3\n        Link Width\n            Max          : 16x\n"
      "            Current      : 16x\n    Clocks Event Reasons\n"
      "        SW Power Cap     : Active\n        HW Slowdown      : Not Active\n"
      "        Current Power Limit : 400.00 W\n        Max Power Limit  : 700.00 W\n");
  CHECK(all.gpu == "NVIDIA H100 80GB HBM3");
  REQUIRE(all.signs.size() == 3);
  CHECK(all.signs[0].evidence == "PCIe Generation 3 of 5");
  CHECK(all.signs[1].kind == CauseKind::clocks);
  CHECK(all.signs[2].evidence == "power limit 400 W of 700 W");
}

TEST_CASE("NCCL without InfiniBand or GPUDirect; a text of nothing") {
  CHECK(read("a NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n").signs.size() == 1);
  CHECK(read("a NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n").signs.size() == 1);
  CHECK(read("a NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n").signs.empty());
  CHECK_FALSE(read("nothing of this\n").known);
}
