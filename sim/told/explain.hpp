// What every reported name means: `stepcast explain METRIC`.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepcast::sim {

struct Explanation {
  std::string_view key;  // as in the JSON
  std::string_view meaning;
  std::string_view formula;  // empty: nothing is computed
  std::string_view source;   // where the definition or the model comes from; empty: ours
};

std::span<const Explanation> explanations();
const Explanation* find_explanation(std::string_view key);
std::string explanation_text(const Explanation& explanation);

}  // namespace stepcast::sim
