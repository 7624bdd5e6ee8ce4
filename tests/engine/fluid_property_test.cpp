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
  std::uint64_t whole = 0, part = 0, local = 0, changed = 0;
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
    whole += fluid.counters().whole_settles;
    part += fluid.counters().part_settles;
    local += fluid.counters().local_settles;
    changed += fluid.counters().changed_rates;
  }
  INFO(whole << " whole, " << part << " part, " << local << " local, " << changed << " changed");
  CHECK(local > 500);  // or the test would have tested little
  CHECK(part > 100);
  CHECK(whole > 5'000);
  CHECK(changed > 20'000);
}

TEST_CASE("a part that is solved alone has the rates of the whole, in trees of alike links") {
  // Equal capacities make equal shares, and shares that a rounding step keeps apart.
  std::uint64_t parts = 0, wholes = 0;
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
    parts += fluid.counters().part_settles + fluid.counters().local_settles;
    wholes += fluid.counters().whole_settles;
  }
  INFO(parts << " parts, " << wholes << " wholes");
  CHECK(parts > 5'000);
  CHECK(wholes > 1'000);
}

TEST_CASE("thousands of congested flows end when they did with whole solves only") {
  // The sum of all ends was recorded with a solver that knew no parts.
  const concurrent_rings::Tree tree{2048, 32};
  Fluid fluid(tree.capacities());
  std::uint64_t sum_ps = 0;
  random_flows::run(fluid, random_flows::flows(tree, 8192, 1), [&](Time now, const auto& ended) {
    sum_ps += ended.size() * static_cast<std::uint64_t>(now.time_since_epoch().count());
  });
  CHECK(sum_ps == 360'367'664'253'121);
  CHECK(fluid.counters().part_settles > 5'000);
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
