// What two scenarios say differently, key by key, as changes that lead from the one to the other.
// Knows no simulation.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {

/// One key, or all that another entry of the catalogue brings with it.
struct Change {
  std::string key;       // "plan.tensor", "cluster.node"
  std::string from, to;  // as a file says it; empty: does not say
  /// What the keys say afterwards; none: nothing.
  std::vector<std::pair<std::string, std::optional<TomlValue>>> keys{};
};

/// Two scenarios as documents of which neither says what follows in both from other keys: stages
/// from the pipeline degree, NCCL from the framework.
struct DocumentPair {
  TomlValue from, to;
};
DocumentPair documents_of(const Scenario& from, const Scenario& to);

/// All that leads from the one to the other, in the order of a resolved scenario.
std::vector<Change> changes_between(const DocumentPair& documents);

/// Makes a change.
void make(const Change& change, TomlValue& document);

/// Every key of a document with its value; an array is a value.
std::vector<Setting> settings_in(const TomlValue& document);

}  // namespace stepcast::sim
