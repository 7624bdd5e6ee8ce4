// A plan of a search space, small enough for millions of them. Knows no scenario.
#pragma once

#include <compare>
#include <cstdint>

#include "workloads/plan/plan.hpp"

namespace stepcast::sim {

/// How the layers are shared among the parts of a pipeline.
enum class Split : std::uint8_t {
  software,    // as the framework does unasked
  embeddings,  // embedding and head count as a layer each
};

/// When gradients are reduced: as the framework does unasked, or as is said.
enum class Reduction : std::uint8_t { software, last, each };

struct Candidate {
  std::int32_t tensor = 1, context = 1, pipeline = 1, virtual_stages = 1;
  std::int32_t micro_batch = 1;
  std::int32_t shard_degree = 0;  // 0: over all copies
  std::int32_t recompute_every = 1, prefetch = 1;
  workloads::DataParallel data = workloads::DataParallel::zero2;
  workloads::Schedule schedule = workloads::Schedule::one_f_one_b;
  workloads::Recompute recompute = workloads::Recompute::none;
  Reduction reduce = Reduction::software;
  Split split = Split::software;
  std::uint8_t framework = 0;  // index into SearchSpace::bases
  bool sequence_parallel = false;

  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

}  // namespace stepcast::sim
