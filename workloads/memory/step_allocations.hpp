// The tensors that a rank of a stage allocates and frees, in the order of its step: the schedule's
// turns, each layer's kept and short-lived tensors, states that the first update makes. Two steps,
// because the second meets what the first has left. Knows no allocator and no times.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "workloads/memory/free_blocks.hpp"
#include "workloads/memory/rank.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/plan/pipeline.hpp"

namespace stepcast::workloads {

/// What a tensor is for; the words of MemoryPart.
enum class TensorKind : std::uint8_t {
  parameters,
  gathered,
  gradients,
  optimizer,
  activations,
  logits,
  communication,
  work
};
inline constexpr std::array<std::string_view, 8> tensor_kind_names{
    "parameters", "gathered parameters", "gradients", "optimizer", "activations",
    "logits",     "communication",       "work"};

/// Bytes are allocated under a number, or, where there are none, freed; on a stream, whose blocks
/// no other stream gets: FSDP's gathers and reductions have their own.
struct Allocation {
  std::uint32_t tensor = 0;
  TensorKind kind{};
  Stream stream{};
  std::int64_t bytes = 0;
};

/// A turn of the schedule begins with allocation `first`; without one the update does.
struct AllocationTurn {
  std::size_t first = 0;
  std::int64_t step = 0;  // 0, or 1 for the second
  std::optional<Turn> turn;
};

struct StepAllocations {
  std::vector<Allocation> order;
  std::vector<AllocationTurn> turns;
  std::uint32_t tensors = 0;
  bool expandable = false;  // the software's allocator has segments that grow
};

/// Of many alike micro-batches only so many are written that the fullest moment is among them.
StepAllocations step_allocations(const StepInputs&, std::int64_t stage);

/// Bytes that are alive at once, by kind.
using KindBytes = std::array<std::int64_t, tensor_kind_names.size()>;

/// Of the same tensors those alive when they come to most: what no allocator can do without.
KindBytes fullest_moment(const MemoryRank&);

}  // namespace stepcast::workloads
