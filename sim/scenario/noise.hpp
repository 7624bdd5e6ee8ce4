// Differences between ranks that do the same: noise of every kernel, GPUs that are not equally
// fast, stragglers. Off by default.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/system.hpp"
#include "topology/specs.hpp"

namespace stepcast::sim {

/// GPUs that are slower than the others by a known factor, all the time.
struct Straggler {
  bool node = false;       // a whole node, or one rank
  std::int64_t index = 0;  // of the node or the rank
  double slowdown = 1.0;   // kernels take that much longer

  friend bool operator==(const Straggler&, const Straggler&) = default;
};

struct Noise {
  engine::Distribution distribution = engine::Distribution::lognormal;
  double kernel_sigma = 0.0;  // every kernel of every rank: standard deviation over duration
  double gpu_sigma = 0.0;     // GPUs among each other, drawn once: standard deviation over mean
  double pace_sigma = 0.0;    // the same, but all go at the pace expected of the slowest of them
  std::int64_t steps = 5;     // with kernel_sigma: steps that the report is the mean of
  std::vector<Straggler> stragglers;

  bool on() const {
    return kernel_sigma > 0.0 || gpu_sigma > 0.0 || pace_sigma > 0.0 || !stragglers.empty();
  }
  friend bool operator==(const Noise&, const Noise&) = default;
};

/// The mean of the largest of n draws of a standard normal distribution.
double expected_largest(std::int64_t n);

/// How much longer products and attention take where GPUs wait for the slowest of them in every
/// step, while none of them is known: 1 + sigma x expected_largest(n). Equal GPUs differ in their
/// clocks under load, so in tensor-core kernels, not in their memory. A sustained rate that was
/// read off runs on many GPUs (Architecture::sustained_gpus) has the slowest of them in it.
double pace(const Noise& noise, std::int64_t gpus, const topology::Architecture& architecture);

/// Gives the ranks of `system` their speeds and their noise; nodes hold `gpus_per_node` ranks.
void add_noise(const Noise& noise, std::uint64_t seed, std::int64_t gpus_per_node,
               engine::System& system);

}  // namespace stepcast::sim
