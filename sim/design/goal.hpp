// [design]: what is wanted and what may be bought for it, from a goal file. The file's other tables
// are a scenario's, but for [cluster], of which only the job's place in the fabric is said.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/design/terms.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

/// What a design must keep to; infinite: no limit.
struct DesignLimits {
  static constexpr double none = std::numeric_limits<double>::infinity();
  double days = none;     // until the tokens are trained
  double usd = none;      // of the run, as `accounting` of the goal counts them
  double capital = none;  // USD of the bill, where it is bought
  double watts = none;    // at the building's meter, while it trains
  double racks = none;
  std::optional<Acquisition> only{};  // come by in this way alone
};

struct DesignGoal {
  TomlValue document;  // the scenario that all machines share
  std::optional<TomlValue> space;
  DesignLimits limits;
  std::vector<TomlValue> nodes;          // as cluster.node would say them
  std::vector<TomlValue> fabrics;        // as cluster.fabric; rented machines have the first
  std::vector<double> oversubscription;  // of what is bought
  std::vector<std::int64_t> nics;        // of a node; empty: as it has
  std::vector<std::int64_t> sizes;       // nodes; empty: what the fabric's units and powers give
  std::vector<Tenure> ways;
  Accounting accounting;
  std::string quotes;             // a file of offers of one's own; empty: none
  std::int64_t most_gpus = 4096;  // of the sizes that are not said
  std::string parts;              // list of parts/ that bills are priced by
};

/// Throws InputError for what no design can be made of.
DesignGoal read_design_goal(TomlValue document);

}  // namespace stepcast::sim
