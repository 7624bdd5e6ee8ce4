// What kind of forecast it is, as far as the errors of published runs tell kinds apart: kept with
// every residual, and asked of every forecast. Knows no residual.
#pragma once

#include <string>

#include "sim/run/memory_odds.hpp"
#include "sim/run/step_report.hpp"

namespace stepcast::sim {

/// The kind whose errors most sources have measured, and the smallest: others are told apart from
/// it.
inline constexpr const char* dense_16_bit = "dense 16 bit";

struct Case {
  std::string generation;  // of the GPU: "ampere"
  std::string family;      // of a step its framework, of a collective "from 1 MiB" or "below 1 MiB"
  std::string reach;       // "one node", "nodes", "tensor over nodes"
  double host = 0;         // share of the step in which nothing is launched
  double unmeasured = 0;   // share of its time that is extrapolated or rests on a datasheet
  std::string kind = dense_16_bit;  // of model and precision: "MoE fp8", "dense mxfp8"

  friend bool operator==(const Case&, const Case&) = default;
};

Case case_of(const StepReport& report);
Case case_of(const CollectiveReport& report);
/// Of a collective of that size; `unmeasured` is 0 or 1.
Case case_of_collective(topology::Architecture architecture, std::int64_t nodes, Bytes bytes,
                        Provenance provenance);

}  // namespace stepcast::sim
