// Plans as points of step time against memory per GPU, those that no other plan beats in both
// joined. Knows no plan and no search.
#pragma once

#include <string>
#include <vector>

namespace stepcast::sim {

struct ParetoPoint {
  double step_s = 0;
  double memory_gib = 0;  // per GPU, of the fullest
  std::string label = {};
  bool on_front = false;
  bool best = false;
  bool own = false;  // the user's own plan
};

/// SVG. The time's axis is logarithmic, so that a slow plan leaves the fast ones apart; every
/// point's label is its tooltip, best and own plan are told below. `card_gib`: the GPU's memory.
std::string pareto_picture(const std::vector<ParetoPoint>& points, double card_gib,
                           const std::string& title);

}  // namespace stepcast::sim
