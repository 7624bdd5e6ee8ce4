// The host device as a whole: every task is prepared, right, and takes time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "calibrate/host/device.hpp"
#include "calibrate/host/ranks.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;

namespace {

HostOptions small() {
  HostOptions options;
  options.cold_span = 8_MiB;
  options.collective_time_limit = std::chrono::seconds(120);
  return options;
}

std::string ranks_program() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "stepcast-host-ranks")
      .string();
}

/// Once, while nobody else had the core: the shortest of many.
Duration undisturbed(Prepared& kernel, Cache cache) {
  Duration least = kernel.run(1, cache).total;
  for (int i = 0; i < 20; ++i) least = std::min(least, kernel.run(1, cache).total);
  return least;
}

}  // namespace

TEST_CASE("kernels are right and take time, cold and hot") {
  const auto device = make_host_device(small());
  for (const Task& task : {Task(AttentionTask{"fp32", false, 1, 2, 1, 64, 32, true, "host"}),
                           Task(AttentionTask{"fp32", true, 1, 2, 1, 64, 32, true, "host"}),
                           Task(ElementwiseTask{"adamw", "fp32", 1, 10000, false}),
                           Task(ElementwiseTask{"rmsnorm", "fp32", 64, 256, true}),
                           Task(ElementwiseTask{"router", "fp32", 96, 8, false, 2}),
                           Task(ElementwiseTask{"router", "fp32", 96, 8, true, 2}),
                           Task(ElementwiseTask{"router", "fp32", 96, 8, true, 1}),
                           Task(ElementwiseTask{"permute", "fp32", 64, 96, false, 2, 128}),
                           Task(ElementwiseTask{"permute", "fp32", 64, 96, false, 2, 80}),
                           Task(ElementwiseTask{"unpermute", "fp32", 64, 96, false, 2, 128}),
                           Task(ElementwiseTask{"unpermute", "fp32", 64, 96, false, 2, 240}),
                           Task(ElementwiseTask{"sort_rows", "fp32", 130, 96, false}),
                           Task(ElementwiseTask{"weighted_silu_mul", "fp32", 128, 96, false}),
                           Task(ElementwiseTask{"weighted_silu_mul", "fp32", 128, 96, true}),
                           Task(CopyTask{"memory", 1_MiB}), Task(LaunchTask{})}) {
    INFO(to_text(task));
    const auto prepared = device->prepare(task, 1);
    CHECK(prepared->relative_error() <= prepared->tolerance());
    for (const Cache cache : {Cache::cold, Cache::hot})
      CHECK(prepared->run(1000, cache).total > undisturbed(*prepared, cache));
  }
}

TEST_CASE("rows that no token could have are not timed") {
  const auto device = make_host_device(small());
  for (const auto& task : {ElementwiseTask{"permute", "fp32", 64, 96, false, 2, 1},
                           ElementwiseTask{"unpermute", "fp32", 64, 96, false, 0, 128},
                           ElementwiseTask{"router", "fp32", 64, 4, false, 5}})
    CHECK_THROWS_AS(device->prepare(task, 1), Unsupported);
}

TEST_CASE("a copy reads half of its bytes and writes the other half") {
  const auto device = make_host_device(small());
  CHECK(device->prepare(CopyTask{"memory", 1_MiB}, 1)->bytes() == 1_MiB);
}

TEST_CASE("a collective that overlaps is not the host's") {
  const auto device = make_host_device(small());
  CHECK_THROWS_AS(device->prepare(OverlapTask{}, 1), Unsupported);
}

TEST_CASE("without its program the ranks are unsupported, and no process is left") {
  CHECK_THROWS_AS(host::Ranks(2, "/nowhere/ranks", std::chrono::seconds(5)), Unsupported);
}

TEST_CASE("ranks that never answer are given up") {
  if (host::ranks_library().empty()) return;
  CHECK_THROWS_AS(host::Ranks(2, "/bin/cat", std::chrono::milliseconds(500)), Unsupported);
}

TEST_CASE("collectives of two ranks are right and take time") {
  if (!std::filesystem::exists(ranks_program()) || host::ranks_library().empty()) return;
  const auto device = make_host_device(small());
  for (const std::string name :
       {"allreduce", "allgather", "reducescatter", "broadcast", "alltoall", "sendrecv"})
    for (const Bytes bytes : {Bytes(4), Bytes(4096), 1_MiB}) {
      INFO(name << " " << bytes.value);
      const auto prepared = device->prepare(CollectiveTask{name, bytes, "", ""}, 1);
      CHECK(prepared->relative_error() <= prepared->tolerance());
      CHECK(prepared->run(20, Cache::hot).total > Duration{});
    }
  CHECK_THROWS_AS(device->prepare(CollectiveTask{"gossip", 1_MiB, "", ""}, 1)->relative_error(),
                  Unsupported);
}
