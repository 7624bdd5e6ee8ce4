// What BERT has between its last layer and the logits, and beside them: the predicted positions are
// picked out, transformed and normalised; the first position is pooled and told whether the second
// segment follows the first (Devlin et al. 2018, arXiv 1810.04805; NVIDIA DeepLearningExamples
// 729963d PyTorch/LanguageModeling/BERT/modeling.py).
#pragma once

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

/// The writer's batch holds the predicted positions alone (predicted_batch()).
void write_masked_transform_forward(PieceWriter&);
/// Ends with the gradient of all positions, `whole` bytes: zero but for the predicted ones.
void write_masked_transform_backward(PieceWriter&, const ParameterTensors& unit,
                                     std::int64_t whole);

void write_pooler_forward(PieceWriter&);
void write_pooler_backward(PieceWriter&, const ParameterTensors& unit);

}  // namespace stepcast::workloads
