#include "engine/fluid.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <random>

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
  CHECK(fluid.counters().solves == 0);
  CHECK(run_out(fluid).at(0) == Time(50_us));
  CHECK(fluid.counters().solves == 0);
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

TEST_CASE("all starts of one instant are one solve") {
  Fluid fluid(Rates{50_GBps});
  for (std::uint64_t i = 0; i < 10; ++i) fluid.start(Time{}, 1e6, unlimited, link_0, i);
  fluid.settle(Time{});
  CHECK(fluid.counters().solves == 1);
  CHECK(fluid.counters().solved_flows == 10);
}

TEST_CASE("a flow that takes the place of one that ends changes nobody and needs no solve") {
  Fluid fluid(Rates{50_GBps});
  fluid.start(Time{}, 1e6, unlimited, link_0, 0);
  const auto other = fluid.start(Time{}, 9e6, unlimited, link_0, 1);
  fluid.settle(Time{});
  const auto solves = fluid.counters().solves;
  std::vector<std::uint64_t> tags;
  fluid.take_ended(Time(40_us), tags);
  const auto third = fluid.start(Time(40_us), 1e6, unlimited, link_0, 2);
  fluid.settle(Time(40_us));
  CHECK(fluid.counters().solves == solves);
  CHECK(fluid.counters().local_settles == 1);
  CHECK(fluid.counters().changed_rates == 0);
  CHECK(fluid.rate_of(other) == 25_GBps);
  CHECK(fluid.rate_of(third) == 25_GBps);
}

TEST_CASE("a flow that fits beside one held back elsewhere needs no solve") {
  // A collective over ports 0..3; a send on port 0 halves it to 25. A send on port 1 finds the
  // other 25 free, and when the first ends the collective is still held back by the second.
  Fluid fluid(Rates(4, 50_GBps));
  const Loads ring{{0, 1}, {1, 1}, {2, 1}, {3, 1}};
  const auto collective = fluid.start(Time{}, 1e9, unlimited, ring, 0);
  fluid.start(Time{}, 250e3, unlimited, link_0, 1);
  fluid.settle(Time{});
  CHECK(fluid.counters().solves == 1);
  const auto second = fluid.start(Time(5_us), 1e6, unlimited, link_1, 2);
  fluid.settle(Time(5_us));
  CHECK(fluid.rate_of(second) == 25_GBps);
  std::vector<std::uint64_t> tags;
  fluid.take_ended(Time(10_us), tags);
  fluid.settle(Time(10_us));
  CHECK(fluid.rate_of(collective) == 25_GBps);
  CHECK(fluid.counters().solves == 1);
  CHECK(fluid.counters().local_settles == 2);
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

namespace {

/// Random flows on a small network, so that links are now overloaded and now not.
class World {
 public:
  explicit World(std::uint32_t seed) : random_(seed) {
    const std::uint32_t num_links = 2 + below(20);
    for (std::uint32_t l = 0; l < num_links; ++l)
      capacities.push_back(BytesPerSecond(1e9 * (1 + below(60))));
    for (std::uint32_t t = 0; t < 60; ++t) {
      const double weights[] = {1, 1, 1, 2, 4, 0.5, 1.75, 2.0 / 3};
      Loads loads;
      const std::uint32_t one_in = 1 + below(8);
      for (std::uint32_t l = 0; l < capacities.size(); ++l)
        if (below(one_in) == 0) loads.push_back({l, weights[below(8)]});
      if (loads.empty()) loads.push_back({0, 1});
      load_sets.push_back(loads);
    }
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  BytesPerSecond cap() { return below(4) ? BytesPerSecond(1e8 * (1 + below(200))) : unlimited; }
  const Loads& loads() { return load_sets[below(60)]; }
  double bytes() { return 1e3 * (1 + below(1000)) + below(10); }
  std::mt19937& random() { return random_; }

  Rates capacities;
  std::vector<Loads> load_sets;

 private:
  std::mt19937 random_;
};

struct Running {
  Fluid::Flow flow;
  BytesPerSecond cap;
  const Loads* loads;
};

/// A full solve over all active flows, from nothing.
void require_rates_of_full_solve(const Fluid& fluid, const Rates& capacities,
                                 const std::map<std::uint64_t, Running>& running) {
  std::vector<Variable> variables;
  for (const auto& [tag, r] : running) variables.push_back({r.cap, *r.loads});
  const Rates full = max_min(capacities, variables);
  std::size_t v = 0;
  for (const auto& [tag, r] : running) {
    REQUIRE(fluid.rate_of(r.flow) == full[v]);  // to the last bit, better than 1e-12
    ++v;
  }
}

}  // namespace

TEST_CASE("incremental rates equal a full solve after every one of thousands of instants") {
  std::uint64_t solves = 0, local = 0, changed = 0;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    World world(seed);
    Fluid fluid(world.capacities);
    std::map<std::uint64_t, Running> running;
    std::vector<std::uint64_t> tags;
    std::uint64_t next_tag = 0;
    Time now{};
    for (int instant = 0; instant < 400; ++instant) {
      now += Duration(world.below(200'000'000));
      if (const auto end = fluid.next_end()) now = std::min(now, *end);
      tags.clear();
      fluid.take_ended(now, tags);
      for (std::uint64_t tag : tags) running.erase(tag);
      for (std::uint32_t n = world.below(4); n > 0 && running.size() < 40; --n) {
        const BytesPerSecond cap = world.cap();
        const Loads& loads = world.loads();
        const auto flow = fluid.start(now, world.bytes(), cap, loads, next_tag);
        running[next_tag++] = {flow, cap, &loads};
      }
      fluid.settle(now);
      REQUIRE(fluid.active() == running.size());
      require_rates_of_full_solve(fluid, world.capacities, running);
    }
    solves += fluid.counters().solves;
    local += fluid.counters().local_settles;
    changed += fluid.counters().changed_rates;
  }
  INFO(solves << " solves, " << local << " local, " << changed << " changed");
  CHECK(local > 1'000);
  CHECK(solves > 5'000);  // or the test would have tested little
  CHECK(changed > 20'000);
}

TEST_CASE("bytes are conserved: every flow moves what it was given") {
  for (std::uint32_t seed = 100; seed < 110; ++seed) {
    World world(seed);
    Fluid fluid(world.capacities);
    std::map<std::uint64_t, std::pair<Fluid::Flow, double>> left;
    for (std::uint64_t tag = 0; tag < 30; ++tag) {
      const double bytes = world.bytes();
      left[tag] = {fluid.start(Time{}, bytes, world.cap(), world.loads(), tag), bytes};
    }
    fluid.settle(Time{});
    Time before{};
    std::vector<std::uint64_t> tags;
    while (const auto now = fluid.next_end()) {
      for (auto& [tag, flow] : left)
        flow.second -= fluid.rate_of(flow.first).value * seconds(*now - before);
      tags.clear();
      fluid.take_ended(*now, tags);
      for (std::uint64_t tag : tags) {
        // Rounding up by less than a picosecond moves at most 60 GB/s x 1 ps too much.
        REQUIRE(left.at(tag).second <= 1e-6);
        REQUIRE(left.at(tag).second >= -0.1);
        left.erase(tag);
      }
      fluid.settle(*now);
      before = *now;
    }
    CHECK(left.empty());
  }
}

TEST_CASE("end_alone is the end through the fluid layer to the picosecond") {
  for (std::uint32_t seed = 200; seed < 260; ++seed) {
    World world(seed);
    Fluid fluid(world.capacities);
    Time now{};
    for (int i = 0; i < 100; ++i) {
      now += Duration(world.below(1'000'000));
      const double bytes = world.bytes();
      const BytesPerSecond cap = world.cap();
      const Loads& loads = world.loads();
      const Time alone = end_alone(now, bytes, cap, loads, world.capacities);
      fluid.start(now, bytes, cap, loads, 0);
      fluid.settle(now);
      REQUIRE(*fluid.next_end() == alone);
      const BytesPerSecond bound = rate_alone(unlimited, loads, world.capacities);
      REQUIRE(end_alone(now, bytes, std::min(cap, bound), {}, {}) == alone);
      std::vector<std::uint64_t> tags;
      fluid.take_ended(alone, tags);
      now = alone;
      fluid.settle(now);
    }
    CHECK(fluid.counters().solves == 0);
  }
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

TEST_CASE("the order of starts within an instant changes no end") {
  for (std::uint32_t seed = 400; seed < 440; ++seed) {
    World world(seed);
    struct Start {
      Time at;
      double bytes;
      BytesPerSecond cap;
      const Loads* loads;
      std::uint64_t tag;
    };
    std::vector<Start> starts;
    for (std::uint64_t tag = 0; tag < 60; ++tag)
      starts.push_back({Time(Duration(world.below(6)) * 5'000'000), world.bytes(), world.cap(),
                        &world.loads(), tag});
    const auto run = [&] {
      std::stable_sort(starts.begin(), starts.end(),
                       [](const Start& a, const Start& b) { return a.at < b.at; });
      Fluid fluid(world.capacities);
      Ends ends;
      std::vector<std::uint64_t> tags;
      std::size_t next = 0;
      while (next < starts.size() || fluid.active() > 0) {
        Time now = next < starts.size() ? starts[next].at : Time::max();
        if (const auto end = fluid.next_end()) now = std::min(now, *end);
        tags.clear();
        fluid.take_ended(now, tags);
        for (std::uint64_t tag : tags) ends[tag] = now;
        for (; next < starts.size() && starts[next].at == now; ++next)
          fluid.start(now, starts[next].bytes, starts[next].cap, *starts[next].loads,
                      starts[next].tag);
        fluid.settle(now);
      }
      return ends;
    };
    const Ends ends = run();
    REQUIRE(ends.size() == 60);
    for (int shuffle = 0; shuffle < 3; ++shuffle) {
      std::shuffle(starts.begin(), starts.end(), world.random());
      REQUIRE(run() == ends);
    }
  }
}
