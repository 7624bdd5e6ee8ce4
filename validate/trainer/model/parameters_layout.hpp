// How the tensors of a rank follow each other in one buffer, and what their first weights are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "validate/trainer/model/parameters.hpp"

namespace stepcast::validate {

/// Tensors of one unit one after the other, each `share` of its elements.
struct UnitLayout {
  std::vector<TensorPart> tensors;
  std::vector<std::size_t> offsets;  // one more than tensors: the end
  std::vector<std::string> names;    // "layer.mlp.up": without the layer's number
  std::size_t size() const { return offsets.back(); }
};

std::vector<UnitLayout> unit_layouts(const TrainerJob& job, const RankShare& share);

/// All tensors of a rank in the order in which the last backward of each chunk completes their
/// gradients, and the buckets in which these are reduced (workloads::bucket_limit).
struct CompletionOrder {
  /// Tensors that are reduced over the same ranks.
  struct Kind {
    Stretch all;
    std::vector<Stretch> buckets;  // of whole tensors
  };
  std::vector<std::vector<std::size_t>> starts;  // by unit and tensor
  Kind dense, experts;                           // the experts behind the dense ones
  std::size_t size() const { return experts.all.end; }
};
CompletionOrder completion_order(const TrainerJob& job, const RankShare& share,
                                 const std::vector<UnitLayout>& units);

/// Elements [from, from + to.size()) of the part: normal with the given spread, ones for norms.
void first_weights(std::span<double> to, const TensorPart& part, std::size_t from,
                   const Learning& learning, std::int64_t layers);

}  // namespace stepcast::validate
