// What a script exports for NCCL and the allocator.
#include <catch2/catch.hpp>

#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;

TEST_CASE("a script's environment says what NCCL and the allocator do") {
  const NamedText file{
      "run.sh",
      "#!/bin/bash\nexport NCCL_PROTO=Simple\nexport NCCL_DEBUG=INFO\nexport NCCL_NO_SUCH=1\n"
      "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
      "NCCL_ALGO=Ring torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
      "--num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 8\n"};
  const auto input = read_launch_files({&file, 1}, catalogue());
  REQUIRE(input);
  const auto text = [&](const char* key) { return *input->facts.find(key)->text(); };
  CHECK(text("nccl.NCCL_PROTO") == "Simple");
  CHECK(text("nccl.NCCL_ALGO") == "Ring");
  CHECK(input->facts.find("nccl.NCCL_DEBUG") == nullptr);
  CHECK(input->facts.find("software.expandable_segments") != nullptr);
  CHECK(input->understanding.unknown == std::vector<std::string>{});
  CHECK(std::ranges::count(input->facts.notes,
                           "NCCL_NO_SUCH is no variable of NCCL that is known here.") == 1);
}
