// Multi-head latent attention (MLA, arXiv 2405.04434) between the norm and the attention core, as
// Megatron-LM trains it (core/transformer/multi_latent_attention.py, recalled 2026): down to the
// ranks of q and of k and v, their norms, up to all heads, expanded. The down projections are whole
// on every tensor rank and work on its own tokens; with sequence parallelism their results are
// gathered, not the hidden tensor.
#pragma once

#include <string>

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

void write_latent_projections_forward(PieceWriter&);
void write_latent_projections_backward(PieceWriter&, const ParameterTensors& unit);
/// What `recompute_modules` runs again in backward (latent_up): norms, projections up, rotation.
void write_latent_up_forward(PieceWriter&);
bool makes_latent_up_again(const StepInputs&);

/// Rotation of q's part and of the keys' common part, and k and v laid out head by head; `suffix`
/// as in write_rope().
void write_latent_rope(PieceWriter&, const std::string& suffix);

}  // namespace stepcast::workloads
