// A measured layer of experts beside what the simulator makes of it: the row becomes a scenario of
// one layer by the rules of published runs, and the pieces and kernels of a step run alone.
#pragma once

#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "validate/layers/row.hpp"
#include "validate/published/scenario.hpp"

namespace stepcast::validate {

/// Where the first rank's time goes; they add up to the whole. Seconds.
struct LayerParts {
  double products = 0;  // of experts
  double exchange = 0;  // waiting included
  double others = 0;    // kernels that move bytes, the router's product
  double idle = 0;      // the host has launched nothing
  double sum() const { return products + exchange + others + idle; }
};

struct LayerResult {
  LayerRow row;
  std::string refused;  // why there is no prediction, else empty
  std::vector<std::string> assumed;
  LayerParts forward, backward;
  double flops = 0;  // of a rank's products of experts, both ways

  bool predicted() const { return refused.empty(); }
  double both_s() const { return forward.sum() + backward.sum(); }
  double error() const { return both_s() / row.both_s() - 1.0; }
  double forward_error() const { return forward.sum() / row.forward_s - 1.0; }
  double backward_error() const { return backward.sum() / row.backward_s - 1.0; }
};

/// The scenario of a row: a model of that one layer.
RowScenario layer_scenario(const LayerRow&, const ScenarioMaker&);

std::vector<LayerResult> predict_layers(const std::vector<LayerRow>& rows, sim::Session& session);

}  // namespace stepcast::validate
