// What stands in the place of attention in layers of the gated delta rule and of state spaces, and
// the index that chooses attention's keys. From the norm before to the layer's output projection.
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

/// In-projection, short convolution, the recurrence over chunks, a norm of each head with its gate,
/// out-projection.
void write_delta_forward(PieceWriter&);
void write_delta_backward(PieceWriter&, const ParameterTensors& unit);
void write_state_space_forward(PieceWriter&);
void write_state_space_backward(PieceWriter&, const ParameterTensors& unit);

/// Scores of all keys and the best of each row; nothing where the layer has no index of its own.
void write_index_forward(PieceWriter&);
void write_index_backward(PieceWriter&, const ParameterTensors& unit);

/// What autograd keeps of them, in the order of forward.
std::vector<std::int64_t> kept_by_delta(const StepInputs&);
std::vector<std::int64_t> kept_by_state_space(const StepInputs&);
std::vector<std::int64_t> kept_by_index(const StepInputs&);
/// States between chunks, which a recurrence's backward has in fp32.
std::int64_t states_bytes(const StepInputs&, Mixer);

}  // namespace stepcast::workloads
