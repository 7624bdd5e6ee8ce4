// Collectives and kernels of a machine's own cores: measured, between measurements, or refused.
#include "sim/network/host/network.hpp"

#include <catch2/catch.hpp>

#include "sim/kernels/calibrated_kernels.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using workloads::CollectiveKind;

namespace {

const topology::GpuSpec core{
    .name = "host-core",
    .architecture = {.name = "host", .host = true, .nccl = topology::NcclGeneration::host},
    .sms = 1,
    .tensor_peak = FlopsPerSecond(1e11),
    .fp32_peak = FlopsPerSecond(1e11),
    .memory_bandwidth = 10_GBps};

CollectiveRow row(Bytes bytes, Duration duration) {
  CollectiveRow r;
  r.gpu = "host-core";
  r.dtype = "fp32";
  r.collective = "allreduce";
  r.ranks = 2;
  r.nodes = 1;
  r.bytes = bytes;
  r.duration = duration;
  return r;
}

CollectiveTime time_of(const std::vector<CollectiveRow>& rows, Bytes bytes,
                       std::int64_t ranks = 2) {
  return HostNetwork(core, rows, "test.toml:1")
      .time_of(plain_collective(CollectiveKind::all_reduce, bytes, workloads::Dtype::fp32),
               {ranks, 1, ranks, 1});
}

const std::vector<CollectiveRow> rows{row(1_KiB, 10_us), row(4_KiB, 20_us), row(16_KiB, 80_us)};

}  // namespace

TEST_CASE("a collective between cores takes what was measured, and holds no SM") {
  const CollectiveTime time = time_of(rows, 4_KiB);
  CHECK(time.duration == 20_us);
  CHECK(time.provenance == Provenance::measured);
  CHECK(time.ctas == 0);
  CHECK(time.duration == time.latency + time.transfer);
}

TEST_CASE("a sum of numbers of another type than measured is derived, bytes that move are not") {
  auto wide = rows, narrow = rows;
  for (CollectiveRow& r : narrow) r.dtype = "bf16", r.duration = r.duration / 2;
  wide.insert(wide.end(), narrow.begin(), narrow.end());
  CHECK(time_of(wide, 4_KiB).duration == 20_us);  // fp32, as asked for
  CHECK(time_of(narrow, 4_KiB).duration == 10_us);
  CHECK(time_of(narrow, 4_KiB).provenance == Provenance::derived);
  for (CollectiveRow& r : narrow) r.collective = "allgather";
  const auto gathered =
      HostNetwork(core, narrow, "test.toml:1")
          .time_of(plain_collective(CollectiveKind::all_gather, 4_KiB, workloads::Dtype::fp32),
                   {2, 1, 2, 1});
  CHECK(gathered.provenance == Provenance::measured);
}

TEST_CASE("between measured sizes a collective is interpolated, far beyond extrapolated") {
  CHECK(time_of(rows, 8_KiB).provenance == Provenance::interpolated);
  CHECK(seconds(time_of(rows, 8_KiB).duration) == Approx(40e-6));
  CHECK(time_of(rows, Bytes(4)).duration == 10_us);
  CHECK(seconds(time_of(rows, 32_KiB).duration) == Approx(160e-6));
  CHECK(time_of(rows, 32_KiB).provenance == Provenance::interpolated);
  CHECK(time_of(rows, 64_KiB).provenance == Provenance::extrapolated);
}

TEST_CASE("more bytes are never faster, whatever noise says") {
  const auto noisy = std::vector{row(1_KiB, 30_us), row(4_KiB, 20_us), row(16_KiB, 80_us)};
  CHECK(time_of(noisy, 4_KiB).duration == 30_us);
}

TEST_CASE("a group of one moves nothing") { CHECK(time_of(rows, 4_KiB, 1).duration == Duration{}); }

TEST_CASE("what was not measured on the cores is refused with the command that measures it") {
  CHECK_THROWS_AS(time_of({}, 4_KiB), InputError);
  CHECK_THROWS_AS(time_of(rows, 4_KiB, 4), InputError);
  auto foreign = rows;
  for (CollectiveRow& r : foreign) r.gpu = "H100-SXM5-80GB";
  CHECK_THROWS_AS(time_of(foreign, 4_KiB), InputError);

  const CalibratedKernels kernels({}, core, {});
  workloads::Kernel kernel;
  kernel.name = "head.forward";
  kernel.dtype = workloads::Dtype::fp32;
  kernel.m = kernel.n = kernel.k = 64;
  kernel.bytes = Bytes(49152);
  CHECK_THROWS_AS(kernels.time_of(kernel), InputError);
  kernel.family = workloads::KernelFamily::norm;
  CHECK_THROWS_AS(kernels.time_of(kernel), InputError);
}

TEST_CASE("what was measured in one machine says nothing of ranks on several") {
  const HostNetwork network(core, rows, "test.toml:1");
  const GroupShape two_nodes{2, 2, 1, 1};
  CHECK_THROWS_WITH(
      network.time_of(plain_collective(CollectiveKind::all_reduce, 4_KiB, workloads::Dtype::fp32),
                      two_nodes),
      Catch::Contains("on 2 nodes"));
  auto measured = rows;
  for (CollectiveRow& r : measured) r.nodes = 2, r.duration = 3 * r.duration;
  const HostNetwork there(core, measured, "test.toml:1");
  CHECK(there
            .time_of(plain_collective(CollectiveKind::all_reduce, 4_KiB, workloads::Dtype::fp32),
                     two_nodes)
            .duration == 60_us);
}

// AllReduce of n bytes over two ranks: each sends n.
TEST_CASE("between nodes no message is faster than its NIC") {
  auto measured = rows;
  for (CollectiveRow& r : measured) r.nodes = 2;
  const auto time = [&](BytesPerSecond nic) {
    return HostNetwork(core, measured, "test.toml:1", {nullptr, nic})
        .time_of(plain_collective(CollectiveKind::all_reduce, 4_KiB, workloads::Dtype::fp32),
                 {2, 2, 1, 1})
        .duration;
  };
  CHECK(time(1_GBps) == 20_us);
  CHECK(time(BytesPerSecond(4096 / 30e-6)) == 30_us);
}
