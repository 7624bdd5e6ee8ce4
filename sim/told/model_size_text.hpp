// What stepcast show models NAME says of a model's size, below its keys.
#pragma once

#include <string>

#include "workloads/plan/transformer.hpp"

namespace stepcast::sim {

/// Parameters by part, all and those of one token, and FLOPs of a token in training by both
/// conventions.
std::string model_size_text(const workloads::TransformerShape&);

}  // namespace stepcast::sim
