#include "sim/network/stepped/transfers.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "engine/check.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

constexpr BytesPerSecond unlimited(std::numeric_limits<double>::infinity());
const std::vector<BytesPerSecond> two_links{BytesPerSecond(1e9), BytesPerSecond(1e9)};

/// A ring whose edges have links of their own: `hops` by edge, 1 byte per nanosecond.
TransferGraph ring(const std::vector<Duration>& hops, std::size_t steps, double bytes) {
  TransferGraph graph;
  const std::size_t n = hops.size();
  for (std::uint32_t i = 0; i < n; ++i) graph.add_way({{{i, 1.0}}, unlimited, hops[i]});
  for (std::size_t s = 0; s < steps; ++s)
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto id = graph.add(i, bytes, static_cast<std::uint32_t>(s));
      if (s == 0) continue;
      const auto before = static_cast<std::uint32_t>((s - 1) * n);
      graph.pass_on(
          id, before + (i + static_cast<std::uint32_t>(n) - 1) % static_cast<std::uint32_t>(n));
      graph.queue(id, before + i);
    }
  return graph;
}

}  // namespace

TEST_CASE("a transfer takes its hop and then its bytes at the rate of its narrowest link") {
  TransferGraph graph;
  const auto way = graph.add_way({{{0, 1.0}, {1, 1.0}}, BytesPerSecond(5e8), 3_us});
  graph.add(way, 1000, 0);
  CHECK(makespan(run_transfers(graph, two_links)) == 5_us);
  CHECK(makespan(run_transfers(graph, two_links, {.hops = false})) == 2_us);
}

TEST_CASE("two transfers on one link have half of it each, until the shorter one ends") {
  TransferGraph graph;
  const auto a = graph.add_way({{{0, 1.0}}, unlimited, {}});
  const auto b = graph.add_way({{{0, 1.0}, {1, 1.0}}, unlimited, {}});
  graph.add(a, 1000, 0);
  graph.add(b, 3000, 1);
  const auto ends = run_transfers(graph, two_links);
  CHECK(ends[0] == 2_us);
  CHECK(ends[1] == 4_us);
  const auto alone = run_transfers(graph, {two_links}, {.share_links = false});
  CHECK(alone[1] < 1_ns);  // neither link nor cap holds it
}

TEST_CASE("what is passed on waits for its data, what is queued for the sender's own bytes") {
  TransferGraph graph;
  const auto slow = graph.add_way({{{0, 1.0}}, unlimited, 10_us});
  const auto first = graph.add(slow, 1000, 0);
  const auto queued = graph.add(slow, 1000, 1);  // its hop runs while the first one's does
  const auto passed = graph.add(slow, 1000, 2);
  graph.queue(queued, first);
  graph.pass_on(passed, queued);
  const auto ends = run_transfers(graph, two_links);
  CHECK(ends[0] == 11_us);
  CHECK(ends[1] == 12_us);
  CHECK(ends[2] == 23_us);
  CHECK(run_transfers(graph, two_links, {.hold_on_hop = true})[1] == 22_us);
}

TEST_CASE("a ring pays every hop on a chunk's way once, a ring that holds pays the longest") {
  const std::vector<Duration> hops{1_us, 2_us, 7_us, 3_us};
  const std::vector<BytesPerSecond> links(4, BytesPerSecond(1e9));
  const TransferGraph graph = ring(hops, 3, 1000);
  // The dearest three edges in a row: 2 + 7 + 3, and 3 x 1 us of bytes.
  CHECK(makespan(run_transfers(graph, links)) == 15_us);
  CHECK(makespan(run_transfers(graph, links, {.hold_on_hop = true})) == 3 * 8_us);
}

TEST_CASE("bytes on links count every transfer with its weight") {
  TransferGraph graph;
  const auto way = graph.add_way({{{1, 0.5}, {0, 1.0}, {1, 0.25}}, unlimited, {}});
  graph.add(way, 1000, 0);
  graph.add(way, 200, 0);
  CHECK(graph.bytes_on_links(2) == std::vector<double>{1200, 900});
  CHECK(graph.ways()[way].loads.size() == 2);
}

TEST_CASE("transfers that wait for each other are a bug of ours") {
  TransferGraph graph;
  const auto way = graph.add_way({{{0, 1.0}}, unlimited, {}});
  const auto a = graph.add(way, 1, 0), b = graph.add(way, 1, 0);
  graph.pass_on(a, b);
  graph.pass_on(b, a);
  CHECK_THROWS_AS(run_transfers(graph, two_links), BrokenPromise);
}
