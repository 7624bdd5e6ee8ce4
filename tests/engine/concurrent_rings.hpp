// 64 ring collectives of 20 rounds on a two-level fat tree: the workload that was also run through
// SimGrid. n hosts in leaves of 32; every host has one link up and one down, every leaf one up and
// one down to each of U spines; all links 50 GB/s per direction, 1 us. The route a -> b takes spine
// b mod U if the leaves differ. Collective g has the members g + 64 k; a round starts 4 us (four
// links) after the one before has ended and moves floor(s_g (m-1)/m) bytes over every edge of the
// ring.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "engine/fluid.hpp"

namespace stepcast::engine::concurrent_rings {

inline constexpr std::uint32_t num_collectives = 64;
inline constexpr std::uint32_t num_rounds = 20;
inline constexpr std::uint32_t leaf_size = 32;
inline constexpr Duration latency = 4_us;

struct Tree {
  std::uint32_t hosts, spines;
  std::uint32_t leaves() const { return hosts / leaf_size; }
  std::uint32_t host_up(std::uint32_t h) const { return h; }
  std::uint32_t host_down(std::uint32_t h) const { return hosts + h; }
  std::uint32_t leaf_up(std::uint32_t l, std::uint32_t s) const {
    return 2 * hosts + l * spines + s;
  }
  std::uint32_t leaf_down(std::uint32_t l, std::uint32_t s) const {
    return 2 * hosts + (leaves() + l) * spines + s;
  }
  std::vector<BytesPerSecond> capacities() const {
    return std::vector<BytesPerSecond>(2 * hosts + 2 * leaves() * spines, 50_GBps);
  }
  std::vector<std::uint32_t> route(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t from = a / leaf_size, to = b / leaf_size, spine = b % spines;
    if (from == to) return {host_up(a), host_down(b)};
    return {host_up(a), leaf_up(from, spine), leaf_down(to, spine), host_down(b)};
  }
};

/// One flow of the workload: a whole collective, or one edge of its ring.
struct Transfer {
  std::uint32_t collective;
  double bytes;
  std::vector<LinkLoad> loads;
};

inline std::vector<Transfer> transfers_of(const Tree& tree, bool one_per_edge) {
  const std::uint32_t m = tree.hosts / num_collectives;
  std::vector<Transfer> all;
  for (std::uint32_t g = 0; g < num_collectives; ++g) {
    const std::uint32_t hash = g * 2654435761U;
    const double size = 0x1p28 * (1 + 0.37 * (hash % 1000) / 1000);
    const double bytes = std::floor(size * (m - 1) / m);
    std::map<std::uint32_t, double> edges_on;
    for (std::uint32_t k = 0; k < m; ++k) {
      const auto route = tree.route(g + num_collectives * k, g + num_collectives * ((k + 1) % m));
      if (one_per_edge) all.push_back({g, bytes, {}});
      for (std::uint32_t link : route) {
        edges_on[link] += 1;
        if (one_per_edge) all.back().loads.push_back({link, 1});
      }
    }
    if (one_per_edge) continue;
    all.push_back({g, bytes, {}});
    for (const auto& [link, edges] : edges_on) all.back().loads.push_back({link, edges});
  }
  return all;
}

/// When the last round of the last collective ends.
inline double makespan(const Tree& tree, const std::vector<Transfer>& transfers) {
  std::vector<std::vector<std::uint32_t>> transfers_of_collective(num_collectives);
  for (std::uint32_t t = 0; t < transfers.size(); ++t)
    transfers_of_collective[transfers[t].collective].push_back(t);

  Fluid fluid(tree.capacities());
  using Launch = std::pair<Time, std::uint32_t>;
  std::priority_queue<Launch, std::vector<Launch>, std::greater<>> launches;
  std::vector<std::uint32_t> rounds_left(num_collectives, num_rounds), edges_left(num_collectives);
  for (std::uint32_t g = 0; g < num_collectives; ++g) launches.push({Time(latency), g});

  Time now{};
  std::vector<std::uint64_t> ended;
  while (!launches.empty() || fluid.active() > 0) {
    now = Time::max();
    if (!launches.empty()) now = launches.top().first;
    if (const auto end = fluid.next_end()) now = std::min(now, *end);
    ended.clear();
    fluid.take_ended(now, ended);
    for (std::uint64_t g : ended)
      if (--edges_left[g] == 0 && --rounds_left[g] > 0)
        launches.push({now + latency, static_cast<std::uint32_t>(g)});
    for (; !launches.empty() && launches.top().first == now; launches.pop()) {
      const std::uint32_t g = launches.top().second;
      edges_left[g] = static_cast<std::uint32_t>(transfers_of_collective[g].size());
      for (std::uint32_t t : transfers_of_collective[g])
        fluid.start(now, transfers[t].bytes,
                    BytesPerSecond(std::numeric_limits<double>::infinity()), transfers[t].loads, g);
    }
    fluid.settle(now);
  }
  return seconds(now);
}

}  // namespace stepcast::engine::concurrent_rings
