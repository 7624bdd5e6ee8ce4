// What each form of optimizer keeps of a parameter from step to step, and what its update has at
// once beside that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/memory/rank.hpp"

namespace stepcast::workloads {

/// Most tensors that are kept of a parameter.
std::size_t most_states(Optimizer);
using KeptStates = std::array<std::int64_t, 4>;

/// Bytes of the tensors that are kept of `elements` elements of a parameter that the rank updates,
/// without a master; 0: no further one. `p`: the whole tensor, or a unit's flat one.
KeptStates kept_states(const MemoryRank&, const ParameterTensor& p, std::int64_t elements);

/// The same of all trained parameters of the stage, whole.
std::int64_t kept_states(const MemoryRank&);

/// Bytes of the tensors that the update of one parameter makes and frees; foreach AdamW's, which
/// has those of all parameters at once, are told apart.
std::vector<std::int64_t> update_work(const MemoryRank&, const ParameterTensor& p,
                                      std::int64_t elements);

}  // namespace stepcast::workloads
