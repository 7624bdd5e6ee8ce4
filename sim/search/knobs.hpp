// The knobs of a plan, one row each: its key, the values that are tried unless the user says
// otherwise, and which values come to the same. A new knob is a member of Candidate and its row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/search/candidate.hpp"

namespace stepcast::sim {

/// A candidate as the plan it stands for.
struct CandidatePlan {
  const Scenario& base;  // of its framework, recipe and graphs
  workloads::ParallelPlan plan;
  workloads::Batch batch;
};

struct Knob {
  const char* key;  // "plan.tensor"
  std::int64_t (*get)(const Candidate&);
  void (*set)(Candidate&, std::int64_t);
  /// Of `base`; `across`: also what is customarily not done (tensor ranks across nodes).
  std::vector<std::int64_t> (*usual)(const Scenario& base, bool across);
  /// The value that comes to the same in this plan as `value`: itself, unless the knob is idle.
  std::int64_t (*same)(const CandidatePlan&, std::int64_t value);
  std::span<const std::pair<std::string_view, std::int64_t>> words;  // none: numbers
  /// Tried only where it is asked for: what turns it trains otherwise, or has another library.
  bool on_request = false;
  std::int64_t parts = 1;  // of one, that a value counts
  std::int64_t least = 1;  // that may be written; 0 where that says "all" or "none"

  std::string word(std::int64_t value) const;
};

/// In the order in which a space is walked: the first changes slowest.
std::span<const Knob> knobs();

/// Null where no knob has that key.
const Knob* find_knob(std::string_view key);

}  // namespace stepcast::sim
