#include <catch2/catch.hpp>
#include <filesystem>

#include "calibrate/cuda/collective.hpp"
#include "sim/program/installation.hpp"
#include "tests/hardware/gpu.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;

TEST_CASE("two ranks on one GPU do every collective right") {
  if (!std::filesystem::exists(sim::beside_program("stepcast-nccl-worker"))) {
    WARN("no stepcast-nccl-worker beside this program");
    return;
  }
  Collectives collectives({.gpus = 1, .ranks_per_gpu = 2});
  REQUIRE(collectives.num_ranks() == 2);
  for (const char* name : {"allreduce", "allgather", "reducescatter", "alltoall", "sendrecv"})
    for (const Bytes size : {1_KiB, 1_MiB}) {
      const auto task = collectives.make(CollectiveTask{name, size, {}, {}}, 1);
      INFO(name);
      CHECK(task->relative_error() <= task->tolerance());
      CHECK(task->run(5, Cache::hot).total > Duration(0));
    }
  CHECK_THROWS_AS(collectives.make(CollectiveTask{"allgather", 4_B, {}, {}}, 1), Unsupported);
}
