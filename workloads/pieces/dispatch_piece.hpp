// Tokens on their way to their experts and back: rows put in order, counted, exchanged; in backward
// the gradients of rows take the same ways. One function for each step of the way, in the order of
// forward; backward calls them from the last to the first.
#pragma once

#include <functional>

#include "workloads/pieces/expert_sizes.hpp"

namespace stepcast::workloads {

/// What runs on the device while rows are under way.
using Beside = std::function<void()>;

/// The rank's rows in the order of their experts; the host learns how many come (forward).
void write_permute(PieceWriter&, const ExpertSizes&, bool backward);
/// Their way to the ranks of their experts.
void write_dispatch(PieceWriter&, const ExpertSizes&, bool backward, const Beside& = {});
/// What has come, in the order of the rank's experts.
void write_arrival(PieceWriter&, const ExpertSizes&, bool backward);
/// And back.
void write_departure(PieceWriter&, const ExpertSizes&, bool backward);
void write_combine(PieceWriter&, const ExpertSizes&, bool backward, const Beside& = {});
void write_unpermute(PieceWriter&, const ExpertSizes&, bool backward);
/// Rows that are back, times the weights of their tokens, where that is not the experts' own.
void write_weighing(PieceWriter&, const ExpertSizes&, bool backward);

}  // namespace stepcast::workloads
