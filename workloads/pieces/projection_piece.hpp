// From a layer's first norm to the attention core: q, k and v, their norms and rotation.
#pragma once

#include <string>

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

void write_projections_forward(PieceWriter&);
void write_projections_backward(PieceWriter&, const ParameterTensors& unit);

/// Autograd of a packed projection's split concatenates gradients of `width` in all: read and write
/// them.
void write_joined_gradients(PieceWriter&, const std::string& name, std::int64_t width);

}  // namespace stepcast::workloads
