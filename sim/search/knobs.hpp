// The knobs of a plan, one row each: its key, the member of the plan, the values that are tried
// unless the user says otherwise, and which values come to the same. A new knob is a row here, and
// searched() around its key (sim/scenario/members.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

inline constexpr std::size_t num_knobs = 29;

/// A plan of a space: what each knob says, in the order of knobs(). Small enough for millions.
using KnobValues = std::array<std::int32_t, num_knobs>;

/// A plan that is being filled in: knobs set its members and wishes,
/// complete_batch() and complete_rest() all else.
struct DraftPlan {
  const Scenario& base;  // of its framework, recipe and graphs
  workloads::ParallelPlan plan;
  workloads::Batch batch;
  PlanWishes wishes{};
};

/// Where a knob's value stands.
struct KnobMember {
  std::int64_t (*written)(const Scenario&);
  void (*set)(DraftPlan&, std::int64_t);  // null: the value chooses the draft's base
};

struct Knob {
  const char* key;  // "plan.tensor"
  KnobMember member;
  /// Of `base`; `across`: also what is customarily not done (tensor ranks across nodes).
  std::vector<std::int64_t> (*usual)(const Scenario& base, bool across);
  /// The value that comes to the same in this plan as `value`: itself, unless the knob is idle.
  std::int64_t (*same)(const DraftPlan&, std::int64_t value);
  std::span<const std::pair<std::string_view, std::int64_t>> words;  // none: numbers
  /// Tried only where it is asked for: what turns it trains otherwise, or has another library.
  bool on_request = false;
  std::int64_t parts = 1;  // of one, that a value counts
  std::int64_t least = 1;  // that may be written; 0 where that says "all" or "none"

  std::size_t place() const;  // among knobs()
  std::int64_t in(const KnobValues& values) const { return values[place()]; }
  void put(KnobValues& values, std::int64_t value) const;
  std::string word(std::int64_t value) const;
};

/// In the order in which a space is walked: the first changes slowest. Those before `first_of_plan`
/// choose the base: the framework, its recipe, its graphs.
std::span<const Knob> knobs();
inline constexpr std::size_t framework_knob = 0, recipe_knob = 1, graphs_knob = 2,
                             first_of_plan = 3;

/// Null where no knob has that key.
const Knob* find_knob(std::string_view key);

/// What the plan of a scenario says; its framework is the first of a space.
KnobValues knob_values_of(const Scenario& scenario);

}  // namespace stepcast::sim
