// The members of a point's row that become columns: of results.h5, and of tables in files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/told/metrics.hpp"

namespace stepcast::sim {

struct RowMember {
  enum class Kind : std::uint8_t { metric, count, number, flag, text, list };
  std::string path;  // in the JSON object
  Kind kind;
  const Metric* metric = nullptr;  // counts may have one as well
};

/// Metrics, what was simulated, why there is no answer, and of a step all that its plan says.
std::vector<RowMember> row_members(bool collective);

}  // namespace stepcast::sim
