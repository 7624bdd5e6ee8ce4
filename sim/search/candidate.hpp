// A plan of a search space, small enough for millions of them. Knows no scenario.
#pragma once

#include <compare>
#include <cstdint>

#include "workloads/plan/plan.hpp"
#include "workloads/plan/software.hpp"

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
  std::int32_t expert = 1, expert_tensor = 0;  // 0: as tensor
  std::int32_t capacity = 0;                   // millionths of the mean; 0: no token is dropped
  std::int32_t activation_offload = 0, optimizer_offload = 0;  // millionths of the whole
  workloads::DataParallel data = workloads::DataParallel::zero2;
  workloads::Schedule schedule = workloads::Schedule::one_f_one_b;
  workloads::Recompute recompute = workloads::Recompute::none;
  Reduction reduce = Reduction::software;
  Split split = Split::software;
  workloads::Dispatcher dispatcher = workloads::Dispatcher::all_to_all;
  workloads::Recipe recipe = workloads::Recipe::none;
  workloads::Graphs graphs = workloads::Graphs::none;
  std::uint8_t framework = 0;  // index into SearchSpace::bases
  workloads::TensorOverlap tensor_overlap = workloads::TensorOverlap::none;
  bool sequence_parallel = false, pad_to_capacity = false, shared_overlap = false;
  bool expert_overlap = false, delay_wgrad = false;

  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

}  // namespace stepcast::sim
