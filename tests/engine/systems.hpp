// Systems for the tests of the event loop: by hand, and random ones that cannot deadlock.
#pragma once

#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "engine/system.hpp"

namespace stepcast::engine::testing {

inline constexpr std::uint8_t async_lane = 1, other_lane = 2, side_lane = 3;
inline constexpr std::uint8_t no_cost = 0, launch_cost = 1;

/// A system whose ranks all play role 0, with `groups` as the communicators of slot 0, 1, ...
inline System make_system(std::uint32_t ranks, std::vector<Program> roles,
                          std::vector<std::vector<std::vector<std::uint32_t>>> groups) {
  System s;
  s.roles = std::move(roles);
  s.role_of_rank.assign(ranks, 0);
  s.host_costs = {Duration{}, 1_us};
  s.stretch.assign(num_states, 1.0);
  for (const auto& slot : groups) {
    s.communicator_of.emplace_back(ranks, no_communicator);
    for (const auto& members : slot) {
      for (const std::uint32_t r : members)
        s.communicator_of.back()[r] = static_cast<std::uint32_t>(s.communicators.size());
      s.communicators.push_back({members, 0, {}});
    }
  }
  return s;
}

inline Transfer transfer(double bytes, double gb_per_s, Traffic traffic = Traffic::data,
                         std::uint8_t interference = 0) {
  return {bytes, BytesPerSecond(gb_per_s * 1e9), traffic, interference};
}

/// Random ranks, roles, groups, kernels and transfers whose joins cannot deadlock: every role
/// follows one skeleton of meetings and fills in its own kernels.
inline System random_system(std::uint64_t seed, bool marked) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  const std::uint32_t pairs = 2 + static_cast<std::uint32_t>(pick(3));
  const std::uint32_t ranks = 2 * pairs;
  const std::size_t num_roles = 1 + pick(2);
  std::vector<std::uint64_t> skeleton;
  for (std::uint64_t i = 0, n = 6 + pick(20); i < n; ++i) skeleton.push_back(pick(7));
  std::vector<Program> roles;
  for (std::size_t role = 0; role < num_roles; ++role) {
    ProgramBuilder b(4);
    std::vector<std::uint32_t> pending;
    const auto works = [&](std::uint8_t lane, std::uint64_t most) {
      for (std::uint64_t k = 1 + pick(most); k > 0; --k)
        b.work(lane, static_cast<std::uint32_t>(pick(5)), pick(2) ? launch_cost : no_cost);
    };
    if (marked) b.wait(async_lane, b.record(compute_lane));
    for (const std::uint64_t item : skeleton) switch (item) {
        case 0:
        case 1:
          works(compute_lane, 6);
          break;
        case 2:
          b.join(compute_lane, 0, 0, launch_cost);
          break;
        case 3:
        case 4:
          if (pick(2)) b.wait(async_lane, b.record(compute_lane));
          b.join(async_lane, 1, static_cast<std::uint32_t>(item - 2), launch_cost);
          pending.push_back(b.record(async_lane));
          break;
        case 5:
          works(side_lane, 2);
          if (pick(2)) pending.push_back(b.record(side_lane));
          break;
        case 6:
          if (!pending.empty()) {
            b.wait(compute_lane, pending.back());
            pending.pop_back();
          } else {
            b.host_wait(b.record(compute_lane), no_cost);
          }
          break;
      }
    works(compute_lane, 3);
    for (const std::uint32_t e : pending) b.wait(compute_lane, e);
    if (marked) {
      b.join(compute_lane, 2, 3, launch_cost);
      b.mark();
      works(compute_lane, 4);
    }
    if (pick(2) || marked) b.host_wait(b.record(compute_lane), no_cost);
    roles.push_back(b.take());
  }
  std::vector<std::vector<std::uint32_t>> couples, halves(2), all(1);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (r % 2 == 0) couples.push_back({r, r + 1});
    halves[r % 2].push_back(r);
    all[0].push_back(r);
  }
  System s = make_system(ranks, std::move(roles), {couples, halves, all});
  for (std::uint32_t r = 0; r < ranks; ++r)
    s.role_of_rank[r] = static_cast<std::uint32_t>(r / 2 % num_roles);
  for (int w = 0; w < 5; ++w)
    s.works.push_back({Duration(static_cast<std::int64_t>(1000 + pick(9'000'000))),
                       static_cast<std::uint32_t>(pick(3))});
  s.stretch.assign(3 * num_states, 1.0);
  for (std::size_t i = 0; i < s.stretch.size(); ++i)
    if (i % num_states != 0 && i >= num_states)
      s.stretch[i] = 1.0 + static_cast<double>(pick(1000)) * 1e-3;
  s.transfers = {transfer(1e5 + static_cast<double>(pick(100'000)), 300, Traffic::tensor, 1),
                 transfer(5e5 + static_cast<double>(pick(400'000)), 90),
                 transfer(1e5 + static_cast<double>(pick(900'000)), 40), transfer(8, 0.01)};
  // Links: an own port per rank, which two transfers at once may fill or not, and one shared by
  // all.
  for (std::uint32_t r = 0; r < ranks; ++r) {
    s.link_capacity.push_back(seed % 3 == 0 ? 400_GBps : 350_GBps);
    s.link_owner.push_back(r);
  }
  s.link_capacity.push_back(100_GBps);
  s.link_owner.push_back(no_owner);
  for (std::size_t c = 0; c < s.communicators.size(); ++c) {
    for (const std::uint32_t r : s.communicators[c].members)
      s.communicators[c].loads.push_back({r, 1.0});
    if (c >= couples.size()) s.communicators[c].loads.push_back({ranks, 1.0});
  }
  if (pick(3) == 0) {
    s.slowness.assign(ranks, 1.0);
    s.slowness[pick(ranks)] = 1.25;
  }
  return s;
}

}  // namespace stepcast::engine::testing
