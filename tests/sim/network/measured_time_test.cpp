#include "sim/network/measured_time.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;
using namespace stepcast::sim;

namespace {

Duration us(double value) { return to_duration(value * 1e-6); }

const MeasurementConstants constants{us(4), us(0.5), us(10), us(2), us(0.7)};

CollectiveRow row(const char* collective, double microseconds, const char* timing,
                  const char* processes) {
  CollectiveRow out;
  out.collective = collective;
  out.ranks = 8;
  out.nodes = 1;
  out.bytes = Bytes(1 << 20);
  out.duration = us(microseconds);
  out.timing = timing;
  out.processes = processes;
  return out;
}

}  // namespace

TEST_CASE("a process per GPU reports the device's time") {
  CHECK(as_measured(us(50), row("allreduce", 0, "wall", "8 per node"), constants) == us(50));
  CHECK(as_measured(us(50), row("allreduce", 0, "", ""), constants) == us(50));
}

TEST_CASE("one process for all GPUs is bound by its launches, and slows what is longer") {
  // 8 launches of 4 us are longer than 5 + 10 us.
  CHECK(as_measured(us(5), row("allreduce", 0, "wall", "1"), constants) == us(32));
  CHECK(as_measured(us(50), row("allreduce", 0, "wall", "1"), constants) == us(60));
  // AlltoAll launches a send and a receive for each pair as well: 128 of 0.5 us.
  CHECK(as_measured(us(5), row("alltoall", 0, "wall", "1"), constants) == us(96));
}

TEST_CASE("a profiler's kernel time leaves the launch out") {
  CHECK(as_measured(us(50), row("allreduce", 0, "kernel", ""), constants) == us(48));
  CHECK(as_measured(us(1), row("allreduce", 0, "kernel", ""), constants) == us(0.5));
}

TEST_CASE("collectives on lists of tensors pay a copy of their bytes") {
  // 2^20 bytes at 0.7 us per 10^6
  const CollectiveRow lists = row("allgather", 0, "wall of lists", "one per GPU");
  CHECK(seconds(as_measured(us(50), lists, constants)) == Approx((50 + 0.7 * 1.048576) * 1e-6));
  CHECK(!device_time(row("allgather", 0.5, "wall of lists", "one per GPU"), constants));
}

TEST_CASE("what measuring adds is taken away again") {
  for (const char* processes : {"1", "8 per node", ""})
    for (const char* timing : {"wall", "kernel", "wall of lists"}) {
      CollectiveRow measured = row("allgather", 0, timing, processes);
      measured.duration = as_measured(us(100), measured, constants);
      CHECK(device_time(measured, constants) == us(100));
    }
}

TEST_CASE("a row at the launches' own pace says nothing about the collective") {
  CHECK(!device_time(row("allreduce", 33, "wall", "1"), constants));
  CHECK(device_time(row("allreduce", 60, "wall", "1"), constants) == us(50));
}

TEST_CASE("a reading error is read from the source's words") {
  CollectiveRow digitised = row("allreduce", 50, "wall", "");
  CHECK(reading_error(digitised).value == 0.0);
  digitised.source = {"arXiv 2411.13055 Fig. 2, digitised +-3 GB/s; 8 x 400 Gb/s IB", "", ""};
  CHECK(reading_error(digitised).value == 3e9);
}
