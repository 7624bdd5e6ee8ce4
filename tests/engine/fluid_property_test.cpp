// Properties of the fluid layer on random networks: equal to full solves, to closed forms, and to
// itself in another order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <random>

#include "engine/fluid.hpp"
#include "tests/engine/random_flows.hpp"

using namespace stepcast;
using namespace stepcast::engine;

namespace {

constexpr BytesPerSecond unlimited(std::numeric_limits<double>::infinity());
using Rates = std::vector<BytesPerSecond>;
using Loads = std::vector<LinkLoad>;
using Ends = std::map<std::uint64_t, Time>;

/// Random flows on a small network, so that links are now overloaded and now not.
class World {
 public:
  explicit World(std::uint32_t seed, double scale = 1e9) : scale_(scale), random_(seed) {
    const std::uint32_t num_links = 2 + below(20);
    for (std::uint32_t l = 0; l < num_links; ++l)
      capacities.push_back(BytesPerSecond(scale_ * (1 + below(60))));
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
  BytesPerSecond cap() {
    return below(4) ? BytesPerSecond(scale_ / 10 * (1 + below(200))) : unlimited;
  }
  const Loads& loads() { return load_sets[below(60)]; }
  double bytes() { return (1e3 * (1 + below(1000)) + below(10)) * (scale_ / 1e9); }
  std::mt19937& random() { return random_; }

  Rates capacities;
  std::vector<Loads> load_sets;

 private:
  double scale_;  // of all rates, in bytes/s
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
  // Of 8 bytes/s, a link may have only a few rounding steps for each flow, and remainders decide.
  const double scale = GENERATE(1e9, 8.0);
  std::uint64_t settles = 0, moves = 0, changed = 0;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    World world(seed, scale);
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
    settles += fluid.counters().settles;
    moves += fluid.counters().moves;
    changed += fluid.counters().changed_rates;
  }
  INFO(settles << " settles, " << moves << " moves, " << changed << " changed");
  CHECK(settles > 8'000);  // or the test would have tested little
  CHECK(moves > changed);
  CHECK(changed > 20'000);
}

TEST_CASE(
    "what is followed from link to link has the rates of a full solve, in trees of alike links") {
  // Equal capacities make equal shares, and shares that a rounding step keeps apart.
  std::uint64_t moves = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const concurrent_rings::Tree tree{32 * (1 + below(4)), 1 + below(4)};
    Rates capacities = tree.capacities();
    for (BytesPerSecond& capacity : capacities)  // alike, off by a few steps, or of any size
      capacity.value +=
          (seed % 3 == 1 ? below(9) / 64.0 : 0) + (seed % 3 == 2 ? below(1'000) * 1e8 : 0);
    auto flows = random_flows::flows(tree, 250, seed);
    const std::uint32_t one_capped_in = below(4), one_weighted_in = below(4);
    for (random_flows::Flow& flow : flows) {
      if (below(8) == 0) flow.at = flows[below(250)].at;  // several in an instant
      if (one_capped_in > 0 && below(one_capped_in) == 0)
        flow.cap = BytesPerSecond(1e9 * (1 + below(20)) + below(3) / 64.0);
      if (one_weighted_in > 0 && below(one_weighted_in) == 0)
        for (LinkLoad& load : flow.loads) load.weight = (1 + below(9)) / 3.0;
    }
    std::ranges::stable_sort(flows, {}, &random_flows::Flow::at);
    Fluid fluid(capacities);
    std::size_t instants = 0;
    random_flows::run(fluid, flows, [&](Time, const auto&) {
      if (++instants % 2 == 0) return;  // half of them, to be done in a second
      std::vector<Variable> variables;
      const std::vector<Fluid::Active> active = fluid.settled();
      for (const auto& a : active) {
        const random_flows::Flow& flow = flows[a.tag];
        variables.push_back({rate_alone(flow.cap, flow.loads, capacities), flow.loads});
      }
      const Rates whole = max_min(capacities, variables);
      for (std::size_t i = 0; i < active.size(); ++i) REQUIRE(active[i].rate == whole[i]);
    });
    moves += fluid.counters().moves;
  }
  CHECK(moves > 100'000);
}

TEST_CASE("thousands of congested flows end when they did with full solves only") {
  struct Case {
    std::uint32_t hosts, spines, count;
    std::uint64_t sum_ps;  // of all ends, recorded with a solver that knew only whole components
  };
  const auto c =
      GENERATE(Case{2048, 32, 8192, 360'367'664'253'121}, Case{2048, 8, 4096, 232'753'338'699'260},
               Case{512, 8, 1024, 56'308'969'896'457}, Case{256, 1, 1024, 617'028'446'129'030});
  const concurrent_rings::Tree tree{c.hosts, c.spines};
  Fluid fluid(tree.capacities());
  std::uint64_t sum_ps = 0;
  const auto flows = random_flows::flows(tree, c.count, 1);
  random_flows::run(fluid, flows, [&](Time now, const auto& ended) {
    sum_ps += ended.size() * static_cast<std::uint64_t>(now.time_since_epoch().count());
  });
  CHECK(sum_ps == c.sum_ps);
  const Fluid::Counters& did = fluid.counters();
  CHECK(2 * did.moves < 3 * (did.changed_rates + did.starts));  // few in vain
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
    CHECK(fluid.counters().settles == 0);
  }
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
