// Measured layers beside predicted ones as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/compare/score.hpp"
#include "validate/layers/predict.hpp"

namespace stepcast::validate {

/// Of forward and backward together, and of each. `rate`: the one rate of products per precision
/// that misses these rows least, the yardstick beside ours.
struct LayerScores {
  std::optional<Score> both, forward, backward, rate;
};
LayerScores scores_of(const std::vector<LayerResult>& results);

std::string layers_text(const std::string& title, const std::vector<LayerResult>& results);

/// {"summary": {...}, "rows": [...]}; times in seconds, errors as shares.
std::string layers_json(const std::vector<LayerResult>& results);

}  // namespace stepcast::validate
