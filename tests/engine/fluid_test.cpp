#include "engine/fluid.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <map>

using namespace stepcast;
using namespace stepcast::engine;

namespace {

constexpr BytesPerSecond unlimited(std::numeric_limits<double>::infinity());
using Rates = std::vector<BytesPerSecond>;
using Loads = std::vector<LinkLoad>;
using Ends = std::map<std::uint64_t, Time>;

/// Takes all ends, instant by instant.
Ends run_out(Fluid& fluid) {
  Ends ends;
  std::vector<std::uint64_t> tags;
  while (const auto now = fluid.next_end()) {
    tags.clear();
    fluid.take_ended(*now, tags);
    for (std::uint64_t tag : tags) ends[tag] = *now;
    fluid.settle(*now);
  }
  return ends;
}

const Loads link_0{{0, 1}}, link_1{{1, 1}};

}  // namespace

TEST_CASE("one flow on one link takes bytes over bandwidth") {
  Fluid fluid(Rates{50_GBps});
  fluid.start(Time(5_us), 1e6, unlimited, link_0, 7);
  fluid.settle(Time(5_us));
  CHECK(fluid.active() == 1);
  CHECK(run_out(fluid) == Ends{{7, Time(25_us)}});  // 1e6 / 50e9 = 20 us
  CHECK(fluid.active() == 0);
}

TEST_CASE("an end is rounded up to the next picosecond") {
  Fluid fluid(Rates{50_GBps});
  fluid.start(Time{}, 1, BytesPerSecond(7e12), {}, 0);  // 1/7 ps
  fluid.start(Time{}, 7, BytesPerSecond(2e12), {}, 1);  // 3.5 ps
  fluid.start(Time{}, 0, BytesPerSecond(1e9), {}, 2);
  fluid.settle(Time{});
  CHECK(run_out(fluid) == Ends{{0, Time(1_ps)}, {1, Time(4_ps)}, {2, Time{}}});
}

TEST_CASE("a link shared by two flows gives each half") {
  Fluid fluid(Rates{50_GBps});
  fluid.start(Time{}, 1e6, unlimited, link_0, 0);
  fluid.start(Time{}, 2e6, unlimited, link_0, 1);
  fluid.settle(Time{});
  // Both at 25: the first ends after 40 us; the second has 1e6 bytes left for 20 us alone.
  CHECK(run_out(fluid) == Ends{{0, Time(40_us)}, {1, Time(60_us)}});
}

TEST_CASE("n equal flows end together after n times the time of one") {
  Fluid fluid(Rates{64_GBps});
  for (std::uint64_t i = 0; i < 8; ++i) fluid.start(Time{}, 64e3, unlimited, link_0, i);
  fluid.settle(Time{});
  CHECK(*fluid.next_end() == Time(8_us));
  std::vector<std::uint64_t> tags;
  fluid.take_ended(Time(8_us), tags);
  CHECK(tags == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7});  // in the order of starts
}

TEST_CASE("a latecomer slows the first flow from its start on and not before") {
  Fluid fluid(Rates{50_GBps});
  fluid.start(Time{}, 2e6, unlimited, link_0, 0);
  fluid.settle(Time{});
  CHECK(*fluid.next_end() == Time(40_us));
  fluid.start(Time(20_us), 1e6, unlimited, link_0, 1);
  fluid.settle(Time(20_us));
  // At 20 us both have 1e6 bytes left and 25 GB/s.
  CHECK(run_out(fluid) == Ends{{0, Time(60_us)}, {1, Time(60_us)}});
}

TEST_CASE("flows whose caps fit on the link do not notice each other") {
  Fluid fluid(Rates{50_GBps});
  fluid.start(Time{}, 1e6, 20_GBps, link_0, 0);
  fluid.start(Time{}, 1e6, 30_GBps, link_0, 1);
  fluid.settle(Time{});
  CHECK(run_out(fluid).at(0) == Time(50_us));
  CHECK(fluid.counters().settles == 0);
}

TEST_CASE("a third flow that overloads the link slows only who is faster than its share") {
  Fluid fluid(Rates{50_GBps});
  const auto slow = fluid.start(Time{}, 1e6, 10_GBps, link_0, 0);
  const auto fast = fluid.start(Time{}, 1e6, 40_GBps, link_0, 1);
  fluid.settle(Time{});
  CHECK(fluid.rate_of(fast) == 40_GBps);
  const auto third = fluid.start(Time(1_us), 20e3, 40_GBps, link_0, 2);
  fluid.settle(Time(1_us));
  CHECK(fluid.rate_of(slow) == 10_GBps);
  CHECK(fluid.rate_of(fast) == 20_GBps);
  CHECK(fluid.rate_of(third) == 20_GBps);
  CHECK(*fluid.next_end() == Time(2_us));
  std::vector<std::uint64_t> tags;
  fluid.take_ended(Time(2_us), tags);
  fluid.settle(Time(2_us));
  CHECK(fluid.rate_of(fast) == 40_GBps);  // back to its cap as if nothing had been
}

TEST_CASE("all starts of one instant are settled together") {
  Fluid fluid(Rates{50_GBps});
  for (std::uint64_t i = 0; i < 10; ++i) fluid.start(Time{}, 1e6, unlimited, link_0, i);
  fluid.settle(Time{});
  CHECK(fluid.counters().settles == 1);
  CHECK(fluid.counters().weighed_flows == 10);
}

TEST_CASE("a flow that takes the place of one that ends moves nobody else") {
  Fluid fluid(Rates{50_GBps});
  fluid.start(Time{}, 1e6, unlimited, link_0, 0);
  const auto other = fluid.start(Time{}, 9e6, unlimited, link_0, 1);
  fluid.settle(Time{});
  const auto moves = fluid.counters().moves;
  std::vector<std::uint64_t> tags;
  fluid.take_ended(Time(40_us), tags);
  const auto third = fluid.start(Time(40_us), 1e6, unlimited, link_0, 2);
  fluid.settle(Time(40_us));
  CHECK(fluid.counters().moves == moves);
  CHECK(fluid.counters().changed_rates == 0);
  CHECK(fluid.rate_of(other) == 25_GBps);
  CHECK(fluid.rate_of(third) == 25_GBps);
}

TEST_CASE("a flow that fits beside one held back elsewhere moves nobody else") {
  // A collective over ports 0..3; a send on port 0 halves it to 25. A send on port 1 finds the
  // other 25 free, and when the first ends the collective is still held back by the second.
  Fluid fluid(Rates(4, 50_GBps));
  const Loads ring{{0, 1}, {1, 1}, {2, 1}, {3, 1}};
  const auto collective = fluid.start(Time{}, 1e9, unlimited, ring, 0);
  fluid.start(Time{}, 250e3, unlimited, link_0, 1);
  fluid.settle(Time{});
  CHECK(fluid.counters().moves == 2);
  const auto second = fluid.start(Time(5_us), 1e6, unlimited, link_1, 2);
  fluid.settle(Time(5_us));
  CHECK(fluid.rate_of(second) == 25_GBps);
  std::vector<std::uint64_t> tags;
  fluid.take_ended(Time(10_us), tags);
  fluid.settle(Time(10_us));
  CHECK(fluid.rate_of(collective) == 25_GBps);
  CHECK(fluid.counters().moves == 3);
  CHECK(run_out(fluid).at(2) == Time(45_us));
}

TEST_CASE("a ring all-gather on a star takes (n-1)/n of the bytes over the port's bandwidth") {
  // 8 hosts, ports of 50 GB/s, 8 MB: every edge carries 7 MB; 7e6 / 50e9 = 140 us.
  Loads ring;
  for (std::uint32_t port = 0; port < 16; ++port) ring.push_back({port, 1});
  Fluid fluid(Rates(16, 50_GBps));
  fluid.start(Time{}, 7e6, unlimited, ring, 0);
  fluid.settle(Time{});
  CHECK(run_out(fluid).at(0) == Time(140_us));
}

TEST_CASE("a tree reduce on a star takes the bytes of both children through the parent's port") {
  // Ports 0..6 up, 7..13 down; host 0 is the root, i's children are 2i+1 and 2i+2.
  std::map<std::uint32_t, double> weights;
  for (std::uint32_t child = 1; child < 7; ++child) {
    weights[child] += 1;
    weights[7 + (child - 1) / 2] += 1;
  }
  Loads tree;
  for (const auto& [link, weight] : weights) tree.push_back({link, weight});
  Fluid fluid(Rates(14, 50_GBps));
  fluid.start(Time{}, 1e6, unlimited, tree, 0);
  fluid.settle(Time{});
  CHECK(run_out(fluid).at(0) == Time(40_us));  // 2e6 / 50e9
}

TEST_CASE("flows are recycled without changing what a run says") {
  Fluid fluid(Rates{50_GBps, 50_GBps});
  Ends first;
  for (std::int64_t lap = 0; lap < 100; ++lap) {
    const Time begin = Time(1'000_ms * lap);
    for (std::uint64_t i = 0; i < 5; ++i)
      fluid.start(begin, 1e6 * static_cast<double>(i + 1), unlimited, i % 2 ? link_1 : link_0, i);
    fluid.settle(begin);
    Ends ends = run_out(fluid);
    for (auto& [tag, end] : ends) end -= 1'000_ms * lap;
    if (lap == 0) first = ends;
    REQUIRE(ends == first);
  }
}

TEST_CASE("an instant that is skipped or left unsettled is a broken promise") {
  Fluid fluid(Rates{50_GBps});
  std::vector<std::uint64_t> tags;
  fluid.start(Time(10_us), 1e6, unlimited, link_0, 0);
  CHECK_THROWS_AS(fluid.settle(Time(11_us)), BrokenPromise);
  fluid.settle(Time(10_us));
  CHECK_THROWS_AS(fluid.start(Time(9_us), 1, unlimited, link_0, 1), BrokenPromise);
  CHECK_THROWS_AS(fluid.take_ended(Time(31_us), tags), BrokenPromise);
  CHECK_THROWS_AS(fluid.settle(Time(31_us)), BrokenPromise);
}

TEST_CASE("end_alone also holds beside flows with which no overloaded link is shared") {
  Fluid fluid(Rates{50_GBps, 50_GBps});
  const Loads both{{0, 1}, {1, 0.5}};
  fluid.start(Time{}, 1e9, 20_GBps, both, 0);
  fluid.settle(Time{});
  fluid.start(Time(3_us), 1e6, 30_GBps, link_0, 1);
  fluid.settle(Time(3_us));
  const Rates capacities{50_GBps, 50_GBps};
  const Ends ends = run_out(fluid);
  CHECK(ends.at(0) == end_alone(Time{}, 1e9, 20_GBps, both, capacities));
  CHECK(ends.at(1) == end_alone(Time(3_us), 1e6, 30_GBps, link_0, capacities));
}

TEST_CASE("rates that differ by a rounding step are what filling in whole steps gives") {
  // In steps of 1/64 byte/s, T = 1 GB/s: link 1 carries 2 T and two flows, T each; one of them also
  // crosses link 0, which carries 2 T + 1. A new flow there finds T + 1 left, but link 0 is full at
  // the level T, together with link 1: it gets T.
  const Rates capacities{BytesPerSecond(2e9 + 1.0 / 64), 2_GBps};
  const Loads both{{0, 1}, {1, 1}};
  Fluid fluid(capacities);
  fluid.start(Time{}, 1e6, unlimited, both, 0);
  fluid.start(Time{}, 1e6, unlimited, link_1, 1);
  fluid.settle(Time{});
  const auto late = fluid.start(Time(1_us), 1e6, unlimited, link_0, 2);
  fluid.settle(Time(1_us));
  const std::vector<Variable> all{{unlimited, both}, {unlimited, link_1}, {unlimited, link_0}};
  CHECK(fluid.rate_of(late) == max_min(capacities, all)[2]);
  CHECK(fluid.rate_of(late) == 1_GBps);
}
