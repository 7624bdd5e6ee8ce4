// Random flows between hosts of a two-level fat tree, so many at once that most share their links:
// a start or an end is felt by a few flows of a component of thousands.
#pragma once

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "tests/engine/concurrent_rings.hpp"

namespace stepcast::engine::random_flows {

struct Flow {
  Time at;
  double bytes;
  BytesPerSecond cap;
  std::vector<LinkLoad> loads;
};

/// Of 2^28 to 1.37 x 2^28 bytes, as the rings have, starting within 0.05 s; by their starts.
inline std::vector<Flow> flows(const concurrent_rings::Tree& tree, std::uint32_t count,
                               std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  std::vector<Flow> all(count);
  for (Flow& flow : all) {
    const std::uint32_t from = below(tree.hosts);
    const std::uint32_t to = (from + 1 + below(tree.hosts - 1)) % tree.hosts;
    flow.at = Time(Duration(std::int64_t{below(50'000'000)} * 1000));
    flow.bytes = 0x1p28 * (1 + 0.37 * below(1000) / 1000);
    flow.cap = BytesPerSecond(std::numeric_limits<double>::infinity());
    for (const std::uint32_t link : tree.route(from, to)) flow.loads.push_back({link, 1});
  }
  std::ranges::stable_sort(all, {}, &Flow::at);
  return all;
}

/// Calls at(now, fluid, ended) after each instant is settled; `ended` and tags are places in
/// `flows`.
template <class At>
void run(Fluid& fluid, const std::vector<Flow>& flows, At at) {
  std::vector<std::uint64_t> ended;
  for (std::size_t next = 0; next < flows.size() || fluid.active() > 0;) {
    Time now = next < flows.size() ? flows[next].at : Time::max();
    if (const auto end = fluid.next_end()) now = std::min(now, *end);
    ended.clear();
    fluid.take_ended(now, ended);
    for (; next < flows.size() && flows[next].at == now; ++next)
      fluid.start(now, flows[next].bytes, flows[next].cap, flows[next].loads, next);
    fluid.settle(now);
    at(now, ended);
  }
}

}  // namespace stepcast::engine::random_flows
