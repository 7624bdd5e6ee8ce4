#include "sim/network/nccl/chunks.hpp"

#include <catch2/catch.hpp>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

NcclMachine h100(std::int64_t nodes) {
  static const auto node = catalogue().node(toml_text("dgx-h100", "test"));
  return nccl_machine(node, {8 * nodes, nodes, 8, 1});
}

Bytes mib(std::int64_t n) { return Bytes(n << 20); }

}  // namespace

TEST_CASE("NVLS moves 16 KiB per channel and head of short messages and 128 KiB of long ones") {
  const NcclMachine one = h100(1);
  const double per_kib = 16 * 8 * 1024.0;  // 16 channels, 8 heads
  CHECK(nvls_round(mib(2), one, false) == 16 * per_kib);
  CHECK(nvls_round(mib(16), one, false) == 32 * per_kib);
  CHECK(nvls_round(mib(64), one, false) == 64 * per_kib);
  CHECK(nvls_round(mib(1024), one, false) == 128 * per_kib);
  CHECK(nvls_round(Bytes(1000), one, false) == 1000);
  // A tree of 4 nodes and more stops at 64 KiB.
  CHECK(nvls_round(mib(1024), h100(2), true) == 128 * per_kib);
  CHECK(nvls_round(mib(1024), h100(4), true) == 64 * per_kib);
}

TEST_CASE("a tree's chunks grow with the message, from 32 KiB to a slot") {
  const NcclMachine on = h100(16);
  double last = 0.0;
  for (std::int64_t size = 1; size <= 16384; size *= 2) {
    const double chunk = tree_chunk(mib(size), on, Protocol::simple);
    CHECK(chunk >= last);
    CHECK(chunk >= 32 * 1024);
    CHECK(chunk <= slot_bytes);
    last = chunk;
  }
  CHECK(last == slot_bytes);
}

TEST_CASE("a round is no longer than the message") {
  CHECK(round_of(Bytes(1000), 16, 4096) == 1000);
  CHECK(round_of(mib(1), 16, 4096) == 16 * 4096);
}
